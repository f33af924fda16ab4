// The operators as C++ functions; library.cpp gives them their schemas and their device.
#pragma once

#include <optional>
#include <string>
#include <tuple>

#include <torch/csrc/stable/tensor.h>

namespace neuron_kernels::pytorch {

using torch::stable::Tensor;
using OptionalTensor = std::optional<Tensor>;

/// Name of the instruction set that the kernels run on, as in NEURON_KERNELS_ISA.
std::string instruction_set();
Tensor matmul(const Tensor& a, const Tensor& b, const OptionalTensor& bias, const std::string& activation,
              const OptionalTensor& residual, double alpha);
void matmul_into(Tensor dst, const Tensor& a, const Tensor& b, const OptionalTensor& bias,
                 const std::string& activation, const OptionalTensor& residual, double alpha, double beta);
Tensor layer_norm(const Tensor& x, const OptionalTensor& weight, const OptionalTensor& bias, double eps,
                  const OptionalTensor& residual);
Tensor rms_norm(const Tensor& x, const OptionalTensor& weight, double eps);
std::tuple<Tensor, Tensor> add_rms_norm(const Tensor& x, const Tensor& residual, const OptionalTensor& weight,
                                        double eps);
Tensor fused_mlp(const Tensor& x, const Tensor& up, const Tensor& down, const OptionalTensor& gate,
                 const OptionalTensor& up_bias, const OptionalTensor& down_bias,
                 const OptionalTensor& gate_bias, const std::string& activation);
Tensor flash_attention(const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& bias,
                       bool causal, std::optional<double> scale);
std::tuple<Tensor, Tensor> flash_attention_lse(const Tensor& q, const Tensor& k, const Tensor& v,
                                               const OptionalTensor& bias, bool causal,
                                               std::optional<double> scale);

}  // namespace neuron_kernels::pytorch
