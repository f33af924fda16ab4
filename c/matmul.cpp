// neuron_kernels_matmul.
#include "neuron_kernels/matmul.hpp"

#include "c/call.hpp"

extern "C" int neuron_kernels_matmul(const neuron_kernels_tensor* dst, const neuron_kernels_tensor* a,
                                     const neuron_kernels_tensor* b,
                                     const neuron_kernels_matmul_options* options) {
  namespace nk = neuron_kernels;
  return nk::c::guarded([&] {
    const char* call = "matmul";
    nk::MatmulOptions o;
    if (options != nullptr) {
      o.alpha = options->alpha;
      o.beta = options->beta;
      o.activation = nk::c::activation(call, options->activation);
      o.bias = nk::c::view(call, "bias", options->bias);
      o.residual = nk::c::view(call, "residual", options->residual);
    }
    nk::matmul(nk::c::view(call, "dst", dst), nk::c::view(call, "a", a), nk::c::view(call, "b", b), o);
  });
}
