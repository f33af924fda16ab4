// The library's kernels as programs by name: what `kernels check|profile|emit KERNEL` records.
//
// Defaults are the sizes of a current 7B model on one core, with dtype bf16.
#pragma once

#include <array>
#include <cmath>

#include "neuron_kernels/kernels/flash_attention.hpp"
#include "neuron_kernels/kernels/flash_attention_shared_shift.hpp"
#include "neuron_kernels/kernels/flash_attention_strip.hpp"
#include "neuron_kernels/kernels/fused_mlp.hpp"
#include "neuron_kernels/kernels/layernorm.hpp"
#include "neuron_kernels/kernels/matmul.hpp"
#include "neuron_kernels/kernels/rmsnorm.hpp"
#include "neuron_kernels/nki/references.hpp"
#include "neuron_kernels/programs/request.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace programs {

inline void matmul(Recorder& nc, Request& request) {
  const auto m = request.size("m", 4096, "rows of a"), n = request.size("n", 8192, "columns of b"),
             k = request.size("k", 8192, "the contraction"), batch = request.size("batch", 1, "products");
  const DType t = request.dtype();
  const MatmulArgs<Recorder> args{.a = nc.hbm("a", t, {1, batch, m, k}),
                                  .b = nc.hbm("b", t, {1, batch, k, n}),
                                  .dst = nc.hbm("dst", t, {1, batch, m, n})};
  const auto blocking = MatmulBlocking::default_for(nc.limits(), {m, n, k});
  blocking.check(nc.limits());
  matmul_kernel(nc, args, blocking);
  request.reference(nki::matmul_reference(1.f, Act::identity, false, false));
}

template <bool layernorm>
void norm(Recorder& nc, Request& request) {
  const auto rows = request.size("rows", 4096, "rows of src, the tokens"),
             n = request.size("n", 4096, "their length");
  const DType t = request.dtype();
  const auto src = nc.hbm("src", t, {rows, n}), weight = nc.hbm("weight", t, {1, n});
  const auto blocking = NormBlocking::default_for(nc.limits(), rows, n);
  blocking.check(nc.limits());
  if constexpr (layernorm) {
    const auto bias = nc.hbm("bias", t, {1, n});
    layernorm_kernel<Recorder>(
        nc, {.dst = nc.hbm("dst", t, {rows, n}), .src = src, .weight = weight, .bias = bias}, blocking);
    request.reference(nki::layernorm_reference(1e-5f));
  } else {
    rmsnorm_kernel<Recorder>(nc, {.dst = nc.hbm("dst", t, {rows, n}), .src = src, .weight = weight},
                             blocking);
    request.reference(nki::rmsnorm_reference(1e-6f));
  }
}

inline void fused_mlp(Recorder& nc, Request& request) {
  const auto tokens = request.size("tokens", 2048, "rows of x"),
             hidden = request.size("hidden", 4096, "columns of x"),
             inner = request.size("inner", 14336, "of the hidden activation");
  const DType t = request.dtype();
  const auto x = nc.hbm("x", t, {tokens, hidden}), up = nc.hbm("up", t, {inner, hidden}),
             gate = nc.hbm("gate", t, {inner, hidden}), down = nc.hbm("down", t, {hidden, inner});
  auto blocking = MlpBlocking::default_for(nc.limits(), {tokens, hidden, inner, hidden});
  blocking.check(nc.limits());
  const MlpArgs<Recorder> args{
      .x = x, .dst = nc.hbm("dst", t, {tokens, hidden}), .gate = gate, .up = up, .down = down};
  mlp_kernel(nc, args, blocking);
  request.reference(nki::mlp_reference(Act::silu));
}

struct AttentionRequest {
  AttentionShape shape;
  bool causal;
  float scale;
  Recorder::Hbm q, k, v, dst;

