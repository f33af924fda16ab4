// fused_mlp against its meaning in double: gated and plain, every activation, layouts, dtypes and sizes.
#include "neuron_kernels/fused_mlp.hpp"

#include "cases.hpp"
#include "harness.hpp"
#include "reference/fused_mlp.hpp"

namespace test {
namespace {

using nk::Act;

constexpr Act acts[] = {Act::silu,     Act::gelu,    Act::gelu_tanh, Act::relu,
                        Act::identity, Act::sigmoid, Act::tanh};

/// One call with all its tensors; empty ones are not given.
struct Block {
  Tensor x, dst;          // dst: as it is before the call
  Tensor up, down, gate;  // [inner, hidden], [hidden of dst, inner], [inner, hidden]
  Tensor up_bias, down_bias, gate_bias;
  Act activation = Act::silu;
  nk::Executor* executor = &test::executor(0);

  Tensor run() const {
    Tensor out = dst;
    nk::fused_mlp(out.view(), x.view(),
                  {.up = up.view(),
                   .down = down.view(),
                   .gate = gate.view(),
                   .up_bias = up_bias.view(),
                   .down_bias = down_bias.view(),
                   .gate_bias = gate_bias.view()},
                  {.activation = activation, .executor = executor});
    return out;
  }
  reference::Mlp meaning() const {
    const auto matrix = [](const Tensor& t) { return t.given() ? t.matrix() : Matrix(); };
    const auto vector = [](const Tensor& t) {
      return t.given() ? Eigen::RowVectorXd(t.matrix().row(0)) : Eigen::RowVectorXd();
    };
    return {matrix(up),        matrix(down),      matrix(gate), vector(up_bias),
            vector(down_bias), vector(gate_bias), activation};
  }
};

struct Sizes {
  Shape tokens;  // all leading dimensions
  std::int64_t hidden, inner, hidden_dst;
};

/// Normal data; weights are scaled so that every layer keeps the spread of its input.
Block random_block(std::uint64_t seed, const Sizes& s, DType dtype, DType out, bool gated, bool biased,
                   Lie lie_x = Lie::packed, Lie lie_w = Lie::packed) {
  Random random(seed);
  const auto shape = [&](std::int64_t last) {
    Shape t = s.tokens;
    t.push_back(last);
    return t;
  };
  const auto weight = [&](std::int64_t to, std::int64_t from) {
    return Tensor::normal(random, dtype, {to, from}, strides_for({to, from}, lie_w),
                          1 / std::sqrt(std::max(1.0, static_cast<double>(from))));
  };
  const auto bias = [&](std::int64_t n) { return Tensor::normal(random, all_dtypes[seed % 3], {n}); };
  Block b;
  b.x = Tensor::normal(random, dtype, shape(s.hidden), strides_for(shape(s.hidden), lie_x), 2);
  b.dst = Tensor(out, shape(s.hidden_dst),
                 strides_for(shape(s.hidden_dst), lie_x == Lie::repeated ? Lie::padded : lie_x));
  b.up = weight(s.inner, s.hidden), b.down = weight(s.hidden_dst, s.inner);
  if (gated) b.gate = weight(s.inner, s.hidden);
  if (biased) b.up_bias = bias(s.inner), b.down_bias = bias(s.hidden_dst);
  if (biased && gated) b.gate_bias = bias(s.inner);
  return b;
}

std::string describe(const Block& b) {
  return nk::text("x ", nk::shape_text(b.x.view().layout), " ", nk::name_of(b.x.dtype()), ", inner ",
                  b.up.dim(0), ", dst ", nk::shape_text(b.dst.view().layout), " ", nk::name_of(b.dst.dtype()),
                  b.gate.given() ? ", gated " : ", plain ", nk::name_of(b.activation),
                  b.up_bias.given() ? ", biases" : "");
}

void check_block(const Block& b, const std::string& more = "") {
  const auto want = reference::fused_mlp_bound(b.x.rows(), b.meaning(), b.x.dtype());
  on_each_page([&] {
    const Tensor dst = b.run();
    check_near("fused_mlp", describe(b) + more, dst, dst.rows(), reference::stored(want, dst.dtype()));
  });
}

TEST_CASE("fused_mlp: shapes with layouts and dtypes and activations") {
  const std::vector<std::int64_t> tokens = {1, 2, 3, 5, 8, 9, 17, 33, 65},
                                  sizes = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 97, 129};
  constexpr Lie lies_w[] = {Lie::packed, Lie::padded, Lie::transposed, Lie::spaced};
  std::uint64_t seed = 1;
  for (const auto& row : pairwise({tokens.size(), sizes.size(), sizes.size(), sizes.size(), 3, 3, 2, 2,
                                   std::size(acts), std::size(input_lies), std::size(lies_w), 3})) {
    const Sizes s{{tokens[row[0]]}, sizes[row[1]], sizes[row[2]], sizes[row[3]]};
    const Lie lie_x = input_lies[row[9]], lie_w = lies_w[row[10]];
    Block b = random_block(++seed, s, all_dtypes[row[4]], all_dtypes[row[5]], row[6] != 0, row[7] != 0, lie_x,
                           lie_w);
    b.activation = acts[row[8]];
    b.executor = &executor(static_cast<int>(row[11]));
    check_block(b, nk::text(", lies ", name_of(lie_x), "/", name_of(lie_w)));
  }
}

TEST_CASE("fused_mlp: leading dimensions") {
  std::uint64_t seed = 200;
  for (const Shape& tokens : {Shape{2, 5}, Shape{2, 1, 3}, Shape{1, 4, 33}}) {
    for (const Lie lie : {Lie::packed, Lie::padded, Lie::transposed}) {
      ++seed;
      check_block(random_block(seed, {tokens, 19, 37, 23}, all_dtypes[seed % 3], DType::f32, seed % 2 == 0,
                               true, lie));
    }
  }
}

TEST_CASE("fused_mlp: the block of SmolLM2-135M") {
  using namespace smollm2;
  std::uint64_t seed = 300;
  for (const std::int64_t tokens : {1, 2, 9, 65}) {
    for (const DType dtype : all_dtypes) {
      Block b = random_block(++seed, {{1, tokens}, hidden, inner, hidden}, dtype, dtype, true, false);
      b.executor = nullptr;
      check_block(b);
    }
  }
  // MiniLM's, but for gelu.
  check_block(random_block(++seed, {{7}, 384, 1536, 384}, DType::f32, DType::f32, false, true));
}

TEST_CASE("fused_mlp: small integers come out exact") {
  std::uint64_t seed = 400;
  for (const bool gated : {false, true}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const auto& [tokens, hidden, inner] :
           {std::array<std::int64_t, 3>{1, 3, 5}, {5, 9, 300}, {40, 17, 33}}) {
        Random random(++seed);
        Block b = random_block(seed, {{tokens}, hidden, inner, hidden}, dtype, DType::f32, gated, true);
        for (Tensor* t : {&b.x, &b.up, &b.down, &b.gate, &b.up_bias, &b.down_bias, &b.gate_bias}) {
          for (std::int64_t i = 0; t->given() && i < t->size(); ++i) t->set(i, random.integer(1));
        }
        // h is at most (hidden + 1)^2: exact in f32, and in bf16 as long as h <= 256.
        b.activation = Act::relu;
        if (dtype == DType::bf16 && hidden > 15) continue;
        const Matrix want = reference::fused_mlp(b.x.rows(), b.meaning());
        on_each_page([&] { check_equal("fused_mlp", describe(b), b.run(), want); });
      }
    }
  }
}

