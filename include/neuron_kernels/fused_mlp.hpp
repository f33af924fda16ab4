// fused_mlp on the caller's tensors, by the tile program in kernels/fused_mlp.hpp.
#pragma once

#include <vector>

#include "neuron_kernels/host/arguments.hpp"
#include "neuron_kernels/host/launch.hpp"
#include "neuron_kernels/kernels/fused_mlp.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// Weights in torch.nn.Linear's layout, any strides, of x's dtype; biases of any dtype, not given: none.
struct MlpWeights {
  ConstView up{};                                 // [inner, hidden]
  ConstView down{};                               // [hidden_dst, inner]
  ConstView gate{};                               // [inner, hidden]; not given: the plain form
  ConstView up_bias{}, down_bias{}, gate_bias{};  // [inner], [hidden_dst], [inner]
};

struct MlpOptions {
  Act activation = Act::silu;
  Executor* executor = nullptr;
};

namespace host {

inline void check_mlp(const View& dst, const ConstView& x, const MlpWeights& w, Act activation) {
  const Arguments args("fused_mlp");
  args.require("x", x, 1, max_rank);
  args.require("up", w.up, 2, 2);
  args.require("down", w.down, 2, 2);
  const std::int64_t hidden = x.dim(-1), inner = w.up.dim(0);
  args.require_shape("up", w.up, {inner, hidden}, "[inner, x's last dimension]");
  args.require_shape("down", w.down, {w.down.dim(0), inner}, "[hidden_dst, up's rows]");
  Layout want = x.layout;
  want.shape[static_cast<std::size_t>(x.rank() - 1)] = w.down.dim(0);
  args.require_shape("dst", dst, want, "x's shape with down's rows last");
  args.require_writable("dst", dst);
  if (w.gate.given()) args.require_shape("gate", w.gate, {inner, hidden}, "up's shape");
  if (w.gate_bias.given() && !w.gate.given())
    args.fail("gate_bias", "given without gate; the plain form has up_bias and down_bias only");
  if (w.up_bias.given()) args.require_shape("up_bias", w.up_bias, {inner}, "up's rows");
  if (w.gate_bias.given()) args.require_shape("gate_bias", w.gate_bias, {inner}, "gate's rows");
  if (w.down_bias.given()) args.require_shape("down_bias", w.down_bias, {w.down.dim(0)}, "down's rows");
  const std::pair<const char*, const ConstView*> weights[] = {
      {"up", &w.up}, {"down", &w.down}, {"gate", &w.gate}};
  for (const auto& [name, v] : weights) {
    if (v->given()) args.require_dtype(name, *v, x.dtype, "x's dtype");
    args.require_apart("dst", dst, name, *v);
  }
  args.require_apart("dst", dst, "x", x);
  args.require_apart("dst", dst, "up_bias", w.up_bias);
  args.require_apart("dst", dst, "gate_bias", w.gate_bias);
  args.require_apart("dst", dst, "down_bias", w.down_bias);
  switch (activation) {
    case Act::silu:
    case Act::gelu:
    case Act::gelu_tanh:
    case Act::relu:
    case Act::sigmoid:
    case Act::tanh:
    case Act::identity:
      break;
    default:
      args.fail("activation", text(name_of(activation),
                                   "; allowed are silu, gelu, gelu_tanh, relu, sigmoid, tanh and identity"));
  }
}

inline void run_mlp(const View& dst, const ConstView& x, const MlpWeights& w, const MlpOptions& o) {
  const MlpShape shape{x.dim(0), x.dim(1), w.up.dim(0), w.down.dim(0)};
  const auto blocking = MlpBlocking::default_for(host_limits, shape);
  const int splits = blocking.splits(shape);
  std::vector<float> memory;
  MlpArgs<Host> args;
  args.x = x;
  args.dst = dst;
  args.gate = w.gate;
  args.up = w.up;
  args.down = w.down;
  args.gate_bias = as_column(w.gate_bias);
  args.up_bias = as_column(w.up_bias);
  args.down_bias = as_column(w.down_bias);
  args.activation = o.activation;
  View partial{};
  if (splits != 1) {
    memory.resize(static_cast<std::size_t>(splits * shape.tokens * shape.hidden_dst));
    partial = View(memory.data(), {splits, shape.tokens, shape.hidden_dst});
    args.partial = partial;
  }
  if (splits > 0) {  // else inner is 0: the sum over no splits is left
    launch(o.executor, splits * ceil_div(shape.tokens, blocking.tokens),
           [&](Host& nc) { mlp_kernel(nc, args, blocking); });
  }
  if (splits == 1) return;
  const MlpSumArgs<Host> sum{partial, dst, as_row(w.down_bias)};
  launch(o.executor, ceil_div(shape.tokens, MlpBlocking::sum_rows),
         [&](Host& nc) { mlp_sum_kernel(nc, sum); });
}

}  // namespace host

/// Gated: dst = (act(x gate^T + gate_bias) * (x up^T + up_bias)) down^T + down_bias.
/// Plain (no gate): dst = act(x up^T + up_bias) down^T + down_bias.
/// shapes: x [.., hidden], dst [.., hidden_dst], rank 1 to 4; weights as in MlpWeights
/// needs: activation silu, gelu (erf), gelu_tanh, relu, sigmoid, tanh or identity; dst apart from all inputs
/// errors: ShapeError naming the argument; nothing is written then
/// cost: 2 tokens inner (2 hidden + hidden_dst) FLOPs gated; reads the weights once per block of tokens, and
/// the hidden activation never leaves the caches
/// source: Shazeer 2020 (arXiv 2002.05202) for the gated forms
inline void fused_mlp(View dst, ConstView x, const MlpWeights& weights, const MlpOptions& options = {}) {
  host::check_mlp(dst, x, weights, options.activation);
  if (dst.layout.empty()) return;
  host::for_each_matrix(
      [&](const View& y, const ConstView& tokens) { host::run_mlp(y, tokens, weights, options); }, dst, x);
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
