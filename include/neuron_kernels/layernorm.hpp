// layernorm on the caller's tensors, by the tile program in kernels/layernorm.hpp.
#pragma once

#include "neuron_kernels/host/arguments.hpp"
#include "neuron_kernels/host/launch.hpp"
#include "neuron_kernels/kernels/layernorm.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

struct LayernormOptions {
  ConstView weight{}, bias{};  // [n], any dtype; not given: 1 and 0
  float eps = 1e-5f;           // added to the variance
  ConstView residual{};        // [.., n] of src's dtype; added to src
  View sum{};                  // [.., n] of src's dtype; receives src + residual, as it was normalised
  Executor* executor = nullptr;
};

namespace host {

/// What layernorm and rmsnorm have in common.
/// Calls run(dst, src, residual, sum), each [rows, n], maybe more than once.
template <class Options, class Run>
void norm(const char* call, const View& dst, const ConstView& src, const Options& o, const Run& run) {
  const Arguments args(call);
  args.require("src", src, 1, max_rank);
  args.require_shape("dst", dst, src.layout, "src's shape");
  args.require_writable("dst", dst);
  const std::int64_t n = src.dim(-1);
  if (o.weight.given()) args.require_shape("weight", o.weight, {n}, "src's last dimension");
  if (o.residual.given()) {
    args.require_shape("residual", o.residual, src.layout, "src's shape");
    args.require_dtype("residual", o.residual, src.dtype, "src's dtype");
  }
  if (o.sum.given()) {
    args.require_shape("sum", o.sum, src.layout, "src's shape");
    args.require_dtype("sum", o.sum, src.dtype, "src's dtype");
    args.require_writable("sum", o.sum);
    args.require_apart("sum", o.sum, "src", src, true);
    args.require_apart("sum", o.sum, "residual", o.residual, true);
    args.require_apart("sum", o.sum, "weight", o.weight);
    args.require_apart("dst", dst, "sum", o.sum);
  }
  args.require_apart("dst", dst, "src", src, true);
  args.require_apart("dst", dst, "residual", o.residual, true);
  args.require_apart("dst", dst, "weight", o.weight);
  if (src.layout.empty()) return;
  for_each_matrix(run, dst, src, o.residual, o.sum);
}

/// src or dst of a norm, streamed if it is larger than a core's share of the last cache commonly is.
inline Hbm streamed_if_large(Hbm h) {
  constexpr std::int64_t large_bytes = 8 << 20;
  return h.dim(0) * h.dim(1) * size_of(h.dtype()) >= large_bytes ? h.streamed() : h;
}

/// Rows are independent, so a call below this many elements is not worth waking a second thread.
inline constexpr std::int64_t norm_serial_elements = 16384;

}  // namespace host

/// dst = (x - mean) / sqrt(var + eps) * weight + bias over the last dimension;
/// x = src (+ residual, rounded to src's dtype), var divided by n.
/// shapes: src, dst, residual, sum [.., n], rank 1 to 4, any strides; weight, bias [n]
/// needs: dst may be src or residual, sum may be src or residual (same strides); otherwise no shared memory
/// errors: ShapeError naming the argument
/// cost: about 8 FLOPs per element; reads and writes each operand once
/// source: Ba, Kiros, Hinton 2016 (arXiv 1607.06450)
inline void layernorm(View dst, ConstView src, const LayernormOptions& options = {}) {
  if (options.bias.given() && src.given()) {
    const host::Arguments args("layernorm");
    args.require_shape("bias", options.bias, {src.dim(-1)}, "src's last dimension");
    args.require_apart("dst", dst, "bias", options.bias);
    args.require_apart("sum", options.sum, "bias", options.bias);
  }
  host::norm("layernorm", dst, src, options,
             [&](const View& y, const ConstView& x, const ConstView& residual, const View& sum) {
               const auto blocking = NormBlocking::default_for(host_limits, x.dim(0), x.dim(1));
               const LayernormArgs<Host> args{host::streamed_if_large(y),
                                              host::streamed_if_large(x),
                                              host::as_row(options.weight),
                                              host::as_row(options.bias),
                                              residual,
                                              sum,
                                              options.eps};
               const bool serial = x.dim(0) * x.dim(1) < host::norm_serial_elements;
               host::launch(options.executor, serial ? 1 : ceil_div(x.dim(0), blocking.program_rows),
                            [&](Host& nc) { layernorm_kernel(nc, args, blocking); });
             });
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
