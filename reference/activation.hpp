// The activation functions in double, each with the two figures that an error bound needs.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "neuron_kernels/core/ops.hpp"

namespace reference {

using neuron_kernels::Act;

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// x g(x) where g falls to 0 faster than 1 / x grows: 0, not inf * 0, far to the left.
inline double gated(double x, double g) { return x < -1e4 ? -0.0 : x * g; }

inline double activation(Act f, double x) {
  switch (f) {
    case Act::identity:
      return x;
    case Act::relu:
      return x < 0 ? 0 : x;  // NaN stays NaN
    case Act::tanh:
      return std::tanh(x);
    case Act::sigmoid:
      return sigmoid(x);
    case Act::silu:
      return gated(x, sigmoid(x));
    case Act::gelu:  // x Phi(x); erfc keeps its digits for large negative x
      return gated(x, std::erfc(-x / std::numbers::sqrt2) / 2);
    case Act::gelu_tanh:  // Hendrycks, Gimpel 2016 (arXiv 1606.08415), section 2;
                          // (1 + tanh y) / 2 = sigmoid(2 y)
      return gated(x, sigmoid(2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    default:
      throw std::invalid_argument("reference::activation: not an activation of these kernels");
  }
}

/// The largest |f'(x)|.
inline double activation_slope(Act f) {
  switch (f) {
    case Act::sigmoid:
      return 0.25;
    case Act::silu:
      return 1.1;  // 1.0998 at x = 2.40
    case Act::gelu:
    case Act::gelu_tanh:
      return 1.13;  // 1.1290 at x = 1.41 and 1.1289
    default:
      return 1;
  }
}

/// What the rounding error of f(x) is relative to:
/// f(x); for the gelus x, as the chip may form 1 + g(x), g(x) near -1.
inline double activation_magnitude(Act f, double x) {
  return f == Act::gelu || f == Act::gelu_tanh ? std::abs(x) : std::abs(activation(f, x));
}

}  // namespace reference
