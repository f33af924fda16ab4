// The arithmetic that tile ops can be asked for: Alu (two operands) and Act (one operand).
//
// Both are NKI's (SDK nki/api/nki.api.shared.rst):
// Alu = "supported math operators", Act = "activation functions".
#pragma once

#include <cstdint>

#include "neuron_kernels/core/abi.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// Two-operand operator.
/// max and min return the other operand when one is NaN only by accident: do not rely on it.
enum class Alu : std::uint8_t { add, subtract, multiply, max, min };
inline constexpr int alu_count = 5;

/// One-operand function. gelu is x Phi(x) by erf; gelu_tanh its tanh approximation; silu is x sigmoid(x).
enum class Act : std::uint8_t {
  identity,
  exp,
  log,
  tanh,
  erf,
  sigmoid,
  rsqrt,
  square,
  relu,
  silu,
  gelu,
  gelu_tanh
};
inline constexpr int act_count = 12;

constexpr const char* name_of(Alu op) {
  constexpr const char* names[] = {"add", "subtract", "multiply", "max", "min"};
  return names[static_cast<int>(op)];
}

constexpr const char* name_of(Act f) {
  constexpr const char* names[] = {"identity", "exp",    "log",  "tanh", "erf",  "sigmoid",
                                   "rsqrt",    "square", "relu", "silu", "gelu", "gelu_tanh"};
  return names[static_cast<int>(f)];
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
