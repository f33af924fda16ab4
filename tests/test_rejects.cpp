// Every wrong call of the five kernels: a ShapeError that names call, argument, what was given and what is
// allowed, and an untouched dst. Calls that only look wrong are in the last test.
#include "cases.hpp"
#include "harness.hpp"
#include "neuron_kernels/flash_attention.hpp"
#include "neuron_kernels/fused_mlp.hpp"
#include "neuron_kernels/layernorm.hpp"
#include "neuron_kernels/matmul.hpp"
#include "neuron_kernels/rmsnorm.hpp"

namespace test {
namespace {

using nk::ConstView;
using nk::View;

Tensor ones(const Shape& shape, DType dtype = DType::f32) { return Tensor::constant(dtype, shape, 1); }

/// A view of that shape without memory behind it.
ConstView null_view(const Shape& shape) { return {nullptr, DType::f32, nk::Layout(shape)}; }

/// The same first element with another shape and other strides.
template <class V>
V reshaped(const V& v, const Shape& shape, const Shape& strides) {
  return {v.data, v.dtype, nk::Layout(shape, strides)};
}
View reshaped(const View& v, const Shape& shape, const Shape& strides) {
  return {v.writable(), v.dtype, nk::Layout(shape, strides)};
}

TEST_CASE("matmul: rejects wrong operands") {
  Tensor dst(DType::f32, {3, 5});
  const Tensor a = ones({3, 4}), b = ones({4, 5});
  const auto rejects = [&](const std::string& arguments, const std::vector<std::string>& shown,
                           const View& to, const ConstView& x, const ConstView& y,
                           const nk::MatmulOptions& options = {}) {
    check_rejects("matmul", arguments, shown, dst, [&] { nk::matmul(to, x, y, options); });
  };
  const View c = dst.view();
  rejects("a", {}, c, {}, b.view());
  rejects("b", {}, c, a.view(), {});
  rejects("dst", {}, {}, a.view(), b.view());
  rejects("a", {"rank 1", "2 to 4"}, c, ones({4}).view(), b.view());
  rejects("b", {"rank 1", "2 to 4"}, c, a.view(), ones({4}).view());
  rejects("dst", {"rank 1", "2 to 4"}, reshaped(c, {5}, {1}), a.view(), b.view());
  rejects("a", {"null", "[3, 4]"}, c, null_view({3, 4}), b.view());
  rejects("b", {"null", "[4, 5]"}, c, a.view(), null_view({4, 5}));
  rejects("dst", {"null", "[3, 5]"}, View(nullptr, DType::f32, nk::Layout(Shape{3, 5})), a.view(), b.view());
  rejects("a|b", {"bf16", "f32"}, c, a.view(), ones({4, 5}, DType::bf16).view());
  rejects("a|b", {"f16", "bf16"}, c, ones({3, 4}, DType::f16).view(), ones({4, 5}, DType::bf16).view());
  rejects("a|b", {"[3, 4]", "[6, 5]"}, c, a.view(), ones({6, 5}).view());
  rejects("a|b|dst", {"[3, 5]"}, c, ones({2, 4}).view(), b.view());
  rejects("a|b|dst", {"[3, 5]"}, c, a.view(), ones({4, 6}).view());
  rejects("a", {"[2, 3, 4]"}, c, ones({2, 3, 4}).view(), b.view());

  const Tensor bias = ones({6}), residual = ones({3, 6});
  rejects("bias", {"[6]", "[5]"}, c, a.view(), b.view(), {.bias = bias.view(), .residual = {}});
  rejects("bias", {"rank 2"}, c, a.view(), b.view(), {.bias = ones({1, 5}).view(), .residual = {}});
  rejects("bias", {"null"}, c, a.view(), b.view(), {.bias = null_view({5}), .residual = {}});
  rejects("residual", {"[3, 6]", "[3, 5]"}, c, a.view(), b.view(), {.bias = {}, .residual = residual.view()});
  rejects("residual", {"null"}, c, a.view(), b.view(), {.bias = {}, .residual = null_view({3, 5})});
}

TEST_CASE("matmul: rejects wrong batches") {
  Tensor dst(DType::f32, {2, 3, 5});
  const auto rejects = [&](const std::string& arguments, const Tensor& a, const Tensor& b) {
    check_rejects("matmul", arguments, {}, dst, [&] { nk::matmul(dst.view(), a.view(), b.view()); });
  };
  rejects("a", ones({3, 3, 4}), ones({2, 4, 5}));
  rejects("b", ones({2, 3, 4}), ones({4, 4, 5}));
  rejects("a|dst", ones({2, 2, 3, 4}), ones({4, 5}));
  rejects("b|dst", ones({3, 4}), ones({5, 1, 4, 5}));
}

TEST_CASE("matmul: rejects strides and memory that a result must not have") {
  Tensor dst(DType::f32, {40});
  const Tensor a = ones({3, 4}), b = ones({4, 5});
  const auto rejects = [&](const std::string& arguments, const View& to, const ConstView& x,
                           const ConstView& y, const nk::MatmulOptions& options = {}) {
    check_rejects("matmul", arguments, {}, dst, [&] { nk::matmul(to, x, y, options); });
  };
  const auto to = [&](const Shape& strides) { return reshaped(dst.view(), {3, 5}, strides); };
  for (const Shape& strides : {Shape{0, 1}, Shape{5, 0}, Shape{4, 1}, Shape{1, 1}, Shape{1, 2}})
    rejects("dst", to(strides), a.view(), b.view());
  const View c = to({5, 1});
  rejects("dst|a", c, reshaped(static_cast<const ConstView&>(c), {3, 4}, {4, 1}), b.view());  // a on dst
  rejects("dst|b", c, a.view(), reshaped(static_cast<const ConstView&>(c), {4, 5}, {5, 1}));
  rejects("dst|a", to({5, 1}), reshaped(static_cast<const ConstView&>(c), {3, 4}, {1, 3}), b.view());
  rejects("dst|bias", c, a.view(), b.view(),
          {.bias = reshaped(static_cast<const ConstView&>(c), {5}, {1}), .residual = {}});
  // The residual may be dst itself, but not a part of it, nor dst transposed.
  ConstView shifted = reshaped(static_cast<const ConstView&>(c), {3, 5}, {5, 1});
  shifted.data = static_cast<const float*>(shifted.data) + 5;
  rejects("dst|residual", c, a.view(), b.view(), {.bias = {}, .residual = shifted});
  rejects("dst|residual", c, a.view(), b.view(),
          {.bias = {}, .residual = reshaped(static_cast<const ConstView&>(c), {3, 5}, {1, 3})});
}

TEST_CASE("matmul: rejects sizes that overflow") {
  Tensor dst(DType::f32, {1, 1});
  const Tensor one = ones({1, 1});
  const std::int64_t huge = std::int64_t{1} << 40, far = std::int64_t{1} << 62;
  const auto rejects = [&](const std::string& arguments, const ConstView& x, const ConstView& y) {
    check_rejects("matmul", arguments, {}, dst, [&] { nk::matmul(dst.view(), x, y); });
  };
  const ConstView v = one.view();
  rejects("a|b", reshaped(v, {1, huge}, {1, 0}), reshaped(v, {huge, 1}, {0, 1}));
  rejects("a", reshaped(v, {1, 3}, {1, far}), reshaped(v, {3, 1}, {1, 1}));
  rejects("b", reshaped(v, {1, 3}, {3, 1}), reshaped(v, {3, 1}, {-far, 1}));
}

TEST_CASE("pack_matrix: rejects what is not a matrix") {
  const Tensor none;
  check_rejects("pack_matrix", "b", {"rank 3"}, none, [] { nk::pack_matrix(ones({2, 3, 4}).view()); });
  check_rejects("pack_matrix", "b", {"rank 1"}, none, [] { nk::pack_matrix(ones({4}).view()); });
  check_rejects("pack_matrix", "b", {"null"}, none, [] { nk::pack_matrix(null_view({3, 4})); });
  check_rejects("pack_matrix", "b", {}, none, [] { nk::pack_matrix({}); });
  Tensor dst(DType::f32, {3, 5});
  const nk::PackedMatrix packed = nk::pack_matrix(ones({4, 5}).view());
  check_rejects("matmul", "a|b", {"bf16", "f32"}, dst, [&] {
    nk::matmul(dst.view(), ones({3, 4}, DType::bf16).view(), packed);
  });
  check_rejects("matmul", "a|b", {"[3, 6]"}, dst, [&] {
    nk::matmul(dst.view(), ones({3, 6}).view(), packed);
  });
  check_rejects("matmul", "dst", {"[3, 5]"}, dst, [&] {
    nk::matmul(dst.view(), ones({2, 4}).view(), packed);
  });
}

// Both norms take the same operands; rmsnorm has no bias.
template <class Options>
void check_norm_rejects(const std::string& name, void (*call)(View, ConstView, const Options&)) {
  Tensor dst(DType::f32, {3, 8});
  const Tensor src = ones({3, 8});
  const auto rejects = [&](const std::string& arguments, const std::vector<std::string>& shown,
                           const View& to, const ConstView& from, const Options& options) {
    check_rejects(name, arguments, shown, dst, [&] { call(to, from, options); });
  };
  const auto with = [](auto member, const auto& view) {
    Options options;
    options.*member = view;
    return options;
  };
  const View y = dst.view();
  const ConstView x = src.view();
  rejects("src", {}, y, {}, {});
  rejects("dst", {}, {}, x, {});
  rejects("src", {"null", "[3, 8]"}, y, null_view({3, 8}), {});
  rejects("dst", {"null"}, View(nullptr, DType::f32, nk::Layout(Shape{3, 8})), x, {});
  rejects("dst|src", {"[3, 8]", "[3, 9]"}, y, ones({3, 9}).view(), {});
  rejects("dst|src", {"rank", "[3, 8]"}, y, ones({24}).view(), {});
  rejects("dst", {"stride"}, reshaped(y, {3, 8}, {0, 1}), x, {});
  rejects("dst", {"stride"}, reshaped(y, {3, 8}, {7, 1}), x, {});
  rejects("weight", {"[3]", "[8]"}, y, x, with(&Options::weight, ones({3}).view()));
  rejects("weight", {"rank 2"}, y, x, with(&Options::weight, ones({1, 8}).view()));
  rejects("weight", {"null"}, y, x, with(&Options::weight, null_view({8})));
  rejects("residual", {"[3, 7]", "[3, 8]"}, y, x, with(&Options::residual, ones({3, 7}).view()));
  rejects("residual", {"bf16", "f32"}, y, x, with(&Options::residual, ones({3, 8}, DType::bf16).view()));
  rejects("residual", {"null"}, y, x, with(&Options::residual, null_view({3, 8})));

  const Tensor residual = ones({3, 8});
  const auto with_sum = [&](const View& sum) {
    Options options = with(&Options::residual, residual.view());
    options.sum = sum;
    return options;
  };
  Tensor sum(DType::f32, {3, 8}), narrow(DType::bf16, {3, 8});
  rejects("sum", {"[8, 3]", "[3, 8]"}, y, x, with_sum(reshaped(sum.view(), {8, 3}, {3, 1})));
  rejects("sum", {"bf16", "f32"}, y, x, with_sum(narrow.view()));
  rejects("sum", {"stride"}, y, x, with_sum(reshaped(sum.view(), {3, 8}, {8, 0})));
  rejects("sum|dst", {}, y, x, with_sum(y));
  rejects("sum|dst", {}, y, x, with_sum(reshaped(y, {3, 8}, {1, 3})));
  rejects("weight|dst", {}, y, x,
          with(&Options::weight, reshaped(static_cast<const ConstView&>(y), {8}, {1})));

  // In place is the same strides and dtype, or it is an alias that does harm.
  Tensor memory(DType::f32, {64});
  const auto part = [&](std::int64_t first, const Shape& strides, DType dtype = DType::f32) {
    return View(static_cast<char*>(memory.view().writable()) + 4 * first, dtype,
                nk::Layout(Shape{3, 8}, strides));
  };
  const auto rejects_alias = [&](const View& to, const View& from) {
    check_rejects(name, "dst|src", {}, memory, [&] { call(to, from, {}); });
  };
  rejects_alias(part(0, {8, 1}), part(1, {8, 1}));
  rejects_alias(part(8, {8, 1}), part(0, {8, 1}));
  rejects_alias(part(0, {8, 1}), part(0, {1, 3}));
  rejects_alias(part(0, {8, 1}), part(0, {9, 1}));
  rejects_alias(part(0, {8, 1}, DType::bf16), part(0, {8, 1}));
  rejects_alias(part(0, {8, 1}), part(16, {-8, 1}));
}

TEST_CASE("layernorm: rejects wrong calls") {
  check_norm_rejects<nk::LayernormOptions>("layernorm", &nk::layernorm);
  Tensor dst(DType::f32, {3, 8});
  const Tensor src = ones({3, 8});
  const auto rejects = [&](const std::string& arguments, const std::vector<std::string>& shown,
                           const ConstView& bias) {
    nk::LayernormOptions options;
    options.bias = bias;
    check_rejects("layernorm", arguments, shown, dst,
                  [&] { nk::layernorm(dst.view(), src.view(), options); });
  };
  rejects("bias", {"[3]", "[8]"}, ones({3}).view());
  rejects("bias", {"null"}, null_view({8}));
  rejects("bias|dst", {}, reshaped(static_cast<const ConstView&>(dst.view()), {8}, {1}));
}

TEST_CASE("rmsnorm: rejects wrong calls") { check_norm_rejects<nk::RmsnormOptions>("rmsnorm", &nk::rmsnorm); }

TEST_CASE("fused_mlp: rejects wrong calls") {
  Tensor dst(DType::f32, {4, 3});
  const Tensor x = ones({4, 3}), up = ones({5, 3}), down = ones({3, 5}), wide = ones({5, 4}),
               bias = ones({5});
  const nk::MlpWeights right{.up = up.view(),
                             .down = down.view(),
                             .gate = up.view(),
                             .up_bias = bias.view(),
                             .down_bias = {},
                             .gate_bias = {}};
  const auto rejects = [&](const std::string& arguments, const std::vector<std::string>& shown,
                           const View& to, const ConstView& from, const nk::MlpWeights& w,
                           nk::Act f = nk::Act::silu) {
    check_rejects("fused_mlp", arguments, shown, dst, [&] { nk::fused_mlp(to, from, w, {.activation = f}); });
  };
  const auto with = [&](ConstView nk::MlpWeights::*member, const ConstView& v) {
    nk::MlpWeights w = right;
    w.*member = v;
    return w;
  };
  using W = nk::MlpWeights;
  const View y = dst.view();
  rejects("x", {}, y, {}, right);
  rejects("dst", {}, {}, x.view(), right);
  rejects("x", {"null"}, y, null_view({4, 3}), right);
  rejects("dst", {"[4, 3]"}, y, ones({2, 3}).view(), right);
  rejects("dst", {"rank 2"}, y, ones({2, 2, 3}).view(), right);
  rejects("dst", {"stride"}, reshaped(y, {4, 3}, {2, 1}), x.view(), right);
  rejects("up", {}, y, x.view(), with(&W::up, {}));
  rejects("up", {"[5, 4]", "[5, 3]"}, y, x.view(), with(&W::up, wide.view()));
  rejects("up", {"null"}, y, x.view(), with(&W::up, null_view({5, 3})));
  rejects("up", {"bf16", "f32"}, y, x.view(), with(&W::up, ones({5, 3}, DType::bf16).view()));
  rejects("down", {}, y, x.view(), with(&W::down, {}));
  rejects("down", {"[3, 6]", "[3, 5]"}, y, x.view(), with(&W::down, ones({3, 6}).view()));
  rejects("down|dst", {"[4, 3]"}, y, x.view(), with(&W::down, ones({2, 5}).view()));
  rejects("down", {"f16", "f32"}, y, x.view(), with(&W::down, ones({3, 5}, DType::f16).view()));
  rejects("gate", {"[5, 4]", "[5, 3]"}, y, x.view(), with(&W::gate, wide.view()));
  rejects("gate", {"f16", "f32"}, y, x.view(), with(&W::gate, ones({5, 3}, DType::f16).view()));
  rejects("up_bias", {"[3]", "[5]"}, y, x.view(), with(&W::up_bias, ones({3}).view()));
  rejects("gate_bias", {"[4]", "[5]"}, y, x.view(), with(&W::gate_bias, ones({4}).view()));
  rejects("down_bias", {"[5]", "[3]"}, y, x.view(), with(&W::down_bias, bias.view()));
  nk::MlpWeights plain = with(&W::gate, {});
  plain.gate_bias = bias.view();
  rejects("gate_bias", {"gate"}, y, x.view(), plain);
  for (const nk::Act f : {nk::Act::exp, nk::Act::log, nk::Act::rsqrt})
    rejects("activation", {nk::name_of(f), "silu"}, y, x.view(), right, f);
  rejects("dst|x", {}, y, y, right);
  rejects("dst|up", {}, y, x.view(),
          with(&W::up, reshaped(static_cast<const ConstView&>(y), {5, 3}, {0, 1})));
  rejects("dst|down", {}, y, x.view(),
          with(&W::down, reshaped(static_cast<const ConstView&>(y), {3, 5}, {1, 0})));
  rejects("dst|down_bias", {}, y, x.view(),
          with(&W::down_bias, reshaped(static_cast<const ConstView&>(y), {3}, {1})));
}

TEST_CASE("flash_attention: rejects wrong calls") {
  Tensor dst(DType::f32, {1, 4, 3, 8});
  const Tensor q = ones({1, 4, 3, 8}), kv = ones({1, 2, 6, 8});
  const auto rejects = [&](const std::string& arguments, const std::vector<std::string>& shown,
                           const View& to, const ConstView& q_in, const ConstView& k_in,
                           const ConstView& v_in, const nk::AttentionOptions& options = {}) {
    check_rejects("flash_attention", arguments, shown, dst,
                  [&] { nk::flash_attention(to, q_in, k_in, v_in, options); });
  };
  const View o = dst.view();
  rejects("q", {}, o, {}, kv.view(), kv.view());
  rejects("k", {}, o, q.view(), {}, kv.view());
  rejects("v", {}, o, q.view(), kv.view(), {});
  rejects("dst", {}, {}, q.view(), kv.view(), kv.view());
  rejects("q", {"rank 3"}, o, ones({4, 3, 8}).view(), kv.view(), kv.view());
  rejects("k", {"rank 2"}, o, q.view(), ones({6, 8}).view(), kv.view());
  rejects("k", {"null"}, o, q.view(), null_view({1, 2, 6, 8}), kv.view());
  rejects("k|v", {"5", "6"}, o, q.view(), ones({1, 2, 5, 8}).view(), kv.view());  // one value too many
  rejects("k|v", {"6", "5"}, o, q.view(), kv.view(), ones({1, 2, 5, 8}).view());  // one too few
  rejects("k|v", {}, o, q.view(), kv.view(), ones({1, 4, 6, 8}).view());          // other heads in v
  // 3 heads for 4.
  rejects("k|v", {"4", "3"}, o, q.view(), ones({1, 3, 6, 8}).view(), ones({1, 3, 6, 8}).view());
  rejects("k|q", {"[1, 2, 6, 7]"}, o, q.view(), ones({1, 2, 6, 7}).view(), kv.view());  // other d
  rejects("k|q", {"[2, 2, 6, 8]"}, o, q.view(), ones({2, 2, 6, 8}).view(), ones({2, 2, 6, 8}).view());
  rejects("dst", {"[1, 4, 3, 8]"}, o, ones({1, 4, 2, 8}).view(), kv.view(), kv.view());
  rejects("dst", {"[1, 4, 3, 8]"}, o, q.view(), kv.view(), ones({1, 2, 6, 9}).view());
  rejects("k|q", {"bf16", "f32"}, o, q.view(), ones({1, 2, 6, 8}, DType::bf16).view(), kv.view());
  rejects("v", {"f16", "f32"}, o, q.view(), kv.view(), ones({1, 2, 6, 8}, DType::f16).view());
  rejects("dst", {"stride"}, reshaped(o, {1, 4, 3, 8}, {0, 24, 8, 0}), q.view(), kv.view(), kv.view());
  rejects("dst|q", {}, o, o, kv.view(), kv.view());
  rejects("dst|k", {}, o, q.view(), reshaped(static_cast<const ConstView&>(o), {1, 2, 6, 8}, {96, 48, 8, 1}),
          kv.view());
  rejects("dst|v", {}, o, q.view(), kv.view(),
          reshaped(static_cast<const ConstView&>(o), {1, 2, 6, 8}, {96, 48, 8, 1}));

  const auto with_bias = [](const ConstView& v) {
    nk::AttentionOptions options;
    options.bias = v;
    return options;
  };
  const auto with_lse = [](const View& v) {
    nk::AttentionOptions options;
    options.lse = v;
    return options;
  };
  for (const Shape& shape : {Shape{1, 4, 3, 5}, Shape{1, 2, 3, 6}, Shape{2, 1, 1, 6}, Shape{1, 1, 2, 6},
                             Shape{1, 1, 3, 1}, Shape{3, 6}}) {
    rejects("bias", {}, o, q.view(), kv.view(), kv.view(), with_bias(ones(shape).view()));
  }
  rejects("bias", {"null"}, o, q.view(), kv.view(), kv.view(), with_bias(null_view({1, 1, 3, 6})));
  rejects("bias|dst", {}, o, q.view(), kv.view(), kv.view(),
          with_bias(reshaped(static_cast<const ConstView&>(o), {1, 4, 3, 6}, {96, 24, 8, 1})));
  Tensor lse(DType::f32, {1, 4, 3}), narrow(DType::bf16, {1, 4, 3});
  rejects("lse", {"[1, 3, 4]", "[1, 4, 3]"}, o, q.view(), kv.view(), kv.view(),
          with_lse(reshaped(lse.view(), {1, 3, 4}, {12, 4, 1})));
  rejects("lse", {"bf16", "f32"}, o, q.view(), kv.view(), kv.view(), with_lse(narrow.view()));
  rejects("lse", {"stride"}, o, q.view(), kv.view(), kv.view(),
          with_lse(reshaped(lse.view(), {1, 4, 3}, {12, 0, 1})));
  rejects("lse|dst", {}, o, q.view(), kv.view(), kv.view(), with_lse(reshaped(o, {1, 4, 3}, {12, 3, 1})));
  check(lse.still_nan(), "flash_attention", "a rejected call wrote lse");

  for (const auto& [d, dv, argument] : {std::tuple<std::int64_t, std::int64_t, const char*>{257, 8, "q|k"},
                                        {8, 257, "v|dst"},
                                        {512, 512, "q|k"},
                                        {0, 8, "q|k"}}) {
    Tensor wide(DType::f32, {1, 1, 2, dv});
    const Tensor qk = ones({1, 1, 2, d}), v = ones({1, 1, 2, dv});
    check_rejects("flash_attention", argument, {std::to_string(dv > 256 ? dv : d), "256"}, wide,
                  [&] { nk::flash_attention(wide.view(), qk.view(), qk.view(), v.view()); });
  }
}

TEST_CASE("neighbours in one buffer are no alias") {
  // dst in columns 8.. of rows whose columns ..8 are the input: ranges overlap, elements do not.
  Tensor memory(DType::f32, {4, 16});
  for (std::int64_t i = 0; i < memory.size(); ++i) memory.set(i, static_cast<double>(i % 5));
  const auto half = [&](std::int64_t first) {
    return View(static_cast<float*>(memory.view().writable()) + first, DType::f32,
                nk::Layout(Shape{4, 8}, Shape{16, 1}));
  };
  CHECK_NOTHROW(nk::rmsnorm(half(8), half(0)));
  CHECK_NOTHROW(nk::layernorm(half(8), half(0)));
  const Tensor b = ones({8, 8});
  CHECK_NOTHROW(nk::matmul(half(8), half(0), b.view()));
  // The residual of a product may be dst.
  Tensor dst = ones({4, 8});
  nk::matmul(dst.view(), ones({4, 8}).view(), b.view(), {.bias = {}, .residual = dst.view()});
  check_equal("matmul", "residual on dst", dst, Matrix::Constant(4, 8, 9));
}

TEST_CASE("matmul: rejects strides that overflow together") {  // each dimension alone stays below 2^63 bytes
  const Tensor one = ones({1, 1});
  Tensor dst(DType::f32, {2, 2, 2, 1});
  const std::int64_t part = std::int64_t{1} << 59;
  check_rejects("matmul", "a", {}, dst, [&] {
    nk::matmul(dst.view(), reshaped(one.view(), {2, 2, 2, 2}, {part, part, part, part}), ones({2, 1}).view());
  });
}

}  // namespace
}  // namespace test