/// One hidden unit per token value:
/// x [t, 1] with weights 1 gives dst [t, 1] = act(x), so the activation shows alone.
Block activation_alone(const std::vector<double>& values, std::int64_t inner, DType dtype, Act f) {
  const auto tokens = static_cast<std::int64_t>(values.size());
  Block b;
  b.x =
      Tensor::of(dtype, {tokens, 1}, {}, [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; });
  b.dst = Tensor(DType::f32, {tokens, inner});
  b.up = Tensor::constant(dtype, {inner, 1}, 1);
  b.down = Tensor::of(dtype, {inner, inner}, {},
                      [&](std::int64_t i) { return i / inner == i % inner ? 1.0 : 0.0; });
  b.activation = f;
  return b;
}

TEST_CASE("fused_mlp: erf gelu is not tanh gelu") {  // they differ by at most 4.7e-4, near |x| = 2.7
  const std::vector<double> values = {-2.7, 2.7, -2.75, -3,   3,     -0.5, 0.5,   -1,  1,
                                      0,    -4,  4,     1.75, -1.75, 2.25, -2.25, 0.25};
  for (const std::int64_t inner : {1, 7, 16, 33}) {  // each value in every lane and tail
    for (const Act f : {Act::gelu, Act::gelu_tanh}) {
      const Block b = activation_alone(values, inner, DType::f32, f);
      const Matrix want =
          b.x.rows().unaryExpr([&](double x) { return reference::activation(f, x); }).replicate(1, inner);
      on_each_page([&] {
        const Tensor dst = b.run();
        check_near("fused_mlp", describe(b), dst, dst.rows(),
                   {want, Matrix::Constant(want.rows(), want.cols(), 1e-6)});
      });
    }
  }
  CHECK(std::abs(reference::activation(Act::gelu, -2.7) + 0.0093608) < 1e-7);
  CHECK(std::abs(reference::activation(Act::gelu_tanh, -2.7) + 0.0088876) < 1e-7);
}

