// layernorm against its meaning in double.
#include "neuron_kernels/layernorm.hpp"

#include "norms.hpp"
#include "reference/layernorm.hpp"

namespace test {
namespace {

const NormKernel kernel = {"layernorm", true,
                           [](nk::View dst, nk::ConstView src, nk::View sum, const NormCall& c) {
                             nk::layernorm(dst, src,
                                           {.weight = c.weight.view(),
                                            .bias = c.bias.view(),
                                            .eps = c.eps,
                                            .residual = c.residual.view(),
                                            .sum = sum,
                                            .executor = c.executor});
                           },
                           &reference::layernorm_bound};

TEST_CASE("layernorm: shapes with layouts and dtypes and options") { check_norm_pairs(kernel); }
TEST_CASE("layernorm: in place") { check_norm_in_place(kernel); }
TEST_CASE("layernorm: extreme values") { check_norm_extremes(kernel); }
TEST_CASE("layernorm: empty sizes") { check_norm_empty(kernel); }
TEST_CASE("layernorm: large tensors") { check_norm_large(kernel); }
TEST_CASE("layernorm: NaN stays in its row") { check_norm_nan(kernel); }

TEST_CASE("layernorm: rows of MiniLM and SmolLM2-135M") {
  for (const std::int64_t n : {std::int64_t{384}, smollm2::hidden}) {
    for (const DType dtype : all_dtypes) {
      Random random(20);
      NormCall c = plain_call(Tensor::normal(random, dtype, {2, 19, n}, {}, 3));
      c.weight = Tensor::normal(random, dtype, {n}), c.bias = Tensor::normal(random, dtype, {n});
      c.residual = Tensor::normal(random, dtype, {2, 19, n}), c.sum = Tensor(dtype, {2, 19, n});
      c.executor = nullptr;
      check_norm(kernel, c);
    }
  }
}

TEST_CASE("layernorm: a large mean costs no more than its own last digit") {
  for (const std::int64_t n : {5, 64, 768, 4096, 32768}) {
    for (const double mean : {1e2, 1e3, 1e4, 1e6, -1e6}) {
      for (const double spread : {0.01, 1.0, 100.0}) {
        Random random(21);
        check_norm(kernel,
                   plain_call(Tensor::of(DType::f32, {2, n}, {},
                                         [&](std::int64_t) { return mean + spread * random.normal(); })),
                   nk::text(", mean ", mean, " +- ", spread));
      }
    }
  }
}

TEST_CASE("layernorm: no variance gives exactly the bias") {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t n : {1, 8, 64, 100, 129}) {
      for (const double value : {0.0, 3.0, -0.1, 300.7, 65000.0}) {
        NormCall c = plain_call(Tensor::constant(dtype, {2, n}, value));
        c.weight = Tensor::constant(dtype, {n}, 5), c.bias = Tensor::constant(dtype, {n}, 3);
        // The sum of n equal values is exact where they have few digits or n is 1, and then so is the mean.
        if (n != 1 && value != 0 && value != 3) continue;
        on_each_page([&] {
          Tensor dst = c.dst;
          kernel.run(dst.view(), c.src.view(), {}, c);
          check_equal(kernel.name, nk::text(describe(c), ", all ", value), dst, Matrix::Constant(2, n, 3));
        });
      }
    }
  }
}

TEST_CASE("layernorm: eps stands under the root") {
  for (const DType dtype : {DType::f32, DType::bf16}) {  // +-s: variance s^2, so y = s / sqrt(s^2 + eps)
    NormCall c = plain_call(
        Tensor::of(dtype, {1, 64}, {}, [](std::int64_t i) { return i % 2 == 0 ? 0x1p-10 : -0x1p-10; }));
    c.eps = 0x1p-20f;
    on_each_page([&] {
      Tensor dst = c.dst;
      kernel.run(dst.view(), c.src.view(), {}, c);
      check_near(
          kernel.name, describe(c), dst, 0,
          {c.src.matrix() * (0x1p10 * std::sqrt(0.5)), Matrix::Constant(1, 64, reference::function_error)});
    });
  }
}

}  // namespace
}  // namespace test
