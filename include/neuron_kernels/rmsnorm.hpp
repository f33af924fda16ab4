// rmsnorm on the caller's tensors, by the tile program in kernels/rmsnorm.hpp.
#pragma once

#include "neuron_kernels/kernels/rmsnorm.hpp"
#include "neuron_kernels/layernorm.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

struct RmsnormOptions {
  ConstView weight{};    // [n], any dtype; not given: 1
  float eps = 1e-6f;     // added to the mean of the squares
  ConstView residual{};  // [.., n] of src's dtype; added to src
  View sum{};            // [.., n] of src's dtype; receives src + residual, as it was normalised
  Executor* executor = nullptr;
};

/// dst = x / sqrt(mean(x^2) + eps) * weight over the last dimension;
/// x = src (+ residual, rounded to src's dtype). Scaled in f32 and rounded once.
/// shapes: src, dst, residual, sum [.., n], rank 1 to 4, any strides; weight [n]
/// needs: dst may be src or residual, sum may be src or residual (same strides); otherwise no shared memory
/// errors: ShapeError naming the argument
/// cost: about 4 FLOPs per element; reads and writes each operand once
/// source: Zhang, Sennrich 2019 (arXiv 1910.07467)
inline void rmsnorm(View dst, ConstView src, const RmsnormOptions& options = {}) {
  host::norm("rmsnorm", dst, src, options,
             [&](const View& y, const ConstView& x, const ConstView& residual, const View& sum) {
               const auto blocking = NormBlocking::default_for(host_limits, x.dim(0), x.dim(1));
               const RmsnormArgs<Host> args{host::streamed_if_large(y),
                                            host::streamed_if_large(x),
                                            host::as_row(options.weight),
                                            residual,
                                            sum,
                                            options.eps};
               const bool serial = x.dim(0) * x.dim(1) < host::norm_serial_elements;
               host::launch(options.executor, serial ? 1 : ceil_div(x.dim(0), blocking.program_rows),
                            [&](Host& nc) { rmsnorm_kernel(nc, args, blocking); });
             });
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