TEST_CASE("fused_mlp: activations far out") {
  std::vector<double> values;
  for (const double x : {13.24, 20.0, 88.8, 89.0, 100.0, 104.0, 1000.0, 1e4, 6e4, 65504.0})
    values.insert(values.end(), {x, -x});
  for (const DType dtype : all_dtypes) {
    check_block(activation_alone(values, 9, dtype, Act::silu));
    for (const Act f : {Act::gelu, Act::gelu_tanh}) {  // x or 0, to the last bit
      const Block b = activation_alone(values, 9, dtype, f);
      const Matrix want = b.x.rows().cwiseMax(0).replicate(1, 9);
      on_each_page([&] {
        const Tensor dst = b.run();
        check_near("fused_mlp", describe(b), dst, dst.rows(),
                   {want, want.unaryExpr([](double x) { return x > 0 ? 0 : 1e-30; })});
      });
    }
  }
}

TEST_CASE("fused_mlp: empty sizes") {
  for (const DType dtype : all_dtypes) {
    for (const bool gated : {false, true}) {
      for (const Sizes& s : {Sizes{{0}, 5, 7, 5}, {{3}, 5, 7, 0}, {{2, 0}, 5, 7, 5}}) {
        const Block b = random_block(500, s, dtype, dtype, gated, true);
        on_each_page([&] {
          check(b.run().outside_untouched(), "fused_mlp", describe(b) + ": wrote a dst of no elements");
        });
      }
      // inner 0: the bias alone; hidden 0: biases and activation.
      check_block(random_block(501, {{3}, 5, 0, 4}, dtype, dtype, gated, true));
      check_block(random_block(502, {{3}, 0, 6, 4}, dtype, dtype, gated, true));
      check_block(random_block(503, {{20}, 5, 0, 40}, dtype, dtype, gated, false));
    }
  }
}

TEST_CASE("fused_mlp: NaN stays in its token") {
  for (const bool gated : {false, true}) {
    for (const DType dtype : all_dtypes) {
      Block b = random_block(600, {{5}, 33, 70, 41}, dtype, DType::f32, gated, true);
      b.x.set(2 * 33 + 32, std::numeric_limits<double>::quiet_NaN());
      check_block(b);
      b.activation = Act::relu;
      check_block(b);
    }
  }
}

}  // namespace
}  // namespace test
