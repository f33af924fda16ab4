// Programs of the library's kernels, with what they are called with: for the tests of nki/.
#pragma once

#include "neuron_kernels/kernels/attention_merge.hpp"
#include "neuron_kernels/kernels/flash_attention.hpp"
#include "neuron_kernels/kernels/flash_attention_shared_shift.hpp"
#include "neuron_kernels/kernels/flash_attention_strip.hpp"
#include "neuron_kernels/kernels/fused_mlp.hpp"
#include "norm_body.hpp"

namespace test {

inline std::vector<Argument> norm_arguments(DType dtype, std::int64_t rows, std::int64_t n, bool sum) {
  return {{"src", dtype, {rows, n}},    {"dst", dtype, {rows, n}, true}, {"weight", DType::f32, {1, n}},
          {"bias", DType::f32, {1, n}}, {"residual", dtype, {rows, n}},  {"sum", dtype, {rows, n}, sum}};
}

/// given: as norm_body has it.
template <bool layernorm>
Program norm_program(const nk::Limits& l, const std::vector<Argument>& arguments, int given,
                     const nk::NormBlocking& blocking) {
  return recorded(l, arguments, norm_body<layernorm>(given, blocking));
}

inline std::vector<Argument> mlp_arguments(const nk::MlpShape& s, DType dtype, int splits) {
  return {{"x", dtype, {s.tokens, s.hidden}},
          {"up", dtype, {s.inner, s.hidden}},
          {"gate", dtype, {s.inner, s.hidden}},
          {"down", dtype, {s.hidden_dst, s.inner}},
          {"up_bias", DType::f32, {s.inner, 1}},
          {"down_bias", DType::f32, {s.hidden_dst, 1}},
          {"dst", dtype, {s.tokens, s.hidden_dst}, splits == 1},
          {"partial", DType::f32, {splits, s.tokens, s.hidden_dst}, splits != 1}};
}

inline Program mlp_program(const nk::Limits& l, const std::vector<Argument>& arguments,
                           const nk::MlpBlocking& blocking, bool gated, bool biased, bool one_split) {
  return recorded(l, arguments, [&](auto& nc, const auto& h) {
    nk::MlpArgs<TargetOf<decltype(nc)>> a;
    a.x = h[0], a.up = h[1], a.down = h[3], a.dst = h[6], a.partial = h[7];
    if (gated) a.gate = h[2];
    if (biased) a.up_bias = h[4];
    if (biased && one_split) a.down_bias = h[5];
    mlp_kernel(nc, a, blocking);
  });
}

struct AttentionCase {
  nk::AttentionShape shape;
  bool causal = false, biased = false;
};

inline Program attention_program(const nk::Limits& l, const std::vector<Argument>& arguments,
                                 const AttentionCase& c, bool lse) {
  return recorded(l, arguments, [&](auto& nc, const auto& h) {
    nk::AttentionArgs<TargetOf<decltype(nc)>> a;
    a.q = h[0], a.k = h[1], a.v = h[2], a.dst = h[3];
    if (lse) a.lse = h[4];
    if (c.biased) a.bias = h[5];
    a.scale = 0.125f, a.causal = c.causal;
    attention_kernel(nc, a, nk::AttentionBlocking::default_for(l, c.shape));
  });
}

inline std::vector<Argument> attention_arguments(const nk::AttentionShape& s, DType dtype) {
  return {{"q", dtype, {s.batch, s.heads, s.q_len, s.d}},
          {"k", dtype, {s.batch, s.kv_heads, s.kv_len, s.d}},
          {"v", dtype, {s.batch, s.kv_heads, s.kv_len, s.dv}},
          {"dst", dtype, {s.batch, s.heads, s.q_len, s.dv}, true},
          {"lse", DType::f32, {s.batch, s.heads, s.q_len, 1}, true},
          {"bias", DType::f32, {s.batch, s.heads, s.q_len, s.kv_len}}};
}

inline Program strip_program(const nk::Limits& l, DType dtype, const AttentionCase& c) {
  return recorded(l, attention_arguments(c.shape, dtype), [&](auto& nc, const auto& h) {
    nk::AttentionArgs<TargetOf<decltype(nc)>> a;
    a.q = h[0], a.k = h[1], a.v = h[2], a.dst = h[3], a.lse = h[4];
    a.scale = 0.125f, a.causal = c.causal;
    strip_attention_kernel(nc, a, {});
  });
}

inline std::vector<Argument> shared_shift_arguments(const nk::AttentionShape& s, DType dtype) {
  auto arguments = attention_arguments(s, dtype);
  arguments[5] = {"sums", DType::f32, {s.batch, s.heads, s.q_len, 1}, true};
  return arguments;
}

inline Program shared_shift_program(const nk::Limits& l, DType dtype, const AttentionCase& c) {
  return recorded(l, shared_shift_arguments(c.shape, dtype), [&](auto& nc, const auto& h) {
    nk::SharedShiftArgs<TargetOf<decltype(nc)>> a;
    a.q = h[0], a.k = h[1], a.v = h[2], a.dst = h[3], a.lse = h[4], a.sums = h[5];
    a.scale = 0.125f, a.causal = c.causal;
    shared_shift_attention_kernel(nc, a, nk::SharedShiftBlocking::default_for(l, c.shape));
  });
}

inline std::vector<Argument> merge_arguments() {
  return {{"partial", DType::f32, {3, 2, 130, 8}},
          {"partial_lse", DType::f32, {3, 2, 130, 1}},
          {"dst", DType::f32, {1, 2, 130, 8}, true}};
}

inline Program merge_program(const nk::Limits& l) {
  return recorded(l, merge_arguments(), [&](auto& nc, const auto& h) {
    nk::AttentionMergeArgs<TargetOf<decltype(nc)>> a;
    a.partial = h[0], a.partial_lse = h[1], a.dst = h[2];
    attention_merge_kernel(nc, a, nk::AttentionBlocking::default_for(l, {1, 2, 2, 130, 100, 8, 8}));
  });
}

}  // namespace test
