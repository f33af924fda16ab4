// flash_attention in the form with keys on partitions, by kernels/flash_attention_shared_shift.hpp, with its guard.
//
// The form that is fastest on the chip. Blocks of queries that it cannot compute are computed by flash_attention.
#pragma once

#include <cstdint>
#include <vector>

#include "neuron_kernels/flash_attention.hpp"
#include "neuron_kernels/kernels/flash_attention_shared_shift.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

/// Queries [begin, begin + n) of one head of a tensor [batch, heads, q_len, ...].
template <class V>
V block_of(V v, std::int64_t batch, std::int64_t head, std::int64_t begin, std::int64_t n) {
  if (!v.given()) return v;
  const std::int64_t at = batch * v.layout.stride[0] + head * v.layout.stride[1] + begin * v.layout.stride[2];
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(v.data)>>, const char, char>;
  v.data = static_cast<Byte*>(v.data) + at * size_of(v.dtype);
  v.layout.shape[0] = v.layout.shape[1] = 1;
  v.layout.shape[2] = n;
  return v;
}

}  // namespace host

/// As flash_attention, but all queries of a block share one shift in exp(score - shift). Blocks with a row whose
/// sum shared_shift_holds rejects (scores about 40 and more from the block's sample) are computed again by
/// flash_attention, and so is what this form does not do: f16, whose range is too small for probabilities that
/// are not near 1, scale <= 0, and causal with kv_len < q_len. 16-bit probabilities are rounded before they are
/// added up, so that lse is within 2^-8 there.
/// Returns the number of (batch, head, block of queries) that were computed by flash_attention.
/// shapes, needs, errors: as flash_attention; a bias is an error
/// cost: as flash_attention, twice for blocks that are computed again; memory beyond dst is O(q_len)
inline std::int64_t flash_attention_shared_shift(View dst, ConstView q, ConstView k, ConstView v,
                                                 const AttentionOptions& options = {}) {
  host::check_attention(dst, q, k, v, options);
  if (options.bias.given())
    shape_error("flash_attention_shared_shift", "bias", "given; this form takes none: use flash_attention");
  const AttentionShape shape{q.dim(0), q.dim(1), k.dim(1), q.dim(2), k.dim(2), q.dim(3), v.dim(3)};
  const auto blocking = SharedShiftBlocking::default_for(host_limits, shape);
  const std::int64_t blocks = ceil_div(shape.q_len, blocking.q);
  const float scale = options.scale.value_or(1.f / std::sqrt(static_cast<float>(shape.d)));
  const bool takes = q.dtype != DType::f16 && scale > 0.f && shape.kv_len > 0 && shape.dv > 0 &&
                     !(options.causal && shape.kv_len < shape.q_len);
  if (!takes || blocks * shape.batch * shape.heads == 0) {
    flash_attention(dst, q, k, v, options);
    return blocks * shape.batch * shape.heads;
  }

  std::vector<float> sums(static_cast<std::size_t>(shape.batch * shape.heads * shape.q_len));
  SharedShiftArgs<Host> args{.q = q,
                             .k = k,
                             .v = v,
                             .dst = dst,
                             .sums = View(sums.data(), {shape.batch, shape.heads, shape.q_len, 1}),
                             .scale = scale,
                             .causal = options.causal};
  if (options.lse.given()) args.lse = host::as_columns(options.lse);
  const std::int64_t programs = shape.batch * shape.kv_heads * ceil_div(shape.q_len, blocking.program_q);
  host::launch(options.executor, programs,
               [&](Host& nc) { shared_shift_attention_kernel(nc, args, blocking); });

  std::int64_t again = 0;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      for (std::int64_t begin = 0; begin < shape.q_len; begin += blocking.q) {
        const std::int64_t n = std::min<std::int64_t>(blocking.q, shape.q_len - begin);
        const float* const sum = sums.data() + (b * shape.heads + h) * shape.q_len + begin;
        if (std::all_of(sum, sum + n, shared_shift_holds)) continue;
        AttentionOptions one = options;
        one.scale = scale;
        if (one.lse.given()) one.lse = host::block_of(one.lse, b, h, begin, n);
        const std::int64_t kv_head = h / (shape.heads / shape.kv_heads);
        const std::int64_t seen = options.causal ? begin + n + shape.kv_len - shape.q_len : shape.kv_len;
        flash_attention(host::block_of(dst, b, h, begin, n), host::block_of(q, b, h, begin, n),
                        host::block_of(k, b, kv_head, 0, seen), host::block_of(v, b, kv_head, 0, seen), one);
        ++again;
      }
    }
  }
  return again;
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
