// One attention call with all its tensors, and its check against the reference.
#pragma once

#include "neuron_kernels/flash_attention.hpp"

#include "cases.hpp"
#include "harness.hpp"
#include "reference/flash_attention.hpp"

namespace test {

inline constexpr double minus_inf = -std::numeric_limits<double>::infinity();

struct AttentionSizes {
  std::int64_t batch, heads, kv_heads, q_len, kv_len, d, dv;
};

/// Tensors that are empty are not given.
struct Attention {
  Tensor q, k, v, dst, bias, lse;  // dst, lse: as they are before the call
  std::optional<float> scale;
  bool causal = false;
  nk::Executor* executor = &test::executor(0);

  /// The call, or that of the other form, which returns what it left to this one.
  using Call = std::int64_t (*)(nk::View, nk::ConstView, nk::ConstView, nk::ConstView,
                                const nk::AttentionOptions&);
  Call call = [](nk::View to, nk::ConstView of_q, nk::ConstView of_k, nk::ConstView of_v,
                 const nk::AttentionOptions& options) -> std::int64_t {
    nk::flash_attention(to, of_q, of_k, of_v, options);
    return 0;
  };
  int term_roundings = 0;  // to the operands' dtype, of what it adds up to a row's sum

  struct Result {
    Tensor dst, lse;
    std::int64_t redone = 0;
  };
  Result run() const {
    Result r{dst, lse};
    const nk::AttentionOptions options{
        .scale = scale, .causal = causal, .bias = bias.view(), .lse = r.lse.view(), .executor = executor};
    r.redone = call(r.dst.view(), q.view(), k.view(), v.view(), options);
    return r;
  }

  /// The meaning of one head, and its index in k and v.
  reference::AttentionHead head(std::int64_t batch, std::int64_t h) const {
    const std::int64_t heads = q.dim(1), kv_heads = k.dim(1);
    const std::int64_t at = batch * heads + h,
                       kv_at = batch * kv_heads + reference::kv_head_of(h, heads, kv_heads);
    reference::AttentionHead a{q.matrix(at), k.matrix(kv_at), v.matrix(kv_at), 0, {}, causal};
    a.scale = scale ? static_cast<double>(*scale) : 1 / std::sqrt(static_cast<double>(q.dim(3)));
    if (bias.given()) {
      const Matrix m = bias.matrix((bias.dim(0) > 1 ? batch : 0) * bias.dim(1) + (bias.dim(1) > 1 ? h : 0));
      a.bias = m.rows() == q.dim(2) ? m : Matrix(m.replicate(q.dim(2), 1));
    }
    return a;
  }
};

inline Attention random_attention(Random& random, const AttentionSizes& s, DType dtype, DType out,
                                  Lie lie_q = Lie::packed, Lie lie_k = Lie::packed, Lie lie_v = Lie::packed,
                                  Lie lie_dst = Lie::packed) {
  const Shape q = {s.batch, s.heads, s.q_len, s.d}, k = {s.batch, s.kv_heads, s.kv_len, s.d},
              v = {s.batch, s.kv_heads, s.kv_len, s.dv}, dst = {s.batch, s.heads, s.q_len, s.dv};
  Attention a;
  // Scores with a spread of 2: softmax is not flat.
  a.q = Tensor::normal(random, dtype, q, strides_for(q, lie_q), 2);
  a.k = Tensor::normal(random, dtype, k, strides_for(k, lie_k));
  a.v = Tensor::normal(random, dtype, v, strides_for(v, lie_v));
  a.dst = Tensor(out, dst, strides_for(dst, lie_dst));
  return a;
}

inline std::string describe(const Attention& a) {
  std::string s =
      nk::text("q ", nk::shape_text(a.q.view().layout), ", k ", nk::shape_text(a.k.view().layout), ", dv ",
               a.v.dim(3), ", ", nk::name_of(a.q.dtype()), " to ", nk::name_of(a.dst.dtype()),
               a.causal ? ", causal" : "", a.lse.given() ? ", lse" : "");
  if (a.scale) s += nk::text(", scale ", *a.scale);
  if (a.bias.given())
    s += nk::text(", bias ", nk::shape_text(a.bias.view().layout), " ", nk::name_of(a.bias.dtype()));
  return s;
}

/// The call on each page against the reference, head by head. Returns what the last one left to flash_attention.
inline std::int64_t check_attention(const Attention& a, const std::string& more = "") {
  const std::int64_t heads = a.q.dim(1), all = a.q.dim(0) * heads;
  std::vector<reference::AttentionResult> want;
  for (std::int64_t i = 0; i < all; ++i)
    want.push_back(reference::attention(a.head(i / heads, i % heads), a.q.dtype(), 16, a.term_roundings));
  std::int64_t redone = 0;
  on_each_page([&] {
    const Attention::Result got = a.run();
    redone = got.redone;
    for (std::int64_t i = 0; i < all; ++i) {
      const auto& w = want[static_cast<std::size_t>(i)];
      check_near("flash_attention", nk::text(describe(a), more, ", head ", i), got.dst, i, w.dst);
      if (!got.lse.given()) continue;
      const Matrix lse = got.lse.matrix(i / heads).row(i % heads).transpose();
      check_near("flash_attention", nk::text("lse of ", describe(a), more, ", head ", i), got.lse, lse,
                 reference::stored(w.lse, DType::f32));
    }
  });
  return redone;
}

}  // namespace test
