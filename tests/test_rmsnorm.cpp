// rmsnorm against its meaning in double.
#include "neuron_kernels/rmsnorm.hpp"

#include "norms.hpp"
#include "reference/rmsnorm.hpp"

namespace test {
namespace {

const NormKernel kernel = {"rmsnorm", false,
                           [](nk::View dst, nk::ConstView src, nk::View sum, const NormCall& c) {
                             nk::rmsnorm(dst, src,
                                         {.weight = c.weight.view(),
                                          .eps = c.eps,
                                          .residual = c.residual.view(),
                                          .sum = sum,
                                          .executor = c.executor});
                           },
                           [](const Matrix& x, const Eigen::RowVectorXd& weight, const Eigen::RowVectorXd&,
                              double eps) { return reference::rmsnorm_bound(x, weight, eps); }};

TEST_CASE("rmsnorm: shapes with layouts and dtypes and options") { check_norm_pairs(kernel); }
TEST_CASE("rmsnorm: in place") { check_norm_in_place(kernel); }
TEST_CASE("rmsnorm: extreme values") { check_norm_extremes(kernel); }
TEST_CASE("rmsnorm: empty sizes") { check_norm_empty(kernel); }
TEST_CASE("rmsnorm: large tensors") { check_norm_large(kernel); }
TEST_CASE("rmsnorm: NaN stays in its row") { check_norm_nan(kernel); }

TEST_CASE("rmsnorm: rows of SmolLM2-135M") {
  for (const std::int64_t tokens : {1, 37}) {
    for (const DType dtype : all_dtypes) {
      Random random(30);
      NormCall c = plain_call(Tensor::normal(random, dtype, {1, tokens, smollm2::hidden}, {}, 3));
      c.weight = Tensor::normal(random, dtype, {smollm2::hidden});
      c.residual = Tensor::normal(random, dtype, {1, tokens, smollm2::hidden}),
      c.sum = Tensor(dtype, {1, tokens, smollm2::hidden});
      c.executor = nullptr;
      check_norm(kernel, c);
    }
  }
}

TEST_CASE("rmsnorm: squares of 16-bit rows are summed in f32") {
  for (const std::int64_t n : {8, 4096, 16384}) {  // 300^2 is above the largest f16
    check_norm(kernel, plain_call(Tensor::constant(DType::f16, {1, n}, 300)));
  }
  // In bf16 ones added to 256^2 would be lost.
  check_norm(kernel, plain_call(Tensor::of(DType::bf16, {1, 4096}, {},
                                           [](std::int64_t i) { return i == 0 ? 256.0 : 1.0; })));
}

TEST_CASE("rmsnorm: eps stands under the root") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    NormCall c = plain_call(Tensor::constant(dtype, {1, 64}, 0x1p-10));
    c.eps = 0x1p-20f;
    on_each_page([&] {
      Tensor dst = c.dst;
      kernel.run(dst.view(), c.src.view(), {}, c);
      check_near(
          kernel.name, describe(c), dst, 0,
          {Matrix::Constant(1, 64, std::sqrt(0.5)), Matrix::Constant(1, 64, reference::function_error)});
    });
  }
}

TEST_CASE("rmsnorm: scales in f32 and rounds once") {
  // 2^-8 + 1 of a weight in f32 would vanish if x / rms were rounded to bf16 before it.
  Random random(31);
  NormCall c = plain_call(Tensor::normal(random, DType::bf16, {64, 128}));
  c.weight = Tensor::of(DType::f32, {128}, {}, [&](std::int64_t) { return 1 + 0.3 * random.normal(); });
  const auto want = kernel.reference(c.src.rows(), vector_of(c.weight), {}, static_cast<double>(c.eps));
  on_each_page([&] {
    Tensor dst = c.dst;
    kernel.run(dst.view(), c.src.view(), {}, c);
    std::int64_t equal = 0;
    for (std::int64_t i = 0; i < dst.size(); ++i)
      equal += dst.at(i) == rounded(DType::bf16, want.value(i / 128, i % 128)) ? 1 : 0;
    check(equal * 100 >= dst.size() * 99, kernel.name,
          nk::text("only ", equal, " of ", dst.size(), " elements are the exact value rounded once"));
  });
}

}  // namespace
}  // namespace test
