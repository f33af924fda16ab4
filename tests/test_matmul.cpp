// matmul against its meaning in double: shapes, layouts, dtypes, fused terms, and the rules for what it may
// not read. Wrong calls are in test_rejects.cpp, equalities between calls in test_properties.cpp.
#include "neuron_kernels/matmul.hpp"

#include "cases.hpp"
#include "harness.hpp"
#include "reference/matmul.hpp"

namespace test {
namespace {

using nk::Act;
using reference::MatmulTerms;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

/// One call with all its tensors; empty ones are not given.
struct Product {
  Tensor a, b, c, bias, residual;  // c: what dst holds before the call
  float alpha = 1, beta = 0;
  Act activation = Act::identity;
  nk::Executor* executor = &test::executor(0);

  nk::MatmulOptions options() const {
    return {.alpha = alpha,
            .beta = beta,
            .bias = bias.view(),
            .activation = activation,
            .residual = residual.view(),
            .executor = executor};
  }
  Tensor run() const {
    Tensor dst = c;
    nk::matmul(dst.view(), a.view(), b.view(), options());
    return dst;
  }
  MatmulTerms terms(std::int64_t batch) const {
    MatmulTerms t{.alpha = static_cast<double>(alpha),
                  .beta = static_cast<double>(beta),
                  .dst = c.matrix(batch),
                  .bias = {},
                  .activation = activation,
                  .residual = {}};
    if (bias.given()) t.bias = bias.matrix().row(0);
    if (residual.given()) t.residual = residual.matrix(batch);
    return t;
  }
};

std::string shape_of(const Tensor& t) {
  return nk::shape_text(t.view().layout) + " " + nk::name_of(t.dtype());
}

std::string describe(const Product& p) {
  return nk::text("a ", shape_of(p.a), ", b ", shape_of(p.b), ", dst ", shape_of(p.c), ", alpha ", p.alpha,
                  ", beta ", p.beta, p.bias.given() ? ", bias" : "", p.residual.given() ? ", residual" : "",
                  ", ", nk::name_of(p.activation));
}

/// Runs a product of one batch on each page against the reference.
void check_product(const Product& p, const std::string& layouts = "") {
  const auto want = reference::matmul_bound(p.a.matrix(), p.b.matrix(), p.terms(0));
  on_each_page([&] {
    const Tensor dst = p.run();
    check_near("matmul", describe(p) + layouts, dst, 0, want);
  });
}

/// The sizes, layouts, dtypes and fused terms in pairs.
void check_pairs(const std::vector<std::int64_t>& m, const std::vector<std::int64_t>& n,
                 const std::vector<std::int64_t>& k) {
  enum Epilogue { plain, scaled, added, biased, activated, with_residual, all, epilogues };
  constexpr Act acts[] = {Act::relu, Act::silu, Act::gelu, Act::gelu_tanh, Act::sigmoid, Act::tanh};
  std::uint64_t seed = 1;
  for (const auto& row : pairwise({m.size(), n.size(), k.size(), 3, 3, std::size(input_lies),
                                   std::size(input_lies), std::size(output_lies), epilogues, 3})) {
    Random random(++seed);
    const auto m_len = m[row[0]], n_len = n[row[1]], k_len = k[row[2]];
    const DType in = all_dtypes[row[3]], out = all_dtypes[row[4]];
    const Lie lie_a = input_lies[row[5]], lie_b = input_lies[row[6]], lie_c = output_lies[row[7]];
    const auto epilogue = static_cast<Epilogue>(row[8]);
    const auto has = [&](Epilogue e) { return epilogue == e || epilogue == all; };
    Product p;
    p.a = Tensor::normal(random, in, {m_len, k_len}, strides_for({m_len, k_len}, lie_a));
    p.b = Tensor::normal(random, in, {k_len, n_len}, strides_for({k_len, n_len}, lie_b));
    p.c = Tensor(out, {m_len, n_len}, strides_for({m_len, n_len}, lie_c));
    p.executor = &executor(static_cast<int>(row[9]));
    if (has(scaled)) p.alpha = -0.37f;
    if (has(added)) {
      p.beta = 1.75f;
      for (std::int64_t i = 0; i < p.c.size(); ++i) p.c.set(i, random.normal());
    }
    if (has(biased)) p.bias = Tensor::normal(random, all_dtypes[seed % 3], {n_len}, {seed % 2 == 0 ? 1 : 2});
    if (has(activated)) p.activation = acts[seed % std::size(acts)];
    if (has(with_residual)) {
      p.residual = Tensor::normal(random, all_dtypes[seed / 3 % 3], {m_len, n_len},
                                  strides_for({m_len, n_len}, lie_a));
    }
    check_product(p, nk::text(", lies ", name_of(lie_a), "/", name_of(lie_b), "/", name_of(lie_c)));
  }
}

TEST_CASE("matmul: small shapes with layouts and dtypes and fused terms") {
  check_pairs(small_sizes, small_sizes, small_sizes);
}

TEST_CASE("matmul: shapes around the blocks") {
  const std::vector<std::int64_t> few = {1, 6, 7, 14, 43};
  check_pairs(joined(few, step_sizes), joined(few, step_sizes), joined({1, 31, 257, 511}, step_sizes));
}

TEST_CASE("matmul: the projections of SmolLM2-135M") {
  using namespace smollm2;
  std::uint64_t seed = 300;
  for (const std::int64_t tokens : {1, 3, 37, 130}) {
    for (const auto& [to, from] : {std::pair{inner, hidden}, {hidden, inner}, {kv_heads * d, hidden}}) {
      Random random(++seed);
      Product p;
      p.a = Tensor::normal(random, all_dtypes[seed % 3], {tokens, from});
      // Weight [to, from], transposed.
      p.b = Tensor::normal(random, all_dtypes[seed % 3], {from, to}, {1, from});
      p.c = Tensor(DType::f32, {tokens, to});
      p.executor = &executor(2);
      check_product(p);
    }
  }
}

TEST_CASE("matmul: batches broadcast and keep their strides") {
  struct Batches {
    Shape a, b, dst;
  };
  const Batches cases[] = {{{3, 5, 7}, {3, 7, 9}, {3, 5, 9}},
                           {{3, 5, 7}, {1, 7, 9}, {3, 5, 9}},
                           {{1, 5, 7}, {3, 7, 9}, {3, 5, 9}},
                           {{2, 3, 4, 17}, {2, 3, 17, 5}, {2, 3, 4, 5}},
                           {{2, 1, 4, 17}, {1, 3, 17, 5}, {2, 3, 4, 5}},
                           {{1, 3, 1, 65}, {2, 1, 65, 33}, {2, 3, 1, 33}},
                           {{2, 3, 20, 8}, {8, 33}, {2, 3, 20, 33}},
                           {{3, 20, 8}, {8, 33}, {3, 20, 33}}};
  std::uint64_t seed = 400;
  for (const Batches& s : cases) {
    for (const Lie lie : {Lie::packed, Lie::padded, Lie::transposed}) {
      Random random(++seed);
      Product p;
      p.a = Tensor::normal(random, all_dtypes[seed % 3], s.a, strides_for(s.a, lie));
      p.b = Tensor::normal(random, all_dtypes[seed % 3], s.b, strides_for(s.b, Lie::packed));
      p.c = Tensor::normal(random, DType::f32, s.dst, strides_for(s.dst, lie));
      p.residual = Tensor::normal(random, DType::bf16, s.dst);
      p.beta = 0.5f;
      p.executor = &executor(static_cast<int>(seed % 3));
      const auto index = [](const Shape& t, std::size_t rank, std::int64_t outer, std::int64_t inner) {
        const auto size = [&](std::size_t axis) {
          return axis + t.size() < rank ? 1 : t[axis + t.size() - rank];
        };
        const std::int64_t o = rank == 4 && size(0) > 1 ? outer : 0, i = size(rank - 3) > 1 ? inner : 0;
        return o * size(rank - 3) + i;
      };
      const std::size_t rank = s.dst.size();
      on_each_page([&] {
        const Tensor dst = p.run();
        const std::int64_t inners = s.dst[rank - 3];
        for (std::int64_t batch = 0; batch < inners * (rank == 4 ? s.dst[0] : 1); ++batch) {
          const std::int64_t outer = batch / inners, inner = batch % inners;
          const auto want =
              reference::matmul_bound(p.a.matrix(index(s.a, rank, outer, inner)),
                                      p.b.matrix(index(s.b, rank, outer, inner)), p.terms(batch));
          check_near("matmul", nk::text(describe(p), ", ", name_of(lie), ", batch ", batch), dst, batch,
                     want);
        }
      });
    }
  }
}

TEST_CASE("matmul: small integers come out exact") {
  std::uint64_t seed = 500;
  for (const auto& sizes : {std::array<std::int64_t, 3>{1, 1, 576},
                            {5, 17, 300},
                            {64, 33, 129},
                            {131, 97, 65},
                            {8, 520, 301},
                            {600, 40, 9}}) {
    const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    for (const DType dtype : all_dtypes) {
      Random random(++seed);
      const auto draw = [&](std::int64_t) { return random.integer(4); };
      Product p;
      p.a = Tensor::of(dtype, {m, k}, {}, draw);
      p.b = Tensor::of(dtype, {k, n}, {}, draw);
      p.c = Tensor::of(DType::f32, {m, n}, {}, draw);
      p.bias = Tensor::of(dtype, {n}, {}, draw);
      p.residual = Tensor::of(dtype, {m, n}, {}, draw);
      p.alpha = 2, p.beta = -3, p.activation = Act::relu, p.executor = &executor(1);
      const Matrix want = reference::matmul(p.a.matrix(), p.b.matrix(), p.terms(0));
      on_each_page([&] { check_equal("matmul", describe(p), p.run(), want); });
    }
  }
}

TEST_CASE("matmul: sums of 16-bit ones do not stall") {  // bf16 stops at 256, f16 at 2048
  for (const auto& sizes : {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 33}, {17, 1}, {9, 35}}) {
    const std::int64_t m = sizes.first, n = sizes.second;
    for (const std::int64_t k : {256, 257, 2049, 32768, 65536}) {
      for (const DType dtype : {DType::bf16, DType::f16}) {
        const Product p{.a = Tensor::constant(dtype, {m, k}, 1),
                        .b = Tensor::constant(dtype, {k, n}, 1),
                        .c = Tensor(DType::f32, {m, n}),
                        .bias = {},
                        .residual = {}};
        on_each_page([&] {
          check_equal("matmul", describe(p), p.run(), Matrix::Constant(m, n, static_cast<double>(k)));
        });
      }
    }
  }
}

const std::array<std::int64_t, 3> any_shapes[] = {{1, 1, 1},     {8, 8, 8},    {33, 17, 5},
                                                  {65, 129, 64}, {1, 130, 70}, {130, 1, 70}};

TEST_CASE("matmul: beta 0 does not read dst") {
  for (const auto& sizes : any_shapes) {
    const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    for (const DType dtype : all_dtypes) {
      for (const double left : {nan, inf, -inf}) {
        Random random(600);
        const Product p{.a = Tensor::normal(random, dtype, {m, k}),
                        .b = Tensor::normal(random, dtype, {k, n}),
                        .c = Tensor::constant(dtype, {m, n}, left),
                        .bias = {},
                        .residual = {},
                        .alpha = 0.5f};
        check_product(p);
      }
    }
  }
}

TEST_CASE("matmul: alpha 0 does not read a and b") {
  for (const auto& sizes : any_shapes) {
    const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    for (const DType dtype : all_dtypes) {
      const Product p{.a = Tensor::constant(dtype, {m, k}, nan),
                      .b = Tensor::constant(dtype, {k, n}, inf),
                      .c = Tensor::constant(dtype, {m, n}, 1),
                      .bias = Tensor::constant(dtype, {n}, 2),
                      .residual = {},
                      .alpha = 0,
                      .beta = 3};
      on_each_page([&] { check_equal("matmul", describe(p), p.run(), Matrix::Constant(m, n, 5)); });
    }
  }
}

TEST_CASE("matmul: empty sizes") {
  // k = 0: a b is 0.
  for (const auto& sizes : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 40}, {130, 7}}) {
    for (const DType dtype : all_dtypes) {
      const std::int64_t m = sizes.first, n = sizes.second;
      Product p{.a = Tensor(dtype, {m, 0}),
                .b = Tensor(dtype, {0, n}),
                .c = Tensor(dtype, {m, n}),
                .bias = {},
                .residual = {}};
      on_each_page([&] { check_equal("matmul", describe(p), p.run(), Matrix::Zero(m, n)); });
      p.c = Tensor::constant(dtype, {m, n}, 1), p.beta = 2, p.bias = Tensor::constant(dtype, {n}, -5),
      p.activation = Act::relu, p.residual = Tensor::constant(dtype, {m, n}, 7);
      on_each_page([&] { check_equal("matmul", describe(p), p.run(), Matrix::Constant(m, n, 7)); });
    }
  }
  const std::array<Shape, 3> nothing[] = {{{{0, 3}, {3, 4}, {0, 4}}},
                                          {{{2, 3}, {3, 0}, {2, 0}}},
                                          {{{0, 0}, {0, 0}, {0, 0}}},
                                          {{{0, 2, 3}, {0, 3, 4}, {0, 2, 4}}},
                                          {{{2, 0, 2, 3}, {3, 4}, {2, 0, 2, 4}}}};
  for (const auto& [a, b, dst] : nothing) {
    Product p{.a = Tensor(DType::f32, a),
              .b = Tensor(DType::f32, b),
              .c = Tensor(DType::f32, dst),
              .bias = {},
              .residual = {}};
    on_each_page([&] {
      const Tensor out = p.run();
      check(out.outside_untouched(), "matmul", describe(p) + ": wrote a dst of no elements");
    });
  }
  nk::matmul(nk::View(static_cast<float*>(nullptr), {0, 4}),
             nk::ConstView(static_cast<const float*>(nullptr), {0, 3}), Tensor(DType::f32, {3, 4}).view());
}