  AttentionRequest(Recorder& nc, Request& request) {
    const auto heads = request.size("heads", 1, "of queries");
    const auto q_len = request.size("q_len", 4096, "queries");
    const auto d = request.size("d", 128, "size of a head", 128);
    shape = {.batch = request.size("batch", 1, "sequences"),
             .heads = heads,
             .kv_heads = request.size("kv_heads", heads, "of keys and values; by default as many as heads"),
             .q_len = q_len,
             .kv_len = request.size("kv_len", q_len, "keys; by default as many as queries"),
             .d = d,
             .dv = d};
    causal = request.flag("causal", "query i sees keys up to i + kv_len - q_len");
    scale = 1.f / std::sqrt(static_cast<float>(d));
    if (shape.heads % shape.kv_heads != 0) {
      throw RequestError(text("shape heads is ", shape.heads, " with kv_heads ", shape.kv_heads,
                              "; heads must be a multiple of kv_heads"));
    }
    if (causal && shape.kv_len < shape.q_len) {
      throw RequestError(text("shape kv_len is ", shape.kv_len, " with q_len ", shape.q_len,
                              "; causal needs at least as many keys as queries"));
    }
    const DType t = request.dtype();
    q = nc.hbm("q", t, {shape.batch, heads, q_len, d});
    k = nc.hbm("k", t, {shape.batch, shape.kv_heads, shape.kv_len, d});
    v = nc.hbm("v", t, {shape.batch, shape.kv_heads, shape.kv_len, d});
    dst = nc.hbm("dst", t, {shape.batch, heads, q_len, d});
    request.useful_flops(4.0 * static_cast<double>(shape.batch * heads * d) * seen());
    request.reference(nki::attention_reference(scale, causal));
  }

  /// Pairs of a query and a key that it sees.
  double seen() const {
    const auto queries = static_cast<double>(shape.q_len), keys = static_cast<double>(shape.kv_len);
    return causal ? queries * (keys - queries) + queries * (queries + 1) / 2 : queries * keys;
  }
  AttentionArgs<Recorder> args() const {
    return {.q = q, .k = k, .v = v, .dst = dst, .scale = scale, .causal = causal};
  }
};

inline void flash_attention(Recorder& nc, Request& request) {
  const AttentionRequest a(nc, request);
  const auto blocking = AttentionBlocking::default_for(nc.limits(), a.shape);
  blocking.check(nc.limits());
  attention_kernel(nc, a.args(), blocking);
}

inline void flash_attention_strip(Recorder& nc, Request& request) {
  const AttentionRequest a(nc, request);
  const StripBlocking blocking{};
  blocking.check(nc.limits());
  strip_attention_kernel(nc, a.args(), blocking);
}

inline void flash_attention_shared_shift(Recorder& nc, Request& request) {
  const AttentionRequest a(nc, request);
  if (request.dtype() == DType::f16)
    throw RequestError("dtype is f16, whose range this form does not fit; allowed are f32 and bf16");
  const auto sums = nc.hbm("sums", DType::f32, {a.shape.batch, a.shape.heads, a.shape.q_len, 1});
  const auto blocking = SharedShiftBlocking::default_for(nc.limits(), a.shape);
  blocking.check(nc.limits());
  shared_shift_attention_kernel<Recorder>(
      nc, {.q = a.q, .k = a.k, .v = a.v, .dst = a.dst, .sums = sums, .scale = a.scale, .causal = a.causal},
      blocking);
  request.reference("");
}

struct Bundled {
  const char *name, *help;
  ProgramFunction function;
};
inline constexpr std::array<Bundled, 7> bundled{
    {{"matmul", "dst = a b", &matmul},
     {"layernorm", "rows to mean 0 and variance 1, times weight, plus bias", &norm<true>},
     {"rmsnorm", "rows to mean square 1, times weight", &norm<false>},
     {"fused_mlp", "dst = (silu(x gate^T) * (x up^T)) down^T", &fused_mlp},
     {"flash_attention", "dst = softmax(q k^T / sqrt(d)) v, with the running maximum", &flash_attention},
     {"flash_attention_strip", "the same, with the exact maximum of all scores at once",
      &flash_attention_strip},
     {"flash_attention_shared_shift", "the same, keys on partitions, one shift per block of queries",
      &flash_attention_shared_shift}}};

}  // namespace programs
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
