// Schemas of torch.ops.neuron_kernels and the devices that they run on.
#include <torch/csrc/stable/library.h>

#include "operators.hpp"

// `kernels build` gives each build a namespace of its own. The macros let it expand before PyTorch's paste
// it.
#ifndef NEURON_KERNELS_OPS_NAMESPACE
#define NEURON_KERNELS_OPS_NAMESPACE neuron_kernels
#endif
#define NEURON_KERNELS_OPS(name, m) STABLE_TORCH_LIBRARY(name, m)
#define NEURON_KERNELS_OPS_IMPL(name, device, m) STABLE_TORCH_LIBRARY_IMPL(name, device, m)

namespace {

namespace ops = neuron_kernels::pytorch;

// Same function for every device whose tensors lie in host memory.
void implement(torch::stable::detail::StableLibrary& m) {
  m.impl("matmul", TORCH_BOX(&ops::matmul));
  m.impl("matmul_into", TORCH_BOX(&ops::matmul_into));
  m.impl("layer_norm", TORCH_BOX(&ops::layer_norm));
  m.impl("rms_norm", TORCH_BOX(&ops::rms_norm));
  m.impl("add_rms_norm", TORCH_BOX(&ops::add_rms_norm));
  m.impl("fused_mlp", TORCH_BOX(&ops::fused_mlp));
  m.impl("flash_attention", TORCH_BOX(&ops::flash_attention));
  m.impl("flash_attention_lse", TORCH_BOX(&ops::flash_attention_lse));
}

}  // namespace

NEURON_KERNELS_OPS(NEURON_KERNELS_OPS_NAMESPACE, m) {
  m.def("instruction_set() -> str");
  m.def(
      "matmul(Tensor a, Tensor b, Tensor? bias=None, str activation='identity', Tensor? residual=None, "
      "float alpha=1.0) -> Tensor");
  m.def(
      "matmul_into(Tensor(dst!) dst, Tensor a, Tensor b, Tensor? bias=None, str activation='identity', "
      "Tensor? residual=None, float alpha=1.0, float beta=0.0) -> ()");
  m.def(
      "layer_norm(Tensor x, Tensor? weight=None, Tensor? bias=None, float eps=1e-5, Tensor? residual=None) "
      "-> Tensor");
  m.def("rms_norm(Tensor x, Tensor? weight=None, float eps=1e-6) -> Tensor");
  m.def("add_rms_norm(Tensor x, Tensor residual, Tensor? weight=None, float eps=1e-6) -> (Tensor, Tensor)");
  m.def(
      "fused_mlp(Tensor x, Tensor up, Tensor down, Tensor? gate=None, Tensor? up_bias=None, "
      "Tensor? down_bias=None, Tensor? gate_bias=None, str activation='silu') -> Tensor");
  m.def(
      "flash_attention(Tensor q, Tensor k, Tensor v, Tensor? bias=None, bool causal=False, float? "
      "scale=None) "
      "-> Tensor");
  m.def(
      "flash_attention_lse(Tensor q, Tensor k, Tensor v, Tensor? bias=None, bool causal=False, "
      "float? scale=None) -> (Tensor, Tensor)");
}

NEURON_KERNELS_OPS_IMPL(NEURON_KERNELS_OPS_NAMESPACE, CPU, m) { implement(m); }

// It has no tensor that could name a device.
NEURON_KERNELS_OPS_IMPL(NEURON_KERNELS_OPS_NAMESPACE, CompositeExplicitAutograd, m) {
  m.impl("instruction_set", TORCH_BOX(&ops::instruction_set));
}