TEST_CASE("matmul: NaN and infinities reach what they belong to and nothing else") {
  for (const auto& sizes : {std::array<std::int64_t, 3>{5, 9, 7}, {40, 70, 130}, {1, 65, 33}}) {
    const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    for (const DType dtype : all_dtypes) {
      Random random(700);
      Product p{.a = Tensor::normal(random, dtype, {m, k}),
                .b = Tensor::normal(random, dtype, {k, n}),
                .c = Tensor(DType::f32, {m, n}),
                .bias = {},
                .residual = {}};
      p.a.set((m - 1) * k + k - 1, nan);
      p.b.set(n - 1, inf);
      p.b.set((k - 1) * n, nan);
      check_product(p);
      for (const Act f : {Act::relu, Act::silu, Act::gelu, Act::gelu_tanh, Act::sigmoid, Act::tanh}) {
        p.activation = f;
        check_product(p);
      }
    }
  }
}

TEST_CASE("matmul: denormal and huge values keep their bounds") {
  for (const double scale : {0x1p-140, 0x1p-70, 0x1p60}) {
    for (const auto& sizes : {std::array<std::int64_t, 3>{3, 17, 5}, {33, 40, 65}}) {
      const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2];
      Random random(800);
      check_product({.a = Tensor::normal(random, DType::f32, {m, k}, {}, scale),
                     .b = Tensor::normal(random, DType::f32, {k, n}, {}, scale < 1e-40 ? 1 : scale),
                     .c = Tensor(DType::f32, {m, n}),
                     .bias = {},
                     .residual = {}});
    }
  }
}

