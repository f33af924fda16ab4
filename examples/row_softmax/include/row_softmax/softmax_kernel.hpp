// softmax of each row as a tile program: dst[i, j] = exp(src[i, j] - m[i]) / sum over j of the same, m the row's maximum.
#pragma once

#include "neuron_kernels/core/target.hpp"

namespace row_softmax {

namespace nk = neuron_kernels;

/// shapes: dst, src [rows, n]
/// needs: a few rows of n elements in SBUF: `kernels check` says for which n
template <nk::Target T>
void softmax_kernel(T& nc, const typename T::Hbm& dst, const typename T::Hbm& src) {
  using nk::Act, nk::Alu, nk::DType;
  const int n = static_cast<int>(src.dim(1));
  for (auto rows : nc.programs(src.dim(0), 128)) {
    const auto x = nc.load("x", src.rows(rows.begin, rows.size));  // [rows, n]
    auto m = nc.sbuf("m", rows.size, 1, DType::f32);
    nc.reduce(m, Alu::max, x);
    nc.tensor_scalar(m, m, Alu::multiply, -1.f);  // -max
    auto p = nc.sbuf("p", rows.size, n, DType::f32);
    auto sum = nc.sbuf("sum", rows.size, 1, DType::f32);
    nc.activate(p, Act::exp, x, {.bias = m, .row_sum = sum});  // p = exp(x - max)
    nc.reciprocal(sum, sum);
    auto y = nc.staged("y", dst.rows(rows.begin, rows.size));
    nc.tensor_scalar(y, p, Alu::multiply, sum);  // y = p / sum
    nc.store(dst.rows(rows.begin, rows.size), y);
  }
}

}  // namespace row_softmax
