// The fused Mamba tutorial's kernel in its three versions: y = sum over states of scan(exp(delta A), delta u B) C.
//
// f32 on Trn1, 16 states. Source: AWS Neuron SDK, nki/guides/tutorials/fused_mamba.rst.
#pragma once

#include "matmuls.hpp"

namespace fidelity {

struct Mamba {
  static constexpr int states = 16;
  Recorder nc;
  int seq, channels;
  Recorder::Hbm delta, u, a, b, c, dst;
  Tile ones;

  Mamba(const Limits& limits, int seq_len, int channel_count)
      : nc(limits),
        seq(seq_len),
        channels(channel_count),
        delta(nc.hbm("delta", DType::f32, {channels, seq})),
        u(nc.hbm("u", DType::f32, {channels, seq})),
        a(nc.hbm("A", DType::f32, {channels, states})),
        b(nc.hbm("B", DType::f32, {states, seq})),
        c(nc.hbm("C", DType::f32, {states, seq})),
        dst(nc.hbm("output", DType::f32, {channels, seq})),
        ones(nc.sbuf("ones", 1, 128, DType::f32)) {
    nc.fill(ones, 1.f);
  }

  /// Row `state` of B or C in every partition: a matmul with ones, as the compiler broadcasts.
  Tile broadcast(const char* name, const Tile& row) {
    auto in_psum = nc.psum(name, 128, row.f());
    nc.matmul(in_psum, ones, row);
    return in_psum;
  }
};

/// States outside, channels inside: delta and u are loaded again for each state.
inline Program mamba_v1(const Limits& limits, int seq, int channels) {
  using neuron_kernels::Act;
  using neuron_kernels::Alu;
  Mamba x(limits, seq, channels);
  const int tiles = channels / 128;
  auto sums = x.nc.sbuf_array("sums", tiles, 128, seq, DType::f32);
  for (auto i : x.nc.range(tiles)) x.nc.fill(sums[i], 0.f);
  for (auto s : x.nc.range(x.states)) {
    const auto b = x.broadcast("b", x.nc.load("b_row", x.b.rows(s, 1)));
    const auto c = x.broadcast("c", x.nc.load("c_row", x.c.rows(s, 1)));
    for (auto i : x.nc.range(tiles)) {
      const auto delta = x.nc.load("delta", x.delta.rows(i * 128, 128)),
                 u = x.nc.load("u", x.u.rows(i * 128, 128));
      const auto a = x.nc.load("a", x.a.rows(i * 128, 128).cols(s, 1));
      auto decay = x.nc.sbuf("decay", 128, seq, DType::f32), du = x.nc.sbuf("du", 128, seq, DType::f32),
           y = x.nc.sbuf("y", 128, seq, DType::f32);
      x.nc.activate(decay, Act::exp, delta, {.scale = a});
      x.nc.tensor_tensor(du, delta, Alu::multiply, u);
      x.nc.tensor_tensor(du, b, Alu::multiply, du);
      x.nc.scan(y, decay, Alu::multiply, 0.f, Alu::add, du);
      x.nc.tensor_tensor(y, c, Alu::multiply, y);
      x.nc.tensor_tensor(sums[i], sums[i], Alu::add, y);
    }
  }
  for (auto i : x.nc.range(tiles)) x.nc.store(x.dst.rows(i * 128, 128), sums[i]);
  return x.nc.program();
}

/// Channels outside, delta u kept for all states; the sequence in tiles of 512 with a carry (version 3; version 2 is
/// the same at 512).
inline Program mamba_v3(const Limits& limits, int seq, int channels) {
  using neuron_kernels::Act;
  using neuron_kernels::Alu;
  Mamba x(limits, seq, channels);
  constexpr int step = 512;
  for (auto i : x.nc.range(channels / 128)) {
    const auto a = x.nc.load("a", x.a.rows(i * 128, 128));
    const auto delta = x.nc.load("delta", x.delta.rows(i * 128, 128)),
               u = x.nc.load("u", x.u.rows(i * 128, 128));
    auto sum = x.nc.sbuf("sum", 128, seq, DType::f32), du = x.nc.sbuf("du", 128, seq, DType::f32);
    for (auto t : x.nc.tiles(seq, step)) {
      x.nc.tensor_tensor(du.free(t.begin, t.size), delta.free(t.begin, t.size), Alu::multiply,
                         u.free(t.begin, t.size));
    }
    x.nc.fill(sum, 0.f);
    for (auto s : x.nc.range(x.states)) {
      auto carry = x.nc.sbuf("carry", 128, 1, DType::f32);
      const auto tile = [&](const Recorder::Index& begin, const neuron_kernels::Operand<Tile>& initial) {
        const auto b = x.broadcast("b", x.nc.load("b_row", x.b.rows(s, 1).cols(begin, step)));
        const auto c = x.broadcast("c", x.nc.load("c_row", x.c.rows(s, 1).cols(begin, step)));
        auto decay = x.nc.sbuf("decay", 128, step, DType::f32), y = x.nc.sbuf("y", 128, step, DType::f32),
             dub = x.nc.sbuf("dub", 128, step, DType::f32), yc = x.nc.sbuf("yc", 128, step, DType::f32);
        x.nc.activate(decay, Act::exp, delta.free(begin, step), {.scale = a.free(s, 1)});
        x.nc.tensor_tensor(dub, du.free(begin, step), Alu::multiply, b);
        x.nc.scan(y, decay, Alu::multiply, initial, Alu::add, dub);
        x.nc.copy(carry, y.free(x.nc.index(step - 1), 1));
        x.nc.tensor_tensor(yc, y, Alu::multiply, c);
        const auto to = sum.free(begin, step);
        x.nc.tensor_tensor(to, to, Alu::add, yc);
      };
      tile(x.nc.index(0), 0.f);
      for (auto t : x.nc.range(1, seq / step)) tile(t * step, carry);
    }
    x.nc.store(x.dst.rows(i * 128, 128), sum);
  }
  return x.nc.program();
}

}  // namespace fidelity
