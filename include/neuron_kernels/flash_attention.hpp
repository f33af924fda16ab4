// flash_attention on the caller's tensors, by the tile program in kernels/flash_attention.hpp.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "neuron_kernels/host/arguments.hpp"
#include "neuron_kernels/host/launch.hpp"
#include "neuron_kernels/kernels/attention_merge.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

struct AttentionOptions {
  std::optional<float> scale{};  // of q k^T; not given: 1 / sqrt(d)
  bool causal = false;           // aligned bottom-right: query i sees keys up to i + kv_len - q_len
  ConstView bias{};              // [batch or 1, heads or 1, q_len or 1, kv_len], any dtype;
                                 // added to the scores; -inf masks out
  View lse{};                    // [batch, heads, q_len] f32; receives ln of the sum of exp of a row's scores
  Executor* executor = nullptr;
};

namespace host {

inline constexpr std::int64_t max_head_size = 256;

inline void check_attention(const View& dst, const ConstView& q, const ConstView& k, const ConstView& v,
                            const AttentionOptions& o) {
  const Arguments args("flash_attention");
  args.require("q", q, 4, 4);
  args.require("k", k, 4, 4);
  args.require("v", v, 4, 4);
  const std::int64_t batch = q.dim(0), heads = q.dim(1), q_len = q.dim(2), d = q.dim(3);
  const std::int64_t kv_heads = k.dim(1), kv_len = k.dim(2), dv = v.dim(3);
  args.require_shape("k", k, {batch, kv_heads, kv_len, d}, "[q's batch, kv_heads, kv_len, q's d]");
  args.require_shape("v", v, {batch, kv_heads, kv_len, dv}, "[k's batch, heads and length, dv]");
  args.require_shape("dst", dst, {batch, heads, q_len, dv}, "[q's batch, heads and length, v's dv]");
  if (kv_heads == 0 ? heads != 0 : heads % kv_heads != 0) {
    args.fail("k", text(kv_heads, " kv heads for ", heads,
                        " query heads; the query heads must be a multiple of the kv heads"));
  }
  if (d < 1 || d > max_head_size)
    args.fail("q", text("head size ", d, "; allowed are head sizes of 1 to ", max_head_size));
  if (dv > max_head_size)
    args.fail("v", text("head size ", dv, "; allowed are head sizes up to ", max_head_size));
  args.require_dtype("k", k, q.dtype, "q's dtype");
  args.require_dtype("v", v, q.dtype, "q's dtype");
  args.require_writable("dst", dst);
  if (o.bias.given()) {
    args.require("bias", o.bias, 4, 4);
    const std::int64_t want[] = {batch, heads, q_len, kv_len};
    for (int i = 0; i < max_rank; ++i) {
      if (o.bias.dim(i) != want[i] && (i == 3 || o.bias.dim(i) != 1)) {
        args.fail("bias", text("shape ", shape_text(o.bias.layout), "; expected [", batch, " or 1, ", heads,
                               " or 1, ", q_len, " or 1, ", kv_len, "]"));
      }
    }
    args.require_apart("dst", dst, "bias", o.bias);
  }
  if (o.lse.given()) {
    args.require_shape("lse", o.lse, {batch, heads, q_len}, "[batch, heads, q_len]");
    args.require_dtype("lse", o.lse, DType::f32, "the log-sum-exp is f32");
    args.require_writable("lse", o.lse);
    args.require_apart("dst", dst, "lse", o.lse);
    args.require_apart("lse", o.lse, "q", q);
    args.require_apart("lse", o.lse, "k", k);
    args.require_apart("lse", o.lse, "v", v);
    args.require_apart("lse", o.lse, "bias", o.bias);
  }
  args.require_apart("dst", dst, "q", q);
  args.require_apart("dst", dst, "k", k);
  args.require_apart("dst", dst, "v", v);
}

/// [batch, heads, 1, n] of kv_heads groups as [batch, kv_heads, group, n]:
/// one query per head is a tile of queries.
template <class V>
V heads_as_queries(V v, std::int64_t kv_heads) {
  if (!v.given()) return v;
  const std::int64_t group = v.dim(1) / kv_heads;
  v.layout.shape[2] = group;
  v.layout.stride[2] = v.layout.stride[1];
  v.layout.shape[1] = kv_heads;
  v.layout.stride[1] *= group;
  return v;
}

/// [batch, heads, n] as [batch, heads, n, 1].
inline View as_columns(View v) {
  if (!v.given()) return v;
  v.layout.rank = 4;
  v.layout.shape[3] = v.layout.stride[3] = 1;
  return v;
}

/// Writes the result of queries that see no key at all.
inline void fill_unseen(const View& dst, const View& lse) {
  const auto fill = [](const View& v, float value) {
    for (std::int64_t i = 0; i < v.dim(0); ++i) {
      for (std::int64_t j = 0; j < v.dim(1); ++j) {
        const Rect r = rect(Hbm(v).at(i).at(j));
        for (int row = 0; row < r.rows; ++row) {
          for (int col = 0; col < r.cols; ++col) write_element(r.at(row, col), r.dtype, value);
        }
      }
    }
  };
  fill(dst, 0.f);
  if (lse.given()) fill(lse, -std::numeric_limits<float>::infinity());
}

inline void run_attention(AttentionArgs<Host> args, const View& dst, const View& lse, Executor* executor) {
  const AttentionShape shape{args.q.dim(0), args.q.dim(1), args.k.dim(1), args.q.dim(2),
                             args.k.dim(2), args.q.dim(3), args.v.dim(3)};
  const auto blocking = AttentionBlocking::default_for(host_limits, shape);
  const int splits = blocking.splits(shape);
  const std::int64_t programs =
      shape.batch * shape.kv_heads * ceil_div(shape.q_len, blocking.program_q) * splits;
  constexpr double serial_flops = 1 << 18;  // below, waking a second thread costs more than it saves
  const double flops = 2.0 * static_cast<double>(shape.batch * shape.heads * shape.q_len) *
                       static_cast<double>(shape.kv_len) * static_cast<double>(shape.d + shape.dv);
  const auto run = [&](const AttentionArgs<Host>& a) {
    launch(executor, flops < serial_flops ? 1 : programs,
           [&](Host& nc) { attention_kernel(nc, a, blocking); });
  };
  if (splits == 1) {
    args.dst = dst;
    if (lse.given()) args.lse = lse;
    return run(args);
  }
  const std::int64_t rows = splits * shape.batch * shape.heads * shape.q_len;
  std::vector<float> memory(static_cast<std::size_t>(rows * (shape.dv + 1)));
  const View partial(memory.data(), {splits * shape.batch, shape.heads, shape.q_len, shape.dv});
  const View partial_lse(memory.data() + rows * shape.dv,
                         {splits * shape.batch, shape.heads, shape.q_len, 1});
  args.dst = partial;
  args.lse = partial_lse;
  run(args);
  AttentionMergeArgs<Host> merge{partial, partial_lse, dst, {}};
  if (lse.given()) merge.lse = lse;
  launch(executor, 1, [&](Host& nc) { attention_merge_kernel(nc, merge, blocking); });
}

}  // namespace host

