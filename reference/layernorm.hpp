// What layernorm means, in double, with the error that f32 arithmetic may make.
#pragma once

#include "reference/tolerance.hpp"

namespace reference {

/// Per row: (x - mean) / sqrt(variance + eps) * weight + bias; variance divides by n.
/// Empty weight or bias: not given.
inline Matrix layernorm(const Matrix& x, const Eigen::RowVectorXd& weight, const Eigen::RowVectorXd& bias,
                        double eps) {
  Matrix y = x.colwise() - x.rowwise().mean();
  for (Eigen::Index i = 0; i < y.rows(); ++i) {
    const double variance = y.row(i).squaredNorm() / static_cast<double>(y.cols());
    y.row(i) /= std::sqrt(variance + eps);
  }
  if (weight.size() != 0) y.array().rowwise() *= weight.array();
  if (bias.size() != 0) y.rowwise() += bias;
  return y;
}

/// The same with bounds, before the store. A right implementation finds the mean to an ULP of the mean and
/// sums distances from it, so that a mean of 1e6 costs digits of the mean only, never of the variance.
inline Approx layernorm_bound(const Matrix& x, const Eigen::RowVectorXd& weight,
                              const Eigen::RowVectorXd& bias, double eps) {
  const double n = static_cast<double>(x.cols()), tiny = 2 * smallest_step(DType::f32);
  Approx y = exact(layernorm(x, weight, bias, eps));
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const double mean = x.row(i).mean();
    const Eigen::ArrayXd far = (x.row(i).array() - mean).abs();
    const double variance = far.square().mean();
    const double mean_error = 2 * u * std::abs(mean) + gamma(n + 1) * far.mean() + tiny;
    // Every term (x - mean)^2 has 3 roundings, their sum n more; a wrong mean adds its own square.
    const double variance_error = gamma(n + 4) * variance + mean_error * mean_error;
    const double rstd = 1 / std::sqrt(variance + eps);
    const double rstd_error = 0.5 * variance_error / (variance + eps) + function_error;  // relative
    for (Eigen::Index j = 0; j < x.cols(); ++j) {
      const double w = weight.size() != 0 ? std::abs(weight(j)) : 1,
                   b = bias.size() != 0 ? std::abs(bias(j)) : 0;
      const double normal = far(j) * rstd;
      y.error(i, j) =
          w * (rstd * mean_error + normal * (rstd_error + gamma(3))) + gamma(1) * (b + w * normal) + w * tiny;
      y.error(i, j) *= 1 + rstd_error + gamma(3);  // products of errors
    }
  }
  return y;
}

}  // namespace reference
