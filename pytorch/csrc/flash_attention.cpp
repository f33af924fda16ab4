// flash_attention, with and without the log-sum-exp.
#include "neuron_kernels/flash_attention.hpp"

#include <algorithm>

#include "operators.hpp"
#include "tensors.hpp"

namespace neuron_kernels::pytorch {
namespace {

/// bias as [batch|1, heads|1, q_len|1, kv_len]: missing leading dimensions are 1, one key's bias is repeated.
ConstView bias_view(const char* call, const OptionalTensor& bias, std::int64_t kv_len) {
  ConstView v = view(call, "bias", bias);
  if (!v.given()) return v;
  Layout full;
  full.rank = max_rank;
  for (int i = 0; i < max_rank; ++i) {
    const int from = i - (max_rank - v.rank());
    full.shape[static_cast<std::size_t>(i)] = from < 0 ? 1 : v.dim(from);
    full.stride[static_cast<std::size_t>(i)] = from < 0 ? 0 : v.stride(from);
  }
  if (full.shape.back() == 1 && kv_len != 1) {
    full.shape.back() = kv_len;
    full.stride.back() = 0;
  }
  v.layout = full;
  return v;
}

Tensor attend(const char* call, const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& bias,
              bool causal, std::optional<double> scale, const Tensor* lse) {
  const std::int64_t batch = q.size(0), heads = q.size(1), q_len = q.size(2), d = q.size(3), dv = v.size(3);
  // [batch, q_len, heads, dv] in memory:
  // the caller's transpose and reshape to [batch, q_len, heads * dv] is free.
  const auto step = [](std::int64_t n) { return std::max<std::int64_t>(n, 1); };
  const std::array sizes{batch, heads, q_len, dv};
  const std::array strides{step(q_len) * step(heads) * step(dv), step(dv), step(heads) * step(dv),
                           std::int64_t{1}};
  const Tensor out = fresh(q, sizes, strides);
  if (batch * heads * q_len == 0 && (d == 0 || heads == 0)) return out;
  AttentionOptions options;
  if (scale) options.scale = static_cast<float>(*scale);
  options.causal = causal;
  options.bias = bias_view(call, bias, k.size(2));
  if (lse != nullptr) options.lse = writable(call, "lse", *lse);
  options.executor = torch_executor();
  neuron_kernels::flash_attention(writable(call, "out", out), view(call, "q", q), view(call, "k", k),
                                  view(call, "v", v), options);
  return out;
}

void require_rank_4(const char* call, const char* argument, const Tensor& t) {
  dtype_of_tensor(call, argument, t);
  if (t.dim() != 4) {
    shape_error(call, argument, text("sizes ", sizes_text(t), "; needed is [batch, heads, tokens, d]"));
  }
}

void check(const char* call, const Tensor& q, const Tensor& k, const Tensor& v) {
  require_rank_4(call, "q", q);
  require_rank_4(call, "k", k);
  require_rank_4(call, "v", v);
}

}  // namespace

Tensor flash_attention(const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& bias,
                       bool causal, std::optional<double> scale) {
  check("flash_attention", q, k, v);
  return attend("flash_attention", q, k, v, bias, causal, scale, nullptr);
}

std::tuple<Tensor, Tensor> flash_attention_lse(const Tensor& q, const Tensor& k, const Tensor& v,
                                               const OptionalTensor& bias, bool causal,
                                               std::optional<double> scale) {
  const char* call = "flash_attention_lse";
  check(call, q, k, v);
  const std::array sizes{q.size(0), q.size(1), q.size(2)};
  Tensor lse = fresh(q, sizes, {}, aoti_torch_dtype_float32());
  Tensor out = attend(call, q, k, v, bias, causal, scale, &lse);
  return {out, lse};
}

}  // namespace neuron_kernels::pytorch
