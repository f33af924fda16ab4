// What flash_attention means for one head, in double, with the error that f32 arithmetic may make.
#pragma once

#include <limits>

#include "reference/tolerance.hpp"

namespace reference {

/// One head. bias [q_len, kv_len] or empty;
/// key j is visible to query i if not causal or j <= i + kv_len - q_len.
struct AttentionHead {
  Matrix q, k, v;  // [q_len, d], [kv_len, d], [kv_len, dv]
  double scale = 1;
  Matrix bias;
  bool causal = false;
};

struct AttentionResult {
  Approx dst;  // [q_len, dv]
  Approx lse;  // [q_len, 1], natural log of the sum of exp(scores)
};

/// Query head h of `heads` reads this kv head.
inline std::int64_t kv_head_of(std::int64_t h, std::int64_t heads, std::int64_t kv_heads) {
  return h / (heads / kv_heads);
}

/// scale q k^T + bias, -inf where masked.
inline Matrix scores(const AttentionHead& a) {
  Matrix s = a.scale * (a.q * a.k.transpose());
  if (a.bias.size() != 0) s += a.bias;
  for (Eigen::Index i = 0; a.causal && i < s.rows(); ++i) {
    for (Eigen::Index j = std::max<Eigen::Index>(0, i + s.cols() - s.rows() + 1); j < s.cols(); ++j) {
      s(i, j) = -std::numeric_limits<double>::infinity();
    }
  }
  return s;
}

/// softmax(scores) v per row and lse; a row without a visible key gives 0 and -inf.
/// Bounds: every weight p = exp(s - m) has a relative error from its score and from exp, once more for each
/// time the running maximum moved (at most once per `kv_tile` keys);
/// p may be rounded to v's dtype before p v, and what is added up to the sum of a row `term_roundings` times.
inline AttentionResult attention(const AttentionHead& a, DType operand, double kv_tile = 16,
                                 int term_roundings = 0) {
  const auto q_len = a.q.rows(), kv_len = a.k.rows();
  const Matrix s = scores(a);
  const Matrix qk_magnitude = a.q.cwiseAbs() * a.k.cwiseAbs().transpose();
  const Matrix v_magnitude = a.v.cwiseAbs();
  const double moves = std::ceil(static_cast<double>(kv_len) / kv_tile) + 1;
  const double p_rounding = operand == DType::f32 ? 0 : neuron_kernels::unit_roundoff(operand);
  const double sum_error = gamma(static_cast<double>(kv_len) + 2 * moves + 4) + term_roundings * p_rounding;
  const double p_smallest = std::max(underflow, smallest_step(operand));

  AttentionResult r{exact(Matrix::Zero(q_len, a.v.cols())), exact(Matrix::Zero(q_len, 1))};
  for (Eigen::Index i = 0; i < q_len; ++i) {
    double m = -std::numeric_limits<double>::infinity();
    for (Eigen::Index j = 0; j < kv_len && !std::isnan(m); ++j)
      m = s(i, j) > m || std::isnan(s(i, j)) ? s(i, j) : m;
    r.lse.value(i, 0) = m;
    if (std::isinf(m)) continue;
    const Eigen::RowVectorXd weight = (s.row(i).array() - m).exp();
    const double l = weight.sum();
    const Eigen::RowVectorXd p = weight / l;
    r.dst.value.row(i) = p * a.v;
    r.lse.value(i, 0) = m + std::log(l);

    Eigen::RowVectorXd p_error = Eigen::RowVectorXd::Zero(kv_len);
    for (Eigen::Index j = 0; j < kv_len; ++j) {
      if (weight(j) == 0) continue;
      const double b = a.bias.size() != 0 ? std::abs(a.bias(i, j)) : 0;
      const double score =
          gamma(static_cast<double>(a.q.cols()) + 3) * (std::abs(a.scale) * qk_magnitude(i, j) + b);
      const double per_exp = function_error + 4 * u * (std::abs(s(i, j)) + std::abs(m));
      p_error(j) = p(j) * std::expm1(score + (1 + moves) * per_exp);
    }
    const double all = p_error.sum();
    const double room = std::max(1 - all - sum_error, 1e-3);  // what the denominator keeps at least
    const Eigen::RowVectorXd pv = p * v_magnitude;
    r.dst.error.row(i) =
        (p_error * v_magnitude + all * r.dst.value.row(i).cwiseAbs() + (sum_error + p_rounding) * pv +
         sum_error * r.dst.value.row(i).cwiseAbs() + p_smallest * v_magnitude.colwise().sum()) /
        room;
    r.lse.error(i, 0) = (all + sum_error + static_cast<double>(kv_len) * underflow) / room +
                        function_error * std::log(l) + 4 * u * (std::abs(m) + std::abs(r.lse.value(i, 0)));
  }
  return r;
}

}  // namespace reference
