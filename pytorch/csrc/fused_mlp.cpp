// fused_mlp.
#include "neuron_kernels/fused_mlp.hpp"

#include <vector>

#include "operators.hpp"
#include "tensors.hpp"

namespace neuron_kernels::pytorch {

Tensor fused_mlp(const Tensor& x, const Tensor& up, const Tensor& down, const OptionalTensor& gate,
                 const OptionalTensor& up_bias, const OptionalTensor& down_bias,
                 const OptionalTensor& gate_bias, const std::string& activation) {
  const char* call = "fused_mlp";
  dtype_of_tensor(call, "x", x);
  if (x.dim() == 0) shape_error(call, "x", "a scalar; needed is [.., hidden]");
  if (down.dim() != 2)
    shape_error(call, "down", text("sizes ", sizes_text(down), "; needed is [hidden, inner]"));

  std::vector<std::int64_t> sizes(sizes_of(x).begin(), sizes_of(x).end());
  sizes.back() = down.size(0);
  Tensor y = fresh(x, sizes);
  MlpWeights weights;
  weights.up = view(call, "up", up);
  weights.down = view(call, "down", down);
  weights.gate = view(call, "gate", gate);
  weights.up_bias = view(call, "up_bias", up_bias);
  weights.down_bias = view(call, "down_bias", down_bias);
  weights.gate_bias = view(call, "gate_bias", gate_bias);
  MlpOptions options;
  options.activation = activation_of(call, activation);
  options.executor = torch_executor();
  if (x.numel() == 0 && x.dim() > max_rank) return y;

  const Tensor src = at_most_rank_4(x);
  const Tensor dst = at_most_rank_4(y);  // a view: y has no gaps
  neuron_kernels::fused_mlp(writable(call, "y", dst), view(call, "x", src), weights, options);
  return y;
}

}  // namespace neuron_kernels::pytorch
