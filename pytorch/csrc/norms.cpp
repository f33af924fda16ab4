// layer_norm, rms_norm and add_rms_norm.
#include "neuron_kernels/layernorm.hpp"
#include "neuron_kernels/rmsnorm.hpp"
#include "operators.hpp"
#include "tensors.hpp"

namespace neuron_kernels::pytorch {
namespace {

void require_rank(const char* call, const Tensor& x) {
  dtype_of_tensor(call, "x", x);
  if (x.dim() == 0) shape_error(call, "x", "a scalar; needed is at least one dimension, which is normalised");
}

}  // namespace

Tensor layer_norm(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, double eps,
                  const OptionalTensor& residual) {
  const char* call = "layer_norm";
  require_rank(call, x);
  LayernormOptions options;
  options.weight = view(call, "weight", weight);
  options.bias = view(call, "bias", bias);
  options.eps = static_cast<float>(eps);
  options.executor = torch_executor();
  OptionalTensor added;
  if (residual) {
    require_same_sizes(call, "residual", *residual, "x", x);
    require_same_dtype(call, "residual", *residual, "x", x);
    added = at_most_rank_4(*residual);
    options.residual = view(call, "residual", added);
  }
  Tensor y = fresh(x, sizes_of(x));
  if (x.numel() == 0 && x.dim() > max_rank) return y;
  const Tensor src = at_most_rank_4(x);
  const Tensor dst = at_most_rank_4(y);  // a view: y has no gaps
  layernorm(writable(call, "y", dst), view(call, "x", src), options);
  return y;
}

Tensor rms_norm(const Tensor& x, const OptionalTensor& weight, double eps) {
  const char* call = "rms_norm";
  require_rank(call, x);
  RmsnormOptions options;
  options.weight = view(call, "weight", weight);
  options.eps = static_cast<float>(eps);
  options.executor = torch_executor();
  Tensor y = fresh(x, sizes_of(x));
  if (x.numel() == 0 && x.dim() > max_rank) return y;
  const Tensor src = at_most_rank_4(x);
  const Tensor dst = at_most_rank_4(y);
  rmsnorm(writable(call, "y", dst), view(call, "x", src), options);
  return y;
}

std::tuple<Tensor, Tensor> add_rms_norm(const Tensor& x, const Tensor& residual, const OptionalTensor& weight,
                                        double eps) {
  const char* call = "add_rms_norm";
  require_rank(call, x);
  require_same_sizes(call, "residual", residual, "x", x);
  require_same_dtype(call, "residual", residual, "x", x);
  Tensor y = fresh(x, sizes_of(x)), sum = fresh(x, sizes_of(x));
  if (x.numel() == 0 && x.dim() > max_rank) return {y, sum};
  const Tensor src = at_most_rank_4(x), added = at_most_rank_4(residual);
  const Tensor dst = at_most_rank_4(y), total = at_most_rank_4(sum);
  RmsnormOptions options;
  options.weight = view(call, "weight", weight);
  options.eps = static_cast<float>(eps);
  options.residual = view(call, "residual", added);
  options.sum = writable(call, "sum", total);
  options.executor = torch_executor();
  rmsnorm(writable(call, "y", dst), view(call, "x", src), options);
  return {y, sum};
}

}  // namespace neuron_kernels::pytorch
