// How far a right implementation in f32 may be from the exact value, element by element.
//
// An Approx goes through the same steps as a kernel and collects the error that each step may add: unit
// roundoff x depth x the magnitudes that really occur. Source: Higham, Accuracy and Stability of Numerical
// Algorithms (2nd ed.), sections 2.2 and 3.1 (gamma_n, running error bounds).
#pragma once

#include <Eigen/Core>
#include <initializer_list>

#include "neuron_kernels/core/dtype.hpp"
#include "neuron_kernels/core/ops.hpp"
#include "reference/activation.hpp"

namespace reference {

using Matrix = Eigen::MatrixXd;
using neuron_kernels::DType;

inline constexpr double u = 0x1p-24;           // unit roundoff of f32
inline constexpr double underflow = 0x1p-126;  // results below may be flushed to zero
// The library states its functions (exp, tanh, rsqrt, gelu, ...) to 6 ULP or better; an ULP is at most 2 u.
inline constexpr double function_error = 12 * u;

/// Relative error of n f32 operations in a row.
inline double gamma(double n) { return n * u / (1 - n * u); }

/// Half the distance of the smallest numbers:
/// the absolute error of a store that the relative one does not cover.
inline double smallest_step(DType t) {
  return t == DType::f32 ? 0x1p-150 : t == DType::bf16 ? 0x1p-134 : 0x1p-25;
}

/// A value and a bound on the distance of any right result from it.
struct Approx {
  Matrix value, error;
  Matrix largest() const { return value.cwiseAbs() + error; }
};

inline Approx exact(const Matrix& m) { return {m, Matrix::Zero(m.rows(), m.cols())}; }

/// a b, summed in f32 in any order.
inline Approx product(const Approx& a, const Approx& b) {
  const double depth = static_cast<double>(a.value.cols());
  const Matrix a_abs = a.largest(), b_abs = b.largest();
  Matrix error = gamma(depth + 1) * (a_abs * b_abs);
  if (!a.error.isZero(0)) error += a.error * b_abs;
  if (!b.error.isZero(0)) error += a_abs * b.error;
  return {a.value * b.value, error.array() + depth * smallest_step(DType::f32)};
}

/// The sum of the terms, added in any order.
inline Approx sum(std::initializer_list<Approx> terms) {
  const auto& first = terms.begin()->value;
  Approx s = exact(Matrix::Zero(first.rows(), first.cols()));
  Matrix magnitude = s.value;
  for (const Approx& t : terms) {
    s.value += t.value;
    s.error += t.error;
    magnitude += t.largest();
  }
  s.error += gamma(static_cast<double>(terms.size())) * magnitude;
  return s;
}

/// a times b, element by element.
inline Approx times(const Approx& a, const Approx& b) {
  const Matrix magnitude = a.largest().cwiseProduct(b.largest());
  const Matrix error = a.value.cwiseAbs().cwiseProduct(b.error) + a.error.cwiseProduct(b.largest());
  return {a.value.cwiseProduct(b.value), (error + gamma(1) * magnitude).array() + smallest_step(DType::f32)};
}

/// The same row under every row of m.
inline Approx repeated(const Eigen::RowVectorXd& row, Eigen::Index rows) {
  return exact(row.replicate(rows, 1));
}

/// f of every element: its slope carries the error on, its own rounding adds to it.
inline Approx applied(Act f, const Approx& x) {
  Approx y = x;
  for (Eigen::Index i = 0; i < x.value.size(); ++i) {
    const double at = x.value.data()[i];
    y.value.data()[i] = activation(f, at);
    y.error.data()[i] = std::isinf(at) ? 0 : activation_slope(f) * x.error.data()[i];  // inf was met exactly
    if (f != Act::identity && f != Act::relu) {
      y.error.data()[i] +=
          function_error * activation_magnitude(f, at) + underflow * std::max(1.0, std::abs(at));
    }
  }
  return y;
}

/// x after a store as dtype t.
inline Approx stored(const Approx& x, DType t) {
  return {x.value, (x.error + neuron_kernels::unit_roundoff(t) * x.largest()).array() + smallest_step(t)};
}

}  // namespace reference
