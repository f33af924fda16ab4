// What matmul means, in double, with the error that f32 arithmetic may make.
#pragma once

#include "reference/tolerance.hpp"

namespace reference {

/// The options of one matrix product; empty matrices are terms that are not given.
struct MatmulTerms {
  double alpha = 1, beta = 0;
  Matrix dst;               // [m, n], read if beta is not 0
  Eigen::RowVectorXd bias;  // [n]
  Act activation = Act::identity;
  Matrix residual;  // [m, n]
};

/// activation(alpha a b + beta dst + bias) + residual
inline Matrix matmul(const Matrix& a, const Matrix& b, const MatmulTerms& t = {}) {
  Matrix c = Matrix::Zero(a.rows(), b.cols());
  if (t.alpha != 0) c += t.alpha * (a * b);
  if (t.beta != 0) c += t.beta * t.dst;
  if (t.bias.size() != 0) c.rowwise() += t.bias;
  c = c.unaryExpr([&](double x) { return activation(t.activation, x); });
  if (t.residual.size() != 0) c += t.residual;
  return c;
}

/// The same with bounds, before the store.
inline Approx matmul_bound(const Matrix& a, const Matrix& b, const MatmulTerms& t = {}) {
  const auto m = a.rows(), n = b.cols();
  const Approx none = exact(Matrix::Zero(m, n));
  const auto scaled = [&](double s, const Approx& x) { return times(exact(Matrix::Constant(m, n, s)), x); };
  const Approx ab = t.alpha != 0 ? scaled(t.alpha, product(exact(a), exact(b))) : none;
  const Approx c = t.beta != 0 ? scaled(t.beta, exact(t.dst)) : none;
  const Approx bias = t.bias.size() != 0 ? repeated(t.bias, m) : none;
  Approx y = applied(t.activation, sum({ab, c, bias}));
  if (t.residual.size() != 0) y = sum({y, exact(t.residual)});
  y.value = matmul(a, b, t);
  return y;
}

}  // namespace reference
