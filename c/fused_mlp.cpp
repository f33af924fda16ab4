// neuron_kernels_fused_mlp.
#include "neuron_kernels/fused_mlp.hpp"

#include "c/call.hpp"

extern "C" int neuron_kernels_fused_mlp(const neuron_kernels_tensor* dst, const neuron_kernels_tensor* x,
                                        const neuron_kernels_mlp_weights* weights, int32_t activation) {
  namespace nk = neuron_kernels;
  return nk::c::guarded([&] {
    const char* call = "fused_mlp";
    if (weights == nullptr) nk::shape_error(call, "weights", "NULL; needed are at least up and down");
    nk::MlpWeights w;
    w.up = nk::c::view(call, "up", weights->up);
    w.down = nk::c::view(call, "down", weights->down);
    w.gate = nk::c::view(call, "gate", weights->gate);
    w.up_bias = nk::c::view(call, "up_bias", weights->up_bias);
    w.down_bias = nk::c::view(call, "down_bias", weights->down_bias);
    w.gate_bias = nk::c::view(call, "gate_bias", weights->gate_bias);
    nk::MlpOptions o;
    o.activation = nk::c::activation(call, activation);
    nk::fused_mlp(nk::c::view(call, "dst", dst), nk::c::view(call, "x", x), w, o);
  });
}
