// The layernorm tutorial's two versions (Trn1, f32) and the library's rmsnorm_quant (Trn2, one of two cores).
//
// Source: AWS Neuron SDK 2.26, nki/tutorials/layernorm.rst; SDK, nki/library/specs/design-rmsnorm-quant.rst.
#pragma once

#include "matmuls.hpp"

namespace fidelity {

inline Program tutorial_layernorm(const Limits& limits, int version) {
  using neuron_kernels::Act;
  using neuron_kernels::Alu;
  constexpr int rows = 4096, n = 8192;
  Recorder nc(limits);
  const auto src = nc.hbm("input", DType::f32, {rows, n}), dst = nc.hbm("output", DType::f32, {rows, n});
  const auto gamma = nc.load_broadcast("gamma", nc.hbm("gamma_vector", DType::f32, {1, n}), 128);
  const auto beta = nc.load_broadcast("beta", nc.hbm("beta_vector", DType::f32, {1, n}), 128);
  for (auto i : nc.range(rows / 128)) {
    const auto x = nc.load("x", src.rows(i * 128, 128));
    auto y = nc.sbuf("y", 128, n, DType::f32), stats = nc.sbuf("stats", 128, 2, DType::f32);
    const auto mean = stats.free(nc.index(0), 1), rstd = stats.free(nc.index(1), 1);
    if (version == 1) {  // mean and mean of squares in passes of their own
      nc.reduce(mean, Alu::add, x);
      nc.activate(y, Act::square, x);
      nc.reduce(rstd, Alu::add, y);
      nc.tensor_scalar(stats, stats, Alu::multiply, 1.f / n);
    } else {
      nc.norm_stats(stats, x);
    }
    nc.activate(rstd, Act::rsqrt, rstd, {.bias = 1e-5f});
    nc.tensor_scalar(y, x, Alu::subtract, mean, Alu::multiply, rstd);
    nc.tensor_tensor(y, y, Alu::multiply, gamma);
    nc.tensor_tensor(y, y, Alu::add, beta);
    nc.store(dst.rows(i * 128, 128), y);
  }
  return nc.program();
}

/// Half of the rows: the other core has the others. A row of the result is n bytes of fp8 and 4 of its scale, written
/// here as (n + 4) / 2 elements of 16 bits. Tiles follow one another (one buffer each), and the product with gamma,
/// which lies in PSUM, takes two cycles per element: both as the source has them.
inline Program rmsnorm_quant(const Limits& limits, int rows, int n) {
  using neuron_kernels::Act;
  using neuron_kernels::Alu;
  Recorder nc(limits);
  const auto src = nc.hbm("hidden", DType::bf16, {rows / 2, n}),
             dst = nc.hbm("output", DType::bf16, {rows / 2, (n + 4) / 2});
  const auto gamma = nc.load("gamma", nc.hbm("gamma_vector", DType::bf16, {1, n}));
  auto ones = nc.sbuf("ones", 1, 128, DType::bf16);
  nc.fill(ones, 1.f);
  for (auto i : nc.range(rows / 2 / 128)) {
    const auto x = nc.load("x", src.rows(i * 128, 128));
    auto y = nc.sbuf("y", 128, n, DType::f32), rrms = nc.sbuf("rrms", 128, 1, DType::f32),
         scale = nc.sbuf("scale", 128, 1, DType::f32);
    nc.activate(y, Act::square, x, {.row_sum = rrms});
    nc.activate(rrms, Act::rsqrt, rrms, {.scale = 1.f / static_cast<float>(n), .bias = 1e-6f});
    for (auto j : nc.range(n / 512)) {
      auto weights = nc.psum("weights", 128, 512);
      nc.matmul(weights, ones, gamma.free(j * 512, 512));
      nc.scalar_tensor_tensor(y.free(j * 512, 512), x.free(j * 512, 512), Alu::multiply, rrms, Alu::multiply,
                              weights);
    }
    nc.tensor_scalar_reduce(y, y, Alu::multiply, 1.f, Alu::max, scale);
    nc.activate(scale, Act::identity, scale, {.scale = 1.f / 240});
    nc.tensor_scalar(scale, scale, Alu::max, 1e-6f);
    nc.reciprocal(scale, scale);
    auto quantised = nc.sbuf("quantised", 128, n, DType::bf16);
    nc.tensor_scalar(quantised, y, Alu::multiply, scale);
    nc.store(dst.rows(i * 128, 128), quantised.free(nc.index(0), (n + 4) / 2));
  }
  return nc.program();
}

}  // namespace fidelity
