// layernorm and rmsnorm as bodies to record, run and replay.
#pragma once

#include <type_traits>

#include "neuron_kernels/kernels/layernorm.hpp"
#include "neuron_kernels/kernels/rmsnorm.hpp"
#include "recording.hpp"

namespace test {

/// Of src, dst, weight, bias, residual and sum. given: bit 0: weight (and bias), bit 1: residual and sum.
template <bool layernorm>
auto norm_body(int given, const nk::NormBlocking& blocking) {
  return [=](auto& nc, const auto& h) {
    using T = TargetOf<decltype(nc)>;
    std::conditional_t<layernorm, nk::LayernormArgs<T>, nk::RmsnormArgs<T>> a;
    a.src = h[0], a.dst = h[1];
    if (given & 1) a.weight = h[2];
    if (given & 2) a.residual = h[4], a.sum = h[5];
    if constexpr (layernorm) {
      if (given & 1) a.bias = h[3];
      layernorm_kernel(nc, a, blocking);
    } else {
      rmsnorm_kernel(nc, a, blocking);
    }
  };
}

}  // namespace test
