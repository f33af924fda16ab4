// What fused_mlp means, in double, with the error that f32 arithmetic may make.
#pragma once

#include "reference/tolerance.hpp"

namespace reference {

/// Weights as in torch.nn.Linear, [to, from]; 0 x 0 ones are not given. Without a gate the block is plain.
struct Mlp {
  Matrix up, down, gate;                             // [inner, hidden], [hidden, inner], [inner, hidden]
  Eigen::RowVectorXd up_bias, down_bias, gate_bias;  // [inner], [hidden], [inner]
  Act activation = Act::silu;

  bool gated() const { return gate.rows() + gate.cols() != 0; }
};

/// x weight^T + bias
inline Matrix linear(const Matrix& x, const Matrix& weight, const Eigen::RowVectorXd& bias) {
  Matrix y = x * weight.transpose();
  if (bias.size() != 0) y.rowwise() += bias;
  return y;
}

/// gated: linear(act(linear(x, gate)) * linear(x, up), down); plain: linear(act(linear(x, up)), down)
inline Matrix fused_mlp(const Matrix& x, const Mlp& w) {
  const auto act = [&](double y) { return activation(w.activation, y); };
  const Matrix up = linear(x, w.up, w.up_bias);
  if (!w.gated()) return linear(up.unaryExpr(act), w.down, w.down_bias);
  const Matrix gate = linear(x, w.gate, w.gate_bias).unaryExpr(act);
  return linear(gate.cwiseProduct(up), w.down, w.down_bias);
}

/// The same with bounds, before the store.
/// The hidden activation may be rounded to x's dtype, as the chip's matrix engine wants it.
inline Approx fused_mlp_bound(const Matrix& x, const Mlp& w, DType operand) {
  const auto linear_bound = [](const Approx& y, const Matrix& weight, const Eigen::RowVectorXd& bias) {
    const Approx yw = product(y, exact(weight.transpose()));
    return bias.size() != 0 ? sum({yw, repeated(bias, yw.value.rows())}) : yw;
  };
  Approx h = linear_bound(exact(x), w.up, w.up_bias);
  if (!w.gated()) {
    h = applied(w.activation, h);
  } else {
    h = times(applied(w.activation, linear_bound(exact(x), w.gate, w.gate_bias)), h);
  }
  Approx y = linear_bound(stored(h, operand), w.down, w.down_bias);
  y.value = fused_mlp(x, w);
  return y;
}

}  // namespace reference
