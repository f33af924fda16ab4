// layernorm as a tile program: dst = (x - mean) / sqrt(var + eps) * weight + bias, x = src (+ residual).
//
// Public call: neuron_kernels/layernorm.hpp.
#pragma once

#include "neuron_kernels/kernels/steps.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

template <class T>
struct LayernormArgs {
  typename T::Hbm dst{}, src{};       // [rows, n]
  typename T::Hbm weight{}, bias{};   // [1, n]; maybe not given
  typename T::Hbm residual{}, sum{};  // [rows, n]; maybe not given
  float eps = 1e-5f;
};

struct NormBlocking {
  int rows = 128;           // of one tile
  int program_rows = 2048;  // per program

  /// Errors: ShapeError naming the field.
  void check(const Limits& l) const {
    check_block("norm", "rows", rows, l.partitions, l);
    check_block("norm", "program_rows", program_rows, no_limit, l);
  }

  static NormBlocking default_for(const Limits& l, std::int64_t rows, std::int64_t n) {
    if (!l.is_host()) return {.rows = l.partitions};
    // A tile of 15 KiB: it stays in L1 with what is made of it (32 KiB: 1.05 x the time), and its rows share the
    // cost of the ops (9 KiB: 1.04 x, 4 KiB: 1.25 x). A program of 256 KiB pays for its start.
    const std::int64_t tile = std::max<std::int64_t>(1, 3840 / std::max<std::int64_t>(n, 1));
    const std::int64_t program = std::max<std::int64_t>(tile, 65536 / std::max<std::int64_t>(n, 1));
    return {.rows = static_cast<int>(std::min(tile, std::max<std::int64_t>(rows, 1))),
            .program_rows = even_step(rows, program, tile)};
  }
};

/// x = src (+ residual, rounded to src's dtype), stored to sum when given; in a tile to read.
template <Target T>
auto load_residual_sum(T& nc, const typename T::Hbm& src, const typename T::Hbm& residual,
                       const typename T::Hbm& sum) {
  if (!residual && !sum) return nc.load("x", src);
  const auto x = nc.load("x", src);
  if (!residual) {
    nc.store(sum, x);
    return x;
  }
  const auto s =
      sum ? nc.staged("sum", sum)
          : nc.sbuf("sum", static_cast<int>(src.dim(0)), static_cast<int>(src.dim(1)), src.dtype());
  nc.tensor_tensor(s, x, Alu::add, nc.load("residual", residual));
  if (sum) nc.store(sum, s);
  return s;
}

/// dst = (x - mean) / sqrt(var + eps) * weight + bias, row by row; var divides by n.
/// shapes: dst, src, residual, sum [rows, n]; weight, bias [1, n]
/// needs: n >= 1; sum of src's dtype
/// cost: about 8 rows n FLOPs; reads and writes each operand once
/// source: Ba, Kiros, Hinton 2016 (arXiv 1607.06450)
template <Target T>
void layernorm_kernel(T& nc, const LayernormArgs<T>& a, const NormBlocking& blocking) {
  const int n = static_cast<int>(a.src.dim(1));
  for (auto program : nc.programs(a.src.dim(0), blocking.program_rows)) {
    const int most_rows = std::min(program.size, blocking.rows);
    const auto weights =
        a.weight ? nc.load_broadcast("weight", a.weight, most_rows) : typename T::Tile();  // [rows, n]
    const auto biases =
        a.bias ? nc.load_broadcast("bias", a.bias, most_rows) : typename T::Tile();  // [rows, n]
    for (auto rows : nc.tiles(program.size, blocking.rows)) {
      const auto at = [&](const typename T::Hbm& h) {
        return h ? h.rows(program.begin + rows.begin, rows.size) : h;
      };
      const auto x = load_residual_sum(nc, at(a.src), at(a.residual), at(a.sum));  // [rows, n]
      auto stats = nc.sbuf("stats", rows.size, 2, DType::f32);
      nc.norm_stats(stats, x);
      const auto mean = stats.free(nc.index(0), 1), rstd = stats.free(nc.index(1), 1);
      nc.activate(rstd, Act::rsqrt, rstd, {.bias = a.eps});  // 1 / sqrt(var + eps)

      const auto dst = at(a.dst);
      const auto y = nc.staged("y", dst);
      if (!a.weight && !a.bias) {
        nc.tensor_scalar(y, x, Alu::subtract, mean, Alu::multiply, rstd);
      } else {
        const auto centred = nc.sbuf("centred", rows.size, n, DType::f32);
        if (a.weight) {
          const auto weight = weights.partitions(nc.index(0), rows.size);
          nc.scalar_tensor_tensor(centred, x, Alu::subtract, mean, Alu::multiply, weight);
        } else {
          nc.tensor_scalar(centred, x, Alu::subtract, mean);
        }
        if (a.bias) {
          const auto bias = biases.partitions(nc.index(0), rows.size);
          nc.scalar_tensor_tensor(y, centred, Alu::multiply, rstd, Alu::add, bias);
        } else {
          nc.tensor_scalar(y, centred, Alu::multiply, rstd);
        }
      }
      nc.store(dst, y);
    }
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