TEST_CASE("matmul: dimensions of size 1 may have any stride") {
  Random random(900);
  const Tensor a = Tensor::normal(random, DType::f32, {1, 2}), b = Tensor::normal(random, DType::f32, {2, 1}),
               c = Tensor(DType::f32, {1, 1});
  for (const std::int64_t stride :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{16384}, std::int64_t{1} << 40, std::int64_t{-7}}) {
    on_each_page([&] {
      Tensor dst = c;
      const auto odd = [&](nk::ConstView v, std::size_t axis) { return v.layout.stride[axis] = stride, v; };
      nk::View out = dst.view();
      out.layout.stride = {stride, stride};
      nk::matmul(out, odd(a.view(), 0), odd(b.view(), 1));
      check_near("matmul", nk::text("[1, 2] x [2, 1], stride ", stride), dst, 0,
                 reference::matmul_bound(a.matrix(), b.matrix()));
    });
  }
}

TEST_CASE("matmul: packed weights give the same product") {
  std::uint64_t seed = 1000;
  for (const auto& sizes : {std::array<std::int64_t, 3>{1, 1, 1},
                            {1, 576, 576},
                            {5, 17, 31},
                            {8, 33, 129},
                            {130, 65, 300},
                            {3, 7, 0},
                            {0, 4, 5}}) {
    const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    for (const DType dtype : all_dtypes) {
      for (const Lie lie : {Lie::packed, Lie::transposed, Lie::spaced}) {
        Random random(++seed);
        Product p{.a = Tensor::normal(random, dtype, {2, m, k}),
                  .b = {},
                  .c = Tensor::normal(random, DType::f32, {2, m, n}),
                  .bias = Tensor::normal(random, dtype, {n}),
                  .residual = Tensor::normal(random, dtype, {2, m, n}),
                  .alpha = 0.5f,
                  .beta = -1,
                  .activation = Act::silu,
                  .executor = &executor(static_cast<int>(seed % 3))};
        p.b = Tensor::normal(random, dtype, {k, n}, strides_for({k, n}, lie));
        on_each_page([&] {
          const nk::PackedMatrix packed = nk::pack_matrix(p.b.view());
          Tensor dst = p.c;
          nk::matmul(dst.view(), p.a.view(), packed, p.options());
          for (std::int64_t batch = 0; m != 0 && batch < 2; ++batch) {
            check_near("matmul", "packed b, " + describe(p), dst, batch,
                       reference::matmul_bound(p.a.matrix(batch), p.b.matrix(), p.terms(batch)));
          }
        });
      }
    }
  }
}

}  // namespace
}  // namespace test