/// dst = softmax(scale q k^T + bias) v;
/// with causal, query i sees keys up to i + kv_len - q_len (bottom-right).
/// A row that sees nothing gives 0 and lse -inf. lse is the natural logarithm.
/// shapes: q [batch, heads, q_len, d], k [batch, kv_heads, kv_len, d], v [batch, kv_heads, kv_len, dv],
/// dst [batch, heads, q_len, dv]; any strides; any size but d may be 0; d, dv up to 256;
/// options as in AttentionOptions
/// needs: heads a multiple of kv_heads (query head h uses kv head h / (heads / kv_heads));
/// q, k, v of one dtype; dst and lse apart from all inputs
/// errors: ShapeError naming the argument; nothing is written then
/// cost: 2 heads q_len kv_len (d + dv) FLOPs per batch, half of it if causal; memory beyond dst is O(q_len)
/// source: Dao 2023 (arXiv 2307.08691), algorithm 1
inline void flash_attention(View dst, ConstView q, ConstView k, ConstView v,
                            const AttentionOptions& options = {}) {
  host::check_attention(dst, q, k, v, options);
  if (dst.layout.empty() && (!options.lse.given() || options.lse.layout.empty())) return;
  View lse = host::as_columns(options.lse);
  if (k.dim(2) == 0) return host::fill_unseen(dst, lse);

  ConstView bias = options.bias;
  if (bias.given()) {
    const Layout& want = dst.layout;
    for (std::size_t i = 0; i < 3; ++i) {
      if (bias.layout.shape[i] == 1) bias.layout.stride[i] = 0;
      bias.layout.shape[i] = want.shape[i];
    }
  }
  const std::int64_t d = q.dim(3), kv_heads = k.dim(1);
  bool causal = options.causal;
  // A decode step: the query heads of one kv head share its keys, and the last query sees all.
  if (q.dim(2) == 1) {
    causal = false;
    q = host::heads_as_queries(q, kv_heads);
    dst = host::heads_as_queries(dst, kv_heads);
    lse = host::heads_as_queries(lse, kv_heads);
    bias = host::heads_as_queries(bias, kv_heads);
  }
  AttentionArgs<Host> args;
  args.q = q;
  args.k = k;
  args.v = v;
  if (bias.given()) args.bias = bias;
  args.scale = options.scale.value_or(d > 0 ? 1.f / std::sqrt(static_cast<float>(d)) : 0.f);
  args.causal = causal;
  host::run_attention(args, dst, lse, options.executor);
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
