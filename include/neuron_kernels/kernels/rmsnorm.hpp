// rmsnorm as a tile program: dst = x / sqrt(mean(x^2) + eps) * weight, x = src (+ residual).
//
// Public call: neuron_kernels/rmsnorm.hpp. Blocking and the residual sum are layernorm's.
#pragma once

#include "neuron_kernels/kernels/layernorm.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

template <class T>
struct RmsnormArgs {
  typename T::Hbm dst{}, src{};       // [rows, n]
  typename T::Hbm weight{};           // [1, n]; maybe not given
  typename T::Hbm residual{}, sum{};  // [rows, n]; maybe not given
  float eps = 1e-6f;
};

/// dst = x / sqrt(mean(x^2) + eps) * weight, row by row.
/// shapes: dst, src, residual, sum [rows, n]; weight [1, n]
/// needs: n >= 1; sum of src's dtype
/// cost: about 4 rows n FLOPs; reads and writes each operand once
/// source: Zhang, Sennrich 2019 (arXiv 1910.07467)
template <Target T>
void rmsnorm_kernel(T& nc, const RmsnormArgs<T>& a, const NormBlocking& blocking) {
  const int n = static_cast<int>(a.src.dim(1));
  for (auto program : nc.programs(a.src.dim(0), blocking.program_rows)) {
    const int most_rows = std::min(program.size, blocking.rows);
    const auto weights =
        a.weight ? nc.load_broadcast("weight", a.weight, most_rows) : typename T::Tile();  // [rows, n]
    for (auto rows : nc.tiles(program.size, blocking.rows)) {
      const auto at = [&](const typename T::Hbm& h) {
        return h ? h.rows(program.begin + rows.begin, rows.size) : h;
      };
      const auto x = load_residual_sum(nc, at(a.src), at(a.residual), at(a.sum));  // [rows, n]
      auto squares = nc.sbuf("squares", rows.size, n, DType::f32);
      auto rrms = nc.sbuf("rrms", rows.size, 1, DType::f32);
      nc.activate(squares, Act::square, x, {.row_sum = rrms});
      nc.activate(rrms, Act::rsqrt, rrms, {.scale = 1.f / static_cast<float>(n), .bias = a.eps});

      const auto y = nc.staged("y", at(a.dst));
      if (a.weight) {
        const auto weight = weights.partitions(nc.index(0), rows.size);
        nc.scalar_tensor_tensor(y, x, Alu::multiply, rrms, Alu::multiply, weight);
      } else {
        nc.tensor_scalar(y, x, Alu::multiply, rrms);
      }
      nc.store(at(a.dst), y);
    }
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
