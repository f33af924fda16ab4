// The matmul tutorials' kernels: tiled, loads hoisted, two blocked dimensions, three blocked dimensions.
//
// [4096, 8192] @ [8192, 8192]; lhs arrives transposed. Loop order and tiles: AWS Neuron SDK,
// nki/guides/tutorials/kernel-optimization.rst (Trn2, f32) and nki/tutorials/matrix_multiplication.rst of SDK 2.26
// (Trn1, bf16).
#pragma once

#include "neuron_kernels/record/recorder.hpp"

namespace fidelity {

using neuron_kernels::DType;
using neuron_kernels::Limits;
using neuron_kernels::Program;
using neuron_kernels::Recorder;
using Tile = Recorder::Tile;
using TileArray = Recorder::TileArray;

struct TutorialMatmul {
  static constexpr int m = 4096, k = 8192, n = 8192, k_tiles = k / 128;
  Recorder nc;
  DType dtype;
  Recorder::Hbm lhsT, rhs, dst;

  TutorialMatmul(const Limits& limits, DType type)
      : nc(limits),
        dtype(type),
        lhsT(nc.hbm("lhsT", type, {k, m})),
        rhs(nc.hbm("rhs", type, {k, n})),
        dst(nc.hbm("result", type, {m, n})) {}

