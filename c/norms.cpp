// neuron_kernels_layernorm and neuron_kernels_rmsnorm.
#include "c/call.hpp"
#include "neuron_kernels/layernorm.hpp"
#include "neuron_kernels/rmsnorm.hpp"

extern "C" {

int neuron_kernels_layernorm(const neuron_kernels_tensor* dst, const neuron_kernels_tensor* src,
                             const neuron_kernels_norm_options* options) {
  namespace nk = neuron_kernels;
  return nk::c::guarded([&] {
    const char* call = "layernorm";
    nk::LayernormOptions o;
    if (options != nullptr) {
      o.eps = options->eps;
      o.weight = nk::c::view(call, "weight", options->weight);
      o.bias = nk::c::view(call, "bias", options->bias);
      o.residual = nk::c::view(call, "residual", options->residual);
      o.sum = nk::c::view(call, "sum", options->sum);
    }
    nk::layernorm(nk::c::view(call, "dst", dst), nk::c::view(call, "src", src), o);
  });
}

int neuron_kernels_rmsnorm(const neuron_kernels_tensor* dst, const neuron_kernels_tensor* src,
                           const neuron_kernels_norm_options* options) {
  namespace nk = neuron_kernels;
  return nk::c::guarded([&] {
    const char* call = "rmsnorm";
    nk::RmsnormOptions o;
    if (options != nullptr) {
      if (options->bias != nullptr) nk::shape_error(call, "bias", "given; rmsnorm has none, pass NULL");
      o.eps = options->eps;
      o.weight = nk::c::view(call, "weight", options->weight);
      o.residual = nk::c::view(call, "residual", options->residual);
      o.sum = nk::c::view(call, "sum", options->sum);
    }
    nk::rmsnorm(nk::c::view(call, "dst", dst), nk::c::view(call, "src", src), o);
  });
}
}
