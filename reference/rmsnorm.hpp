// What rmsnorm means, in double, with the error that f32 arithmetic may make.
#pragma once

#include "reference/tolerance.hpp"

namespace reference {

/// Per row: x / sqrt(mean(x^2) + eps) * weight. Empty weight: not given.
inline Matrix rmsnorm(const Matrix& x, const Eigen::RowVectorXd& weight, double eps) {
  Matrix y = x;
  for (Eigen::Index i = 0; i < y.rows(); ++i) {
    const double mean_square = y.row(i).squaredNorm() / static_cast<double>(y.cols());
    y.row(i) /= std::sqrt(mean_square + eps);
  }
  if (weight.size() != 0) y.array().rowwise() *= weight.array();
  return y;
}

/// The same with bounds, before the store: half the relative error of the sum of squares, and three products.
inline Approx rmsnorm_bound(const Matrix& x, const Eigen::RowVectorXd& weight, double eps) {
  const double n = static_cast<double>(x.cols());
  Approx y = exact(rmsnorm(x, weight, eps));
  y.error = (0.5 * gamma(n + 3) + function_error + gamma(3)) * y.value.cwiseAbs();
  for (Eigen::Index j = 0; j < x.cols(); ++j) {  // x * rstd may be a denormal
    y.error.col(j).array() += smallest_step(DType::f32) * (weight.size() != 0 ? std::abs(weight(j)) : 1);
  }
  return y;
}

}  // namespace reference
