// schedule: random kernels, with state, arrays and loops within loops, give the same bits at every depth of rotation,
// and what is alive in them has its bytes to itself.
#include "neuron_kernels/record/schedule.hpp"

#include "neuron_kernels/sim/simulate.hpp"
#include "placed_memory.hpp"
#include "replaying.hpp"

namespace test {
namespace {

constexpr int side = 16;         // of all tiles
constexpr int rows_of_hbm = 12;  // tiles in a tensor
constexpr int elements = 3;      // of the array

enum class Step { load, reload, multiply, add, most, tanh, into_array, from_array, store };

/// dst = step(a, b) on tiles by number; `offset` shifts the element or the rows that it touches.
struct Do {
  Step step;
  int dst, a, b, offset;
};

/// Drawn beforehand, since Host runs a loop's body many times where Recorder runs it once. Tiles [0, 2) are made
/// outside the loops, [2, 4) in a block and [4, 6) in a step.
struct Plan {
  int blocks, steps, moving;
  std::vector<Do> before, within, after;
};

Plan draw(std::uint64_t seed) {
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  const auto below = [&](int n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return static_cast<int>((state >> 11) % static_cast<std::uint64_t>(n));
  };
  const auto statements = [&](int most, int tiles) {
    std::vector<Do> all;
    for (int n = below(most + 1); n > 0; --n)
      all.push_back({static_cast<Step>(below(9)), below(tiles), below(tiles), below(tiles), below(4)});
    return all;
  };
  Plan plan{
      .blocks = 1 + below(6), .steps = below(7), .moving = below(3), .before = {}, .within = {}, .after = {}};
  plan.before = statements(3, 4);
  plan.within = statements(8, 6);
  plan.after = statements(4, 4);
  return plan;
}

template <nk::Target T>
void random_kernel(T& nc, const Plan& plan, const typename T::Hbm& x, const typename T::Hbm& y) {
  auto array = nc.sbuf_array("array", elements, side, side, DType::f32);
  for (auto i : nc.range(elements)) nc.fill(array[i], 0.25f);
  std::vector<typename T::Tile> tiles;
  const auto make = [&](const char* name, float value) {
    tiles.push_back(nc.sbuf(name, side, side, DType::f32));
    nc.fill(tiles.back(), value);
  };
  make("outer0", 0.5f);
  make("outer1", -0.5f);
  const auto run = [&](const std::vector<Do>& all, const auto& at) {
    for (const Do& d : all) {
      const auto tile = [&](int i) -> auto& { return tiles[static_cast<std::size_t>(i)]; };
      auto& dst = tile(d.dst);
      const auto rows = (at + d.offset) % rows_of_hbm * side;
      switch (d.step) {
        case Step::load:
          nc.tensor_tensor(dst, dst, Alu::add, nc.load("in", x.rows(rows, side)));
          break;
        case Step::reload:  // what another statement may have stored
          nc.copy(dst, nc.load("again", y.rows(rows, side)));
          break;
        case Step::multiply: {
          auto product = nc.psum("product", side, side);
          nc.matmul(product, tile(d.a), tile(d.b));
          nc.tensor_scalar(dst, product, Alu::multiply, 0.125f);
          break;
        }
        case Step::add:
          nc.tensor_tensor(dst, tile(d.a), Alu::subtract, tile(d.b));
          break;
        case Step::most:
          nc.tensor_tensor(dst, tile(d.a), Alu::max, tile(d.b));
          break;
        case Step::tanh:
          nc.activate(dst, Act::tanh, tile(d.a), {.scale = 0.5f});
          break;
        case Step::into_array:
          nc.copy(array[(at + d.offset) % elements], tile(d.a));
          break;
        case Step::from_array:
          nc.copy(dst, array[(at + d.offset) % elements]);
          break;
        case Step::store:
          nc.store(y.rows(rows, side), tile(d.a));
          break;
      }
    }
  };
  for (auto b : nc.range(plan.blocks)) {
    make("block0", 1.f);
    make("block1", 0.f);
    run(plan.before, b);
    for (auto j : nc.range(b * plan.moving, b * plan.moving + plan.steps)) {
      make("step0", 0.75f);
      make("step1", 0.f);
      run(plan.within, j + b);
      tiles.resize(4, tiles[0]);
    }
    run(plan.after, b);
    tiles.resize(2, tiles[0]);
  }
  nc.store(y.rows(nc.index(0), side), tiles[0]);
  nc.store(y.rows(nc.index(side), side), tiles[1]);
  for (auto i : nc.range(elements)) nc.store(y.rows((i + 2) * side, side), array[i]);
}

TEST_CASE("schedule: random kernels, the same bits and room for each tile") {
  const std::vector<Argument> arguments = {{"x", DType::f32, {rows_of_hbm * side, side}},
                                           {"y", DType::f32, {rows_of_hbm * side, side}, true}};
  Random random(11);
  std::vector<Tensor> inputs;
  for (const Argument& a : arguments) inputs.push_back(Tensor::normal(random, a.dtype, a.shape));
  int rotated = 0;
  std::vector<std::uint64_t> seeds = {1184};  // a tile of a block that is used before and after its steps
  for (std::uint64_t seed = 0; seed < 400; ++seed) seeds.push_back(seed);
  for (const std::uint64_t seed : seeds) {
    const Plan plan = draw(seed);
    const auto body = [&](auto& nc, const auto& h) { random_kernel(nc, plan, h[0], h[1]); };
    const Program program = recorded(nk::trn2, arguments, body);
    std::vector<Tensor> direct = inputs;
    nk::host::launch(&executor(0), 1, [&](nk::Host& nc) { body(nc, hbms(direct, arguments)); });
    for (const int lag : {1, 2, 4}) {
      INFO("seed " << seed << " lag " << lag);
      const Program scheduled =
          schedule(program, nk::trn2, {.pipeline = {.step_lag = lag, .block_lag = lag}, .buffers = {}});
      rotated += scheduled.loops.size() > program.loops.size() ? 1 : 0;
      std::vector<Tensor> replayed = inputs;
      const auto tensors = hbms(replayed, arguments);
      nk::host::launch(&executor(0), 1, [&](nk::Host& nc) {
        nk::replay(scheduled, nc, std::span<const nk::Host::Hbm>(tensors));
      });
      CHECK(replayed[1].same_bits(direct[1]));
      CHECK(PlacedMemory(scheduled, nk::trn2).check() == "");
      CHECK(nk::sim::simulate(scheduled, nk::sim::parameters_for("trn2")).latency_ns > 0);
    }
  }
  INFO(rotated);
  CHECK(rotated > 40);  // else nothing was tried
}

}  // namespace
}  // namespace test