  void store(const Recorder::Index& row, const Recorder::Index& col, const Tile& acc) {
    auto y = nc.sbuf("y", 128, 512, dtype);
    nc.copy(y, acc);
    nc.store(dst.rows(row, 128).cols(col, 512), y);
  }
  void load_strip(const TileArray& strip, const Recorder::Hbm& src, const Recorder::Index& col, int width) {
    for (auto i : nc.range(k_tiles)) nc.load(strip, i, src.rows(i * 128, 128).cols(col, width));
  }
};

inline Program matmul_tiled(const Limits& limits, DType dtype) {
  TutorialMatmul x(limits, dtype);
  for (auto m : x.nc.range(x.m / 128)) {
    for (auto n : x.nc.range(x.n / 512)) {
      auto acc = x.nc.psum("acc", 128, 512);
      for (auto k : x.nc.range(x.k_tiles)) {
        const auto l = x.nc.load("l", x.lhsT.rows(k * 128, 128).cols(m * 128, 128));
        const auto r = x.nc.load("r", x.rhs.rows(k * 128, 128).cols(n * 512, 512));
        x.nc.matmul(acc, l, r, {.accumulate = k > 0});
      }
      x.store(m * 128, n * 512, acc);
    }
  }
  return x.nc.program();
}

inline Program matmul_hoisted(const Limits& limits, DType dtype) {
  TutorialMatmul x(limits, dtype);
  for (auto m : x.nc.range(x.m / 128)) {
    auto l = x.nc.input_array("l", x.k_tiles, 128, 128, dtype);
    x.load_strip(l, x.lhsT, m * 128, 128);
    for (auto n : x.nc.range(x.n / 512)) {
      auto acc = x.nc.psum("acc", 128, 512);
      for (auto k : x.nc.range(x.k_tiles)) {
        const auto r = x.nc.load("r", x.rhs.rows(k * 128, 128).cols(n * 512, 512));
        x.nc.matmul(acc, l[k], r, {.accumulate = k > 0});
      }
      x.store(m * 128, n * 512, acc);
    }
  }
  return x.nc.program();
}

/// Blocks of 2 x 2 tiles. In f32 two strips of rhs do not fit SBUF beside those of lhs: a strip is loaded again for
/// each row of tiles, as the published memory traffic says.
inline Program matmul_blocked_mn(const Limits& limits, DType dtype) {
  TutorialMatmul x(limits, dtype);
  const bool reload = dtype == DType::f32;
  for (auto m : x.nc.range(x.m / 256)) {
    auto l = x.nc.input_array("l", 2 * x.k_tiles, 128, 128, dtype);
    for (auto bm : x.nc.range(2)) {
      for (auto k : x.nc.range(x.k_tiles))
        x.nc.load(l, bm * x.k_tiles + k, x.lhsT.rows(k * 128, 128).cols(m * 256 + bm * 128, 128));
    }
    for (auto n : x.nc.range(x.n / 1024)) {
      const auto load = [&](const TileArray& r, const auto& first, const auto& bn) {
        for (auto k : x.nc.range(x.k_tiles))
          x.nc.load(r, first + k, x.rhs.rows(k * 128, 128).cols(n * 1024 + bn * 512, 512));
      };
      const auto tile = [&](const TileArray& r, const auto& first, const auto& bm, const auto& bn) {
        auto acc = x.nc.psum("acc", 128, 512);
        for (auto k : x.nc.range(x.k_tiles))
          x.nc.matmul(acc, l[bm * x.k_tiles + k], r[first + k], {.accumulate = k > 0});
        x.store(m * 256 + bm * 128, n * 1024 + bn * 512, acc);
      };
      if (reload) {
        for (auto bm : x.nc.range(2)) {
          for (auto bn : x.nc.range(2)) {
            auto r = x.nc.input_array("r", x.k_tiles, 128, 512, dtype);
            load(r, x.nc.index(0), bn);
            tile(r, x.nc.index(0), bm, bn);
          }
        }
      } else {
        auto r = x.nc.input_array("r", 2 * x.k_tiles, 128, 512, dtype);
        for (auto bn : x.nc.range(2)) load(r, bn * x.k_tiles, bn);
        for (auto bm : x.nc.range(2)) {
          for (auto bn : x.nc.range(2)) tile(r, bn * x.k_tiles, bm, bn);
        }
      }
    }
  }
  return x.nc.program();
}

/// Blocks of 2048 rows, 1024 columns, 1024 of k. Partial results stay in SBUF in dtype; the scalar engine packs them.
inline Program matmul_blocked_mnk(const Limits& limits, DType dtype) {
  TutorialMatmul x(limits, dtype);
  constexpr int block_m = 2048, block_n = 1024, block_k = 1024, rows = block_m / 128, depth = block_k / 128;
  for (auto n : x.nc.range(x.n / block_n)) {
    auto result = x.nc.sbuf_array("result", x.m / 128, 128, block_n, dtype);
    for (auto kb : x.nc.range(x.k / block_k)) {
      auto r = x.nc.input_array("r", depth, 128, block_n, dtype);
      for (auto k : x.nc.range(depth))
        x.nc.load(r, k, x.rhs.rows((kb * depth + k) * 128, 128).cols(n * block_n, block_n));
      for (auto m : x.nc.range(x.m / block_m)) {
        auto l = x.nc.input_array("l", depth, 128, block_m, dtype);
        for (auto k : x.nc.range(depth))
          x.nc.load(l, k, x.lhsT.rows((kb * depth + k) * 128, 128).cols(m * block_m, block_m));
        for (auto bn : x.nc.range(block_n / 512)) {
          for (auto bm : x.nc.range(rows)) {
            auto acc = x.nc.psum("acc", 128, 512);
            for (auto k : x.nc.range(depth))
              x.nc.matmul(acc, l[k].free(bm * 128, 128), r[k].free(bn * 512, 512), {.accumulate = k > 0});
            const auto to = result[m * rows + bm].free(bn * 512, 512);
            for (auto first : x.nc.range(kb, min(kb + 1, x.nc.index(1)))) (void)first, x.nc.copy(to, acc);
            for (auto later : x.nc.range(max(kb, x.nc.index(1)), kb + 1))
              (void)later, x.nc.tensor_tensor(to, acc, neuron_kernels::Alu::add, to);
          }
        }
      }
    }
    for (auto m : x.nc.range(x.m / 128)) {
      auto y = x.nc.sbuf("y", 128, block_n, dtype);
      for (auto bn : x.nc.range(block_n / 512))
        x.nc.copy(y.free(bn * 512, 512), result[m].free(bn * 512, 512),
                  {.engine = neuron_kernels::Engine::scalar});
      x.nc.store(x.dst.rows(m * 128, 128).cols(n * block_n, block_n), y);
    }
  }
  return x.nc.program();
}

}  // namespace fidelity
