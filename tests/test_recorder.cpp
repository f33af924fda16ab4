// Recorder: what is recorded and how long it takes.
// Errors: test_recorder_errors.cpp; execution: test_replay.cpp.
#include "neuron_kernels/record/recorder.hpp"

#include <chrono>

#include "archetype.hpp"
#include "neuron_kernels/kernels/attention_merge.hpp"
#include "neuron_kernels/kernels/flash_attention.hpp"
#include "neuron_kernels/kernels/fused_mlp.hpp"
#include "neuron_kernels/kernels/layernorm.hpp"
#include "neuron_kernels/kernels/matmul.hpp"
#include "neuron_kernels/kernels/rmsnorm.hpp"
#include "recording.hpp"

// Every kernel, and replay, ask for no more than core/target.hpp promises.
namespace neuron_kernels::inline NEURON_KERNELS_ABI {
template void matmul_kernel(archetype::Core&, const MatmulArgs<archetype::Core>&, const MatmulBlocking&);
template void layernorm_kernel(archetype::Core&, const LayernormArgs<archetype::Core>&, const NormBlocking&);
template void rmsnorm_kernel(archetype::Core&, const RmsnormArgs<archetype::Core>&, const NormBlocking&);
template void mlp_kernel(archetype::Core&, const MlpArgs<archetype::Core>&, const MlpBlocking&);
template void mlp_sum_kernel(archetype::Core&, const MlpSumArgs<archetype::Core>&);
template void attention_kernel(archetype::Core&, const AttentionArgs<archetype::Core>&,
                               const AttentionBlocking&);
template void attention_merge_kernel(archetype::Core&, const AttentionMergeArgs<archetype::Core>&,
                                     const AttentionBlocking&);
template void replay(const Program&, archetype::Core&, std::span<const archetype::Hbm>);
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI

namespace test {
namespace {

using nk::record::OpCode;

static_assert(nk::Target<Recorder>);
static_assert(!std::is_convertible_v<Recorder::Index, int> && !std::is_constructible_v<int, Recorder::Index>);
static_assert(!std::is_constructible_v<bool, Recorder::Index> &&
              !std::is_constructible_v<bool, Recorder::Cond>);
static_assert(!std::is_constructible_v<Recorder::Cond, int>);

/// Without the "# file:line" at the ends of lines.
std::string without_places(const std::string& text) {
  std::istringstream in(text);
  std::string line, all;
  while (std::getline(in, line)) {
    line.resize(std::min(line.size(), line.find('#')));
    all += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return all;
}

// ---------------------------------------------------------------- index expressions

/// A random expression of i and j, the same for every type of I.
template <class I>
I expression(Random& random, const I& i, const I& j, int depth) {
  using std::max, std::min;
  const auto below = [&](int n) { return static_cast<int>(random.uniform() * n); };
  if (depth == 0) return below(2) == 0 ? i : j;
  const I a = expression(random, i, j, depth - 1);
  const int c = below(9) - 3, n = below(5) + 1;
  switch (below(12)) {
    case 0:
      return a + c;
    case 1:
      return c + a;
    case 2:
      return a - c;
    case 3:
      return c - a;
    case 4:
      return a * c;
    case 5:
      return n * a;
    case 6:
      return max(a, 0 * a) / n;  // not negative
    case 7:
      return max(a, 0 * a) % n;
    case 8:
      return a + expression(random, i, j, depth - 1);
    case 9:
      return a - expression(random, i, j, depth - 1);
    case 10:
      return min(a, expression(random, i, j, depth - 1));
    default:
      return a * expression(random, i, j, depth - 1);
  }
}

TEST_CASE("recorder: index expressions mean what they mean for ints") {
  constexpr int i_end = 5, j_begin = 2, j_end = 9;
  int exact = 0, folded = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    const int depth = static_cast<int>(seed % 5);
    Recorder nc(nk::trn2);
    nk::record::Bounds bounds;
    for (auto i : nc.range(i_end)) {
      for (auto j : nc.range(j_begin, j_end)) {
        Random random(seed);
        const auto e = expression(random, i, j, depth);
        bounds = e.bounds();
        auto tile = nc.sbuf("t", 1, 1, DType::f32);
        (void)nc.causal_mask(tile, e, e + 1, 0.f);  // an op that takes any Index
      }
    }
    const Program& program = nc.program();
    const auto& mask = program.ops[program.ops.size() - 3];
    REQUIRE(mask.code == OpCode::causal_mask);
    bool right = true, low = false, high = false;
    for (std::int64_t i = 0; i < i_end; ++i) {
      for (std::int64_t j = j_begin; j < j_end; ++j) {
        Random random(seed);
        const std::int64_t want = expression(random, i, j, depth), at[] = {i, j};
        right =
            right && evaluate(program, mask.query, at) == want && evaluate(program, mask.key, at) == want + 1;
        right = right && bounds.lo <= want && want <= bounds.hi &&
                (bounds.step == 0 || (want - bounds.lo) % bounds.step == 0);
        low = low || want == bounds.lo;
        high = high || want == bounds.hi;
      }
    }
    CHECK(right);
    if (bounds.exact) CHECK((low && high));
    exact += bounds.exact ? 1 : 0;
    folded += bounds.constant() ? 1 : 0;
    CHECK(rerecorded(program, nk::trn2) == program);
  }
  CHECK(exact > 500);  // else the test above says nothing
  CHECK(folded > 20);
}

TEST_CASE("recorder: conditions mean what they mean for ints") {
  Recorder nc(nk::trn2);
  const auto bools = [](const auto& a, const auto& b) {
    return std::vector{a<b, a <= b, a> b, a >= b, a == b, a != b};
  };
  auto st = nc.sbuf("st", 1, 1, DType::f32);
  auto acc = nc.psum("acc", 1, 1);
  for (auto i : nc.range(4)) {
    for (auto j : nc.range(4)) {
      for (int c = -1; c <= 5; ++c) {
        for (const auto& cond : bools(i, Recorder::Index(c))) nc.matmul(acc, st, st, {.accumulate = cond});
      }
      for (const auto& cond : bools(i, j)) nc.matmul(acc, st, st, {.accumulate = cond});
    }
  }
  const Program& program = nc.program();
  int constants = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) {
      const std::int64_t at[] = {i, j};
      std::size_t op = 4;  // after two tiles and two loops
      for (std::int64_t c = -1; c <= 6; ++c) {
        for (const bool want : bools(i, c == 6 ? j : c)) {
          CHECK(evaluate(program, program.ops[op].accumulate, at) == want);
          constants += program.ops[op].accumulate.a == nk::record::none ? 1 : 0;
          ++op;
        }
      }
    }
  }
  CHECK(constants == 16 * 22);  // c = -1, 4, 5: all six; c = 0: >= 0, < 0; c = 3: <= 3, > 3
}

// ---------------------------------------------------------------- what is recorded

TEST_CASE("recorder: a program reads like its kernel") {
  Recorder nc(nk::trn2);
  const auto x = nc.hbm("x", DType::bf16, {2, 300, 200}), w = nc.hbm("weights", DType::bf16, {200, 64});
  small_kernel(nc, x, w, nc.hbm("y", DType::f32, {300, 64}));
  CHECK(without_places(printed(nc.program())) == R"(program for trn2
  x bf16 [2, 300, 200], read
  weights bf16 [200, 64], read
  y f32 [300, 64], written
for i0 in range(0, 2):  programs(300, 128)
  xT = input_array(2, [128, 128], bf16)
  for i1 in range(0, 1):  tiles(200, 128)
    load_transposed(xT[0], x[1, i0 * 128 : +128, 0 : +128], reads=8)
  for i2 in range(1, 2):  tiles(200, 128) rest
    load_transposed(xT[1], x[1, i0 * 128 : +128, 128 : +72], reads=8)
  acc = psum([128, 64], f32)
  for i3 in range(0, 1):  tiles(200, 128)
    w = load(weights[0 : +128, :])
    matmul(acc, xT[0], w)
  for i4 in range(1, 2):  tiles(200, 128) rest
    w_1 = load(weights[128 : +72, :])
    matmul(acc, xT[1][0 : +72, :], w_1, accumulate=True)
  o = staged(y[i0 * 128 : +128, :])
  sum = sbuf([128, 1], f32)
  activate(o, gelu, acc, scale=2, bias=1, row_sum=sum)
  tensor_scalar(o, o, subtract, sum, multiply, -0.5)
  store(y[i0 * 128 : +128, :], o)
for i5 in range(2, 3):  programs(300, 128) rest
  xT_1 = input_array(2, [128, 44], bf16)
  for i6 in range(0, 1):  tiles(200, 128)
    load_transposed(xT_1[0], x[1, 256 : +44, 0 : +128], reads=8)
  for i7 in range(1, 2):  tiles(200, 128) rest
    load_transposed(xT_1[1], x[1, 256 : +44, 128 : +72], reads=8)
  acc_1 = psum([44, 64], f32)
  for i8 in range(0, 1):  tiles(200, 128)
    w_2 = load(weights[0 : +128, :])
    matmul(acc_1, xT_1[0], w_2)
  for i9 in range(1, 2):  tiles(200, 128) rest
    w_3 = load(weights[128 : +72, :])
    matmul(acc_1, xT_1[1][0 : +72, :], w_3, accumulate=True)
  o_1 = staged(y[256 : +44, :])
  sum_1 = sbuf([44, 1], f32)
  activate(o_1, gelu, acc_1, scale=2, bias=1, row_sum=sum_1)
  tensor_scalar(o_1, o_1, subtract, sum_1, multiply, -0.5)
  store(y[256 : +44, :], o_1)
)");
  CHECK(rerecorded(nc.program(), nk::trn2) == nc.program());
}

TEST_CASE("recorder: every op is recorded once per call and comes out of a replay again") {
  Recorder nc(nk::trn3);
  const auto x = nc.hbm("x", DType::f32, {2, 12, 8});
  every_op(nc, x, nc.hbm("y", DType::f32, {2, 12, 8}));
  std::vector<bool> seen(static_cast<std::size_t>(OpCode::causal_select) + 1, false);
  for (const auto& op : nc.program().ops) seen[static_cast<std::size_t>(op.code)] = true;
  seen[static_cast<std::size_t>(OpCode::load_transposed_element)] = true;  // in small_kernel
  CHECK(std::count(seen.begin(), seen.end(), false) == 0);
  CHECK(rerecorded(nc.program(), nk::trn3) == nc.program());
}

TEST_CASE("recorder: loops without iterations are not recorded") {
  Recorder nc(nk::trn2);
  for (auto i : nc.range(0)) (void)nc.sbuf("a", static_cast<int>(i.bounds().lo), 0, DType::f32);
  for (auto i : nc.range(5, 3)) (void)nc.sbuf("b", static_cast<int>(i.bounds().lo), 0, DType::f32);
  for (auto t : nc.tiles(0, 4)) (void)nc.sbuf("c", t.size, 0, DType::f32);
  for (auto t : nc.programs(0, 4)) (void)nc.sbuf("d", t.size, 0, DType::f32);
  CHECK(nc.program().ops.empty());
  for (auto i : nc.range(4)) {
    for (auto j : nc.range(i + 4, nc.index(4)))
      (void)nc.sbuf("e", static_cast<int>(j.bounds().lo), 0, DType::f32);
  }
  CHECK(nc.program().ops.size() == 2);
}

TEST_CASE("recorder: spans are the full ones once, then the rest") {
  const auto sizes = [](std::int64_t n, std::int64_t step) {
    Recorder nc(nk::trn2);
    std::vector<int> all;
    for (auto t : nc.tiles(n, step)) all.push_back(t.size);
    return all;
  };
  CHECK(sizes(256, 128) == std::vector{128});
  CHECK(sizes(257, 128) == std::vector{128, 1});
  CHECK(sizes(5, 128) == std::vector{5});
  CHECK(sizes(1, 1) == std::vector{1});
  CHECK(sizes(7, nk::no_limit) == std::vector{7});
}

TEST_CASE("recorder: programs that differ are not equal, but source lines do not count") {
  const auto program = [](int rows, float value) {
    Recorder nc(nk::trn2);
    auto x = nc.hbm("x", DType::f32, {8, 8});
    auto t = nc.sbuf("t", rows, 8, DType::f32);
    nc.fill(t, value);
    nc.store(x.rows(0, rows), t);
    return nc.program();
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(program(8, nan) == program(8, nan));
  CHECK_FALSE(program(8, nan) == program(8, 0.f));
  CHECK_FALSE(program(8, 0.f) == program(8, -0.f));
  CHECK_FALSE(program(8, 0.f) == program(7, 0.f));
  Program moved = program(8, 1.f);
  for (auto& op : moved.ops) op.where.line += 100;
  CHECK(moved == program(8, 1.f));
  CHECK(printed(moved) != printed(program(8, 1.f)));
}

TEST_CASE("recorder: a kernel of model size is recorded in less than 10 ms") {
  const auto best_ms = [](const nk::Limits& l, const std::vector<Argument>& arguments, const auto& body) {
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto start = std::chrono::steady_clock::now();
      CHECK_FALSE(recorded(l, arguments, body).ops.empty());
      best = std::min(
          best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
  };
  for (const nk::Limits* l : {&nk::trn1, &nk::trn2, &nk::trn3}) {
    CAPTURE(l->chip);
    const Size s{4096, 14336, 8191};
    CHECK(best_ms(*l, matmul_arguments(DType::bf16, s),
                  matmul_body(nk::MatmulBlocking::default_for(*l, {s.m, s.n, s.k}), 0.f, true, false,
                              Act::gelu, true)) < 10);
    const std::int64_t len = 32767;
    const auto attention = [&](auto& nc, const auto& h) {
      nk::AttentionArgs<TargetOf<decltype(nc)>> a;
      a.q = h[0], a.k = h[1], a.v = h[2], a.dst = h[3], a.causal = true;
      attention_kernel(nc, a, nk::AttentionBlocking::default_for(*l, {1, 32, 8, len, len, 128, 128}));
    };
    CHECK(best_ms(*l,
                  {{"q", DType::bf16, {1, 32, len, 128}},
                   {"k", DType::bf16, {1, 8, len, 128}},
                   {"v", DType::bf16, {1, 8, len, 128}},
                   {"dst", DType::bf16, {1, 32, len, 128}}},
                  attention) < 10);
  }
}

}  // namespace
}  // namespace test
