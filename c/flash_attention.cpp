// neuron_kernels_flash_attention.
#include "neuron_kernels/flash_attention.hpp"

#include "c/call.hpp"

extern "C" int neuron_kernels_flash_attention(const neuron_kernels_tensor* dst,
                                              const neuron_kernels_tensor* q, const neuron_kernels_tensor* k,
                                              const neuron_kernels_tensor* v,
                                              const neuron_kernels_attention_options* options) {
  namespace nk = neuron_kernels;
  return nk::c::guarded([&] {
    const char* call = "flash_attention";
    nk::AttentionOptions o;
    if (options != nullptr) {
      if (options->scale != nullptr) o.scale = *options->scale;
      o.causal = options->causal != 0;
      o.bias = nk::c::view(call, "bias", options->bias);
      o.lse = nk::c::view(call, "lse", options->lse);
    }
    nk::flash_attention(nk::c::view(call, "dst", dst), nk::c::view(call, "q", q), nk::c::view(call, "k", k),
                        nk::c::view(call, "v", v), o);
  });
}
