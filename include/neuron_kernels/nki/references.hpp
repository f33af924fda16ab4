// What the library's kernels mean, as NumPy source for EmitOptions::reference.
//
// Each takes the kernel's inputs in the order of the tensors named here and computes in double.
#pragma once

#include <string>

#include "neuron_kernels/core/error.hpp"
#include "neuron_kernels/core/ops.hpp"
#include "neuron_kernels/nki/operands.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace nki {

/// f(x) as an expression in x; uses np and math.
inline std::string numpy_of(Act f) {
  switch (f) {
    case Act::identity:
      return "x";
    case Act::rsqrt:
      return "1 / np.sqrt(x)";
    case Act::erf:
      return "np.vectorize(math.erf)(x)";
    case Act::sigmoid:
      return "1 / (1 + np.exp(-x))";
    case Act::relu:
      return "np.maximum(x, 0)";
    case Act::silu:
      return "x / (1 + np.exp(-x))";
    case Act::gelu:
      return "0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))";
    case Act::gelu_tanh:
      return "0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))";
    default:  // exp, log, tanh, square
      return std::string("np.") + name_of(f) + "(x)";
  }
}

/// `def reference(inputs):` and its body of `lines`; inputs come in as doubles.
inline std::string reference_of(const std::vector<std::string>& inputs,
                                const std::vector<std::string>& lines) {
  std::string names, widened;
  for (const std::string& name : inputs) {
    names += (names.empty() ? "" : ", ") + name;
    widened += "\n    " + name + " = np.asarray(" + name + ", np.float64)";
  }
  std::string s = "def reference(" + names + "):" + widened;
  for (const std::string& line : lines) s += "\n    " + line;
  const bool uses_math = s.find("math.") != s.npos;
  return (uses_math ? s.insert(s.find('\n') + 1, "    import math\n\n") : s) + "\n";
}

/// a, b (, row_bias, residual)
inline std::string matmul_reference(float alpha, Act activation, bool row_bias, bool residual) {
  std::vector<std::string> inputs = {"a", "b"};
  if (row_bias) inputs.emplace_back("row_bias");
  if (residual) inputs.emplace_back("residual");
  return reference_of(
      inputs, {"x = " + number(alpha) + " * (a @ b)" + (row_bias ? " + row_bias" : ""),
               "return " + (residual ? "(" + numpy_of(activation) + ") + residual" : numpy_of(activation))});
}

/// src, weight, bias
inline std::string layernorm_reference(float eps) {
  return reference_of(
      {"src", "weight", "bias"},
      {"x = src - src.mean(axis=-1, keepdims=True)", "variance = (x**2).mean(axis=-1, keepdims=True)",
       "return x / np.sqrt(variance + " + number(eps) + ") * weight + bias"});
}

/// src, weight
inline std::string rmsnorm_reference(float eps) {
  return reference_of({"src", "weight"}, {"square = (src**2).mean(axis=-1, keepdims=True)",
                                          "return src / np.sqrt(square + " + number(eps) + ") * weight"});
}

/// x, up, gate, down
inline std::string mlp_reference(Act activation) {
  return reference_of({"x", "up", "gate", "down"}, {"h = x @ up.T", "x = x @ gate.T",
                                                    "return (h * (" + numpy_of(activation) + ")) @ down.T"});
}

/// q, k, v
inline std::string attention_reference(float scale, bool causal) {
  std::vector<std::string> lines = {"group = q.shape[1] // k.shape[1]",
                                    "k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)",
                                    "s = " + number(scale) + " * (q @ k.swapaxes(2, 3))"};
  if (causal) {
    lines.insert(lines.end(), {"q_len, kv_len = s.shape[2:]",
                               "hidden = np.arange(kv_len) > np.arange(q_len)[:, None] + kv_len - q_len",
                               "s = np.where(hidden, -np.inf, s)"});
  }
  lines.insert(lines.end(), {"p = np.exp(s - s.max(axis=-1, keepdims=True))",
                             "return (p @ v) / p.sum(axis=-1, keepdims=True)"});
  return reference_of({"q", "k", "v"}, lines);
}

}  // namespace nki
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
