// What tile ops can be asked for: Alu (arithmetic of two operands), Act (of one), Engine and Dge (who does it).
//
// All are NKI's (SDK nki/api/nki.api.shared.rst and nki.isa): Alu = "supported math operators",
// Act = "activation functions", Engine = nki.isa.engine, Dge = nki.isa.dge_mode.
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

/// The part of a NeuronCore that executes an op; automatic: the one that does such ops by default.
/// Host has no engines and takes any.
enum class Engine : std::uint8_t { automatic, tensor, vector, scalar, gpsimd, dma };
inline constexpr int engine_count = 6;

/// Who writes the descriptors of a transfer: nobody (they lie ready in HBM), software on the GpSimd engine, or
/// the hardware unit; automatic: the compiler's choice.
enum class Dge : std::uint8_t { automatic, none, software, hardware };
inline constexpr int dge_count = 4;

constexpr const char* name_of(Engine engine) {
  constexpr const char* names[] = {"automatic", "tensor", "vector", "scalar", "gpsimd", "dma"};
  return names[static_cast<int>(engine)];
}

constexpr const char* name_of(Dge dge) {
  constexpr const char* names[] = {"automatic", "none", "software", "hardware"};
  return names[static_cast<int>(dge)];
}

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
