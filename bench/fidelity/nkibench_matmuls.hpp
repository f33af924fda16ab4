// NKIBench's kernels that are bound by the tensor engine or by the transfers of their products. f32 on Trn1.
//
// Shapes and loop orders: zhang677/AccelOpt, NKIBench (baseline kernels, or [best] where said); bytes that are spilled
// follow its published HBM counters.
#pragma once

#include "matmuls.hpp"

namespace fidelity {

/// [128, 128] f32 turned by the tensor engine and taken out of PSUM by `engine`.
inline void turn(Recorder& nc, const Tile& dst, const Tile& src, neuron_kernels::Engine engine) {
  auto bank = nc.psum("turned", dst.p(), dst.f());
  nc.transpose(bank, src);
  nc.copy(dst, bank, {.engine = engine});
}

/// acc = sum over k of stationary[k]^T moving[k]'s columns from `column` on; to `to` by the scalar engine.
inline void product(Recorder& nc, const Tile& to, const TileArray& stationary,
                    const Recorder::Index& s_column, const TileArray& moving, const Recorder::Index& column,
                    int k_tiles) {
  auto acc = nc.psum("acc", to.p(), to.f());
  for (auto k : nc.range(k_tiles))
    nc.matmul(acc, stationary[k].free(s_column, to.p()), moving[k].free(column, to.f()),
              {.accumulate = k > 0});
  nc.copy(to, acc, {.engine = neuron_kernels::Engine::scalar});
}

/// transpose_matmul [best]: lhsT [2048, 4096], rhs [2048, 10944].
inline Program transpose_matmul(const Limits& limits) {
  constexpr int m = 4096, k = 2048, n = 10944, k_tiles = k / 128;
  Recorder nc(limits);
  const auto lhsT = nc.hbm("lhsT", DType::f32, {k, m}), rhs = nc.hbm("rhs", DType::f32, {k, n}),
             dst = nc.hbm("dst", DType::f32, {m, n});
  for (auto mb : nc.range(m / 1024)) {
    auto l = nc.input_array("l", k_tiles, 128, 1024, DType::f32);
    for (auto i : nc.range(k_tiles)) nc.load(l, i, lhsT.rows(i * 128, 128).cols(mb * 1024, 1024));
    for (auto nb : nc.tiles(n, 1024)) {
      auto r = nc.input_array("r", k_tiles, 128, nb.size, DType::f32);
      for (auto i : nc.range(k_tiles)) nc.load(r, i, rhs.rows(i * 128, 128).cols(nb.begin, nb.size));
      for (auto i : nc.range(1024 / 128)) {
        auto o = nc.sbuf("o", 128, nb.size, DType::f32);
        for (auto c : nc.tiles(nb.size, 512))
          product(nc, o.free(c.begin, c.size), l, i * 128, r, c.begin, k_tiles);
        nc.store(dst.rows(mb * 1024 + i * 128, 128).cols(nb.begin, nb.size), o);
      }
    }
  }
  return nc.program();
}

/// matmul [4096, 5120] @ [5120, 12288]: rhs is loaded again for every tile of rows, as 9.06 GB of traffic say.
inline Program nkibench_matmul(const Limits& limits) {
  constexpr int m = 4096, k = 5120, n = 12288, k_tiles = k / 128;
  Recorder nc(limits);
  const auto lhs = nc.hbm("lhs", DType::f32, {m, k}), rhs = nc.hbm("rhs", DType::f32, {k, n}),
             dst = nc.hbm("dst", DType::f32, {m, n});
  for (auto nb : nc.range(n / 1024)) {
    for (auto mt : nc.range(m / 128)) {
      auto l = nc.sbuf_array("lT", k_tiles, 128, 128, DType::f32);
      for (auto kb : nc.range(k / 1024)) {
        const auto rows = nc.load("l", lhs.rows(mt * 128, 128).cols(kb * 1024, 1024));
        for (auto i : nc.range(8))
          turn(nc, l[kb * 8 + i], rows.free(i * 128, 128), neuron_kernels::Engine::scalar);
      }
      auto acc = nc.psum_array("acc", 2, 128, 512);
      for (auto i : nc.range(k_tiles)) {
        const auto r = nc.load("r", rhs.rows(i * 128, 128).cols(nb * 1024, 1024));
        for (auto half : nc.range(2))
          nc.matmul(acc[half], l[i], r.free(half * 512, 512), {.accumulate = i > 0});
      }
      auto o = nc.sbuf("o", 128, 1024, DType::f32);
      for (auto half : nc.range(2))
        nc.copy(o.free(half * 512, 512), acc[half], {.engine = neuron_kernels::Engine::scalar});
      nc.store(dst.rows(mt * 128, 128).cols(nb * 1024, 1024), o);
    }
  }
  return nc.program();
}

/// bmm: 16 of [4096, 64] @ [64, 4096]; [best] turns by the vector engine.
inline Program bmm(const Limits& limits, bool best) {
  constexpr int batch = 16, m = 4096, k = 64, n = 4096;
  Recorder nc(limits);
  const auto lhs = nc.hbm("lhs", DType::f32, {batch, m, k}), rhs = nc.hbm("rhs", DType::f32, {batch, k, n}),
             dst = nc.hbm("dst", DType::f32, {batch, m, n});
  for (auto b : nc.range(batch)) {
    auto l = nc.sbuf_array("lT", m / 128, k, 128, DType::f32);
    for (auto i : nc.range(m / 128))
      turn(nc, l[i], nc.load("l", lhs.at(b).rows(i * 128, 128)),
           best ? neuron_kernels::Engine::vector : neuron_kernels::Engine::scalar);
    for (auto nb : nc.range(n / 1024)) {
      const auto r = nc.load("r", rhs.at(b).cols(nb * 1024, 1024));
      for (auto i : nc.range(m / 128)) {
        auto o = nc.sbuf("o", 128, 1024, DType::f32);
        for (auto half : nc.range(2)) {
          auto acc = nc.psum("acc", 128, 512);
          nc.matmul(acc, l[i], r.free(half * 512, 512));
          nc.copy(o.free(half * 512, 512), acc, {.engine = neuron_kernels::Engine::scalar});
        }
        nc.store(dst.at(b).rows(i * 128, 128).cols(nb * 1024, 1024), o);
      }
    }
  }
  return nc.program();
}

/// bmm, then softmax of its rows: seven of ten tiles of scores are spilled and loaded again, as 754 MB say.
inline Program bmm_softmax(const Limits& limits) {
  using neuron_kernels::Act;
  using neuron_kernels::Alu;
  using neuron_kernels::Engine;
  constexpr int batch = 16, m = 4096, k = 64, n = 4096;
  Recorder nc(limits);
  const auto lhs = nc.hbm("lhs", DType::f32, {batch, m, k}), rhs = nc.hbm("rhs", DType::f32, {batch, k, n}),
             dst = nc.hbm("dst", DType::f32, {batch, m, n}),
             spill = nc.hbm("spill", DType::f32, {batch, m, n});
  for (auto b : nc.range(batch)) {
    auto l = nc.sbuf_array("lT", m / 128, k, 128, DType::f32);
    for (auto i : nc.range(m / 128))
      turn(nc, l[i], nc.load("l", lhs.at(b).rows(i * 128, 128)), Engine::scalar);
    auto tops = nc.sbuf_array("tops", m / 128, 128, n / 512, DType::f32);
    for (auto nb : nc.range(n / 1024)) {
      const auto r = nc.load("r", rhs.at(b).cols(nb * 1024, 1024));
      for (auto i : nc.range(m / 128)) {
        for (auto half : nc.range(2)) {
          const auto column = nb * 2 + half;
          auto acc = nc.psum("acc", 128, 512);
          auto s = nc.sbuf("s", 128, 512, DType::f32);
          nc.matmul(acc, l[i], r.free(half * 512, 512));
          nc.copy(s, acc, {.engine = Engine::scalar});
          nc.reduce(tops[i].free(column, 1), Alu::max, s);
          for (auto spilled : nc.range(column, min(column + 1, nc.index(6))))
            nc.store(spill.at(b).rows(i * 128, 128).cols(spilled * 512, 512), s);
        }
      }
    }
    for (auto i : nc.range(m / 128)) {
      auto e = nc.sbuf("e", 128, n, DType::f32), sums = nc.sbuf("sums", 128, n / 512, DType::f32),
           shift = nc.sbuf("shift", 128, 1, DType::f32), l_sum = nc.sbuf("l", 128, 1, DType::f32);
      nc.reduce(shift, Alu::max, tops[i]);
      for (auto c : nc.range(n / 512)) {
        const auto part = e.free(c * 512, 512);
        for (auto spilled : nc.range(c, min(c + 1, nc.index(6))))
          nc.activate(part, Act::exp, nc.load("s", spill.at(b).rows(i * 128, 128).cols(spilled * 512, 512)),
                      {.bias = shift});
        for (auto kept : nc.range(max(c, nc.index(6)), c + 1))
          (void)kept, nc.activate(part, Act::exp, part, {.bias = shift});
        nc.reduce(sums.free(c, 1), Alu::add, part);
      }
      nc.reduce(l_sum, Alu::add, sums);
      for (auto nb : nc.range(n / 1024)) {
        auto o = nc.sbuf("o", 128, 1024, DType::f32);
        for (auto half : nc.range(2))
          nc.tensor_scalar(o.free(half * 512, 512), e.free(nb * 1024 + half * 512, 512), Alu::multiply,
                           l_sum);
        nc.store(dst.at(b).rows(i * 128, 128).cols(nb * 1024, 1024), o);
      }
    }
  }
  return nc.program();
}

/// swiglu: M 4096, N 3072, K 1024. The product of gate and up is spilled, as the published bytes say; loops of gate and
/// up are fused by the compiler.
inline Program swiglu(const Limits& limits) {
  using neuron_kernels::Act;
  using neuron_kernels::Alu;
  using neuron_kernels::Engine;
  constexpr int m = 4096, n = 3072, k = 1024, k_tiles = k / 128;
  Recorder nc(limits);
  const auto x = nc.hbm("x", DType::f32, {m, k}), gate = nc.hbm("gate", DType::f32, {k, n}),
             up = nc.hbm("up", DType::f32, {k, n}), down = nc.hbm("down", DType::f32, {n, k}),
             dst = nc.hbm("dst", DType::f32, {m, k}), xT = nc.hbm("xT", DType::f32, {k, m}),
             h = nc.hbm("hT", DType::f32, {n, m});
  for (auto nb : nc.range(n / 1024)) {
    auto wg = nc.input_array("wg", k_tiles, 128, 1024, DType::f32),
         wu = nc.input_array("wu", k_tiles, 128, 1024, DType::f32);
    for (auto i : nc.range(k_tiles)) nc.load(wg, i, gate.rows(i * 128, 128).cols(nb * 1024, 1024));
    for (auto i : nc.range(k_tiles)) nc.load(wu, i, up.rows(i * 128, 128).cols(nb * 1024, 1024));
    for (auto mb : nc.range(m / 512)) {
      auto turned = nc.sbuf_array("xT", k_tiles, 128, 512, DType::f32);
      for (auto first : nc.range(nb, min(nb + 1, nc.index(1)))) {
        (void)first;
        for (auto r : nc.range(4)) {
          const auto rows = nc.load("x", x.rows(mb * 512 + r * 128, 128));
          for (auto i : nc.range(k_tiles))
            turn(nc, turned[i].free(r * 128, 128), rows.free(i * 128, 128), Engine::vector);
        }
        for (auto i : nc.range(k_tiles)) nc.store(xT.rows(i * 128, 128).cols(mb * 512, 512), turned[i]);
      }
      for (auto later : nc.range(max(nb, nc.index(1)), nb + 1)) {
        (void)later;
        for (auto i : nc.range(k_tiles))
          nc.copy(turned[i], nc.load("x_again", xT.rows(i * 128, 128).cols(mb * 512, 512)),
                  {.engine = Engine::gpsimd});
      }
      for (auto i : nc.range(8)) {
        auto g = nc.psum("g", 128, 512), u = nc.psum("u", 128, 512);
        for (auto j : nc.range(k_tiles))
          nc.matmul(g, wg[j].free(i * 128, 128), turned[j], {.accumulate = j > 0});
        for (auto j : nc.range(k_tiles))
          nc.matmul(u, wu[j].free(i * 128, 128), turned[j], {.accumulate = j > 0});
        auto e = nc.sbuf("e", 128, 512, DType::f32);
        nc.activate(e, Act::silu, g);
        nc.tensor_tensor(e, e, Alu::multiply, u);
        nc.store(h.rows(nb * 1024 + i * 128, 128).cols(mb * 512, 512), e);
      }
    }
  }
  auto wd = nc.input_array("wd", n / 128, 128, 1024, DType::f32);
  for (auto i : nc.range(n / 128)) nc.load(wd, i, down.rows(i * 128, 128));
  for (auto mb : nc.range(m / 512)) {
    auto hT = nc.input_array("hT", n / 128, 128, 512, DType::f32);
    for (auto i : nc.range(n / 128)) nc.load(hT, i, h.rows(i * 128, 128).cols(mb * 512, 512));
    for (auto i : nc.range(4)) {
      auto o = nc.sbuf("o", 128, 1024, DType::f32);
      for (auto half : nc.range(2))
        product(nc, o.free(half * 512, 512), hT, i * 128, wd, half * 512, n / 128);
      nc.store(dst.rows(mb * 512 + i * 128, 128), o);
    }
  }
  return nc.program();
}

}  // namespace fidelity
