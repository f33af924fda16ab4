// NKIBench's kernels whose engines or software pipeline the compiler chose and nobody published: in the order of
// their sources. f32 on Trn1.
//
// Shapes and loop orders: zhang677/AccelOpt, NKIBench (baseline kernels, or [best] where said).
#pragma once

#include "nkibench_matmuls.hpp"

namespace fidelity {

using neuron_kernels::Act;
using neuron_kernels::Alu;
using neuron_kernels::Engine;

/// silu of [4096, 7168], x / (1 + exp(-x)), in chunks of `step` columns.
inline Program silu(const Limits& limits, int step) {
  Recorder nc(limits);
  const auto src = nc.hbm("src", DType::f32, {4096, 7168}), dst = nc.hbm("dst", DType::f32, {4096, 7168});
  for (auto r : nc.range(32)) {
    for (auto c : nc.range(7)) {
      const auto x = nc.load("x", src.rows(r * 128, 128).cols(c * 1024, 1024));
      auto o = nc.sbuf("o", 128, 1024, DType::f32);
      for (auto h : nc.range(1024 / step)) {
        auto e = nc.sbuf("e", 128, step, DType::f32);
        nc.activate(e, Act::exp, x.free(h * step, step), {.scale = -1.f});
        nc.tensor_scalar(e, e, Alu::add, 1.f);
        nc.activate(e, Act::identity, e);  // the reciprocal, as an activation
        nc.tensor_tensor(o.free(h * step, step), x.free(h * step, step), Alu::multiply, e);
      }
      nc.store(dst.rows(r * 128, 128).cols(c * 1024, 1024), o);
    }
  }
  return nc.program();
}

/// adamw of [10944, 2048]: products by the vector engine, scalings by the scalar engine.
inline Program adamw(const Limits& limits) {
  constexpr int rows = 10944, cols = 2048;
  Recorder nc(limits);
  const auto tensor = [&](const char* name) { return nc.hbm(name, DType::f32, {rows, cols}); };
  const auto theta = tensor("theta"), m1 = tensor("m"), v1 = tensor("v"), grad = tensor("g"),
             dst = tensor("dst");
  for (auto r : nc.tiles(rows, 128)) {
    for (auto c : nc.range(cols / 1024)) {
      const auto part = [&](const Recorder::Hbm& h) { return h.rows(r.begin, r.size).cols(c * 1024, 1024); };
      const auto th = nc.load("th", part(theta)), m = nc.load("m", part(m1)), v = nc.load("v", part(v1)),
                 g = nc.load("g", part(grad));
      auto o = nc.sbuf("o", r.size, 1024, DType::f32);
      for (auto h : nc.range(2)) {
        const auto at = [&](const Tile& t) { return t.free(h * 512, 512); };
        const auto fresh = [&](const char* name) { return nc.sbuf(name, r.size, 512, DType::f32); };
        const auto scaled = [&](const char* name, const Tile& x) {
          auto t = fresh(name);
          nc.activate(t, Act::identity, x, {.scale = 0.9f});
          return t;
        };
        const auto with = [&](const char* name, const Tile& x, const Tile& y) {
          auto t = fresh(name);
          nc.tensor_tensor(t, x, Alu::multiply, y);
          return t;
        };
        const auto g2 = with("g2", scaled("g_scaled", at(g)), at(g));
        const auto decayed = with("decayed", at(th), scaled("th_scaled", at(th)));
        const auto moment = with("moment", scaled("m_scaled", at(m)), scaled("g_part", at(g)));
        const auto second = with("second", scaled("v_scaled", at(v)), g2);
        const auto root = scaled("inverse", scaled("root", scaled("corrected", second)));
        const auto update = with("update", scaled("m_corrected", moment), root);
        nc.tensor_tensor(at(o), decayed, Alu::subtract, update);
      }
      nc.store(part(dst), o);
    }
  }
  return nc.program();
}

/// rope of 64 heads [128, 4096]: four products and two sums of halves.
inline Program rope(const Limits& limits, bool best) {
  Recorder nc(limits);
  constexpr int heads = 64, d = 128, n = 4096;
  const auto src = nc.hbm("x", DType::f32, {heads, d, n}), cosines = nc.hbm("cos", DType::f32, {d / 2, n}),
             sines = nc.hbm("sin", DType::f32, {d / 2, n}), dst = nc.hbm("dst", DType::f32, {heads, d, n});
  for (auto h : nc.range(heads)) {
    for (auto c : nc.range(n / 512)) {
      const auto columns = [&](const Recorder::Hbm& t) { return t.cols(c * 512, 512); };
      const auto x = nc.load("x", columns(src.at(h))), cos = nc.load("cos", columns(cosines)),
                 sin = nc.load("sin", columns(sines));
      auto swapped = nc.sbuf("swapped", d, 512, DType::f32), o = nc.sbuf("o", d, 512, DType::f32);
      nc.copy(swapped, x, {.engine = Engine::scalar});
      const auto half = [&](const Tile& t, int which) {
        return t.partitions(nc.index(which * d / 2), d / 2);
      };
      for (const int which : {0, 1}) {
        auto a = nc.sbuf("a", d / 2, 512, DType::f32), b = nc.sbuf("b", d / 2, 512, DType::f32);
        nc.tensor_tensor(a, half(x, which), Alu::multiply, cos);
        nc.tensor_tensor(b, half(swapped, 1 - which), Alu::multiply, sin,
                         {.engine = best ? Engine::automatic : Engine::vector});
        nc.tensor_tensor(half(o, which), a, which == 0 ? Alu::subtract : Alu::add, b);
      }
      nc.store(columns(dst.at(h)), o);
    }
  }
  return nc.program();
}

/// [4096, k] (normalised) @ [k, 2048]: rows are turned for each block of columns, or once where `hoisted`.
struct NormMatmul {
  int k;
  bool add, gamma, hoisted, norm_first;
};

inline Program norm_matmul(const Limits& limits, const NormMatmul& o) {
  constexpr int m = 4096, n = 2048;
  const int k_tiles = o.k / 128;
  Recorder nc(limits);
  const auto x_in = nc.hbm("x", DType::f32, {m, o.k}), w_in = nc.hbm("w", DType::f32, {o.k, n}),
             z_in = nc.hbm("z", DType::f32, {m, o.norm_first ? o.k : n}),
             g_in = nc.hbm("gamma", DType::f32, {1, o.norm_first ? o.k : n}),
             dst = nc.hbm("dst", DType::f32, {m, n});
  auto w = nc.input_array("w", k_tiles, 128, n, DType::f32);
  for (auto i : nc.range(k_tiles)) nc.load(w, i, w_in.rows(i * 128, 128));
  const auto gamma = o.gamma ? nc.load_broadcast("gamma", g_in, 128) : Tile();
  const auto normalise = [&](const Tile& x, const Tile& y) {
    auto squares = nc.sbuf("squares", 128, x.f(), DType::f32), rrms = nc.sbuf("rrms", 128, 1, DType::f32);
    nc.activate(squares, Act::square, x);
    nc.reduce(rrms, Alu::add, squares);
    nc.activate(rrms, Act::rsqrt, rrms, {.scale = 1.f / static_cast<float>(x.f())});
    nc.activate(y, Act::identity, x, {.scale = rrms});
    if (o.gamma) nc.tensor_tensor(y, y, Alu::multiply, gamma);
  };
  for (auto i : nc.range(m / 128)) {
    auto x = nc.sbuf("x", 128, o.k, DType::f32);
    const auto loaded = nc.load("x_in", x_in.rows(i * 128, 128));
    if (o.norm_first && o.add) {
      nc.tensor_tensor(x, loaded, Alu::add, nc.load("z", z_in.rows(i * 128, 128)));
      normalise(x, x);
    } else if (o.norm_first) {
      normalise(loaded, x);
    }
    const Tile rows = o.norm_first ? x : loaded;
    auto xT = nc.sbuf_array("xT", k_tiles, 128, 128, DType::f32);
    const auto turn_all = [&] {
      for (auto j : nc.range(k_tiles / 2)) {
        turn(nc, xT[j * 2], rows.free(j * 256, 128), Engine::scalar);
        turn(nc, xT[j * 2 + 1], rows.free(j * 256 + 128, 128), Engine::vector);
      }
    };
    if (o.hoisted) turn_all();
    auto h = nc.sbuf("h", 128, n, DType::f32);
    for (auto c : nc.range(n / 512)) {
      if (!o.hoisted) turn_all();
      auto acc = nc.psum("acc", 128, 512);
      for (auto j : nc.range(k_tiles)) nc.matmul(acc, xT[j], w[j].free(c * 512, 512), {.accumulate = j > 0});
      nc.copy(h.free(c * 512, 512), acc, {.engine = Engine::scalar});
    }
    if (!o.norm_first) {
      nc.tensor_tensor(h, h, Alu::add, nc.load("z", z_in.rows(i * 128, 128)));
      normalise(h, h);
    }
    nc.store(dst.rows(i * 128, 128), h);
  }
  return nc.program();
}

/// mamba of 256 channels, M 7168: version 1 of the tutorial with whole rows; [best] keeps delta and u.
inline Program nkibench_mamba(const Limits& limits, bool best) {
  constexpr int seq = 7168, states = 16, tiles = 2;
  Recorder nc(limits);
  const auto matrix = [&](const char* name, std::int64_t rows) {
    return nc.hbm(name, DType::f32, {rows, seq});
  };
  const auto delta_in = matrix("delta", 256), u_in = matrix("u", 256), b_in = matrix("B", states),
             c_in = matrix("C", states), dst = matrix("dst", 256);
  auto ones = nc.sbuf("ones", 1, 128, DType::f32);
  nc.fill(ones, 1.f);
  for (auto i : nc.range(tiles)) {
    auto sum = nc.sbuf("sum", 128, seq, DType::f32);
    nc.fill(sum, 0.f);
    const auto channels = [&](const char* name, const Recorder::Hbm& h) {
      return nc.load(name, h.rows(i * 128, 128));
    };
    const Tile kept_delta = best ? channels("delta", delta_in) : Tile(),
               kept_u = best ? channels("u", u_in) : Tile();
    for (auto s : nc.range(states)) {
      const Tile delta = best ? kept_delta : channels("delta", delta_in),
                 u = best ? kept_u : channels("u", u_in);
      for (auto t : nc.range(seq / 512)) {
        const auto row = [&](const char* name, const Recorder::Hbm& h) {
          auto bank = nc.psum(name, 128, 512);
          nc.matmul(bank, ones, nc.load(name, h.rows(s, 1).cols(t * 512, 512)));
          return bank;
        };
        const auto at = [&](const Tile& x) { return x.free(t * 512, 512); };
        auto decay = nc.sbuf("decay", 128, 512, DType::f32), x = nc.sbuf("x", 128, 512, DType::f32),
             y = nc.sbuf("y", 128, 512, DType::f32);
        nc.activate(decay, Act::exp, at(delta));
        nc.tensor_tensor(x, at(delta), Alu::multiply, at(u));
        nc.tensor_tensor(x, row("b", b_in), Alu::multiply, x);
        nc.scan(y, decay, Alu::multiply, 0.f, Alu::add, x);
        nc.tensor_tensor(y, row("c", c_in), Alu::multiply, y);
        nc.tensor_tensor(at(sum), at(sum), Alu::add, y);
      }
    }
    nc.store(dst.rows(i * 128, 128), sum);
  }
  return nc.program();
}

}  // namespace fidelity
