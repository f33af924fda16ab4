// What test_recorder.cpp and test_replay.cpp share: kernels to record, and how to record and replay them.
#pragma once

#include <sstream>

#include "harness.hpp"
#include "neuron_kernels/kernels/matmul.hpp"
#include "neuron_kernels/record/print.hpp"
#include "neuron_kernels/record/recorder.hpp"
#include "neuron_kernels/record/replay.hpp"

namespace test {

using nk::Act;
using nk::Alu;
using nk::Program;
using nk::Recorder;

inline std::string printed(const Program& program) {
  std::ostringstream out;
  print(program, out);
  return out.str();
}

/// The program recorded anew by replaying it.
inline Program rerecorded(const Program& program, const nk::Limits& limits) {
  Recorder nc(limits);
  std::vector<Recorder::Hbm> tensors;
  for (const nk::record::Tensor& t : program.tensors) {
    tensors.push_back(nc.hbm(t.name, t.dtype, std::span(t.shape).first(static_cast<std::size_t>(t.rank))));
  }
  nk::replay(program, nc, std::span<const Recorder::Hbm>(tensors));
  return nc.program();
}

/// A tensor that a kernel is called with.
struct Argument {
  const char* name;
  DType dtype;
  Shape shape;
  bool written = false;
};

/// body(nc, hbms) runs a kernel on any target. Returns what it is recorded as.
template <class Body>
Program recorded(const nk::Limits& limits, const std::vector<Argument>& arguments, const Body& body) {
  Recorder nc(limits);
  std::vector<Recorder::Hbm> tensors;
  for (const Argument& a : arguments) tensors.push_back(nc.hbm(a.name, a.dtype, a.shape));
  body(nc, tensors);
  return nc.program();
}

struct Size {
  std::int64_t m, n, k;
};

template <class T>
using TargetOf = std::remove_reference_t<T>;

inline auto matmul_body(const nk::MatmulBlocking& blocking, float beta, bool row_bias, bool col_bias, Act act,
                        bool residual) {
  return [=](auto& nc, const auto& h) {
    nk::MatmulArgs<TargetOf<decltype(nc)>> a;
    a.a = h[0], a.b = h[1], a.dst = h[2];
    if (row_bias) a.row_bias = h[3];
    if (col_bias) a.col_bias = h[4];
    if (residual) a.residual = h[5];
    a.alpha = 0.5f, a.beta = beta, a.activation = act;
    matmul_kernel(nc, a, blocking);
  };
}

inline std::vector<Argument> matmul_arguments(DType dtype, const Size& s) {
  return {{"a", dtype, {2, 1, s.m, s.k}},         {"b", dtype, {2, 1, s.k, s.n}},
          {"dst", dtype, {2, 1, s.m, s.n}, true}, {"row_bias", DType::f32, {1, s.n}},
          {"col_bias", dtype, {s.m, 1}},          {"residual", dtype, {2, 1, s.m, s.n}}};
}

template <nk::Target T>
void small_kernel(T& nc, const typename T::Hbm& x, const typename T::Hbm& w, const typename T::Hbm& y) {
  for (auto t : nc.programs(x.dim(1), 128)) {
    auto xT = nc.input_array("xT", 2, 128, t.size, x.dtype());
    for (auto c : nc.tiles(x.dim(2), 128))
      nc.load_transposed(xT, c.index, x.at(nc.index(1)).rows(t.begin, t.size).cols(c.begin, c.size),
                         {.reads = 8});
    auto acc = nc.psum("acc", t.size, static_cast<int>(w.dim(1)));
    for (auto c : nc.tiles(x.dim(2), 128))
      nc.matmul(acc, xT[c.index], nc.load("w", w.rows(c.begin, c.size)), {.accumulate = c.index > 0});
    auto o = nc.staged("o", y.rows(t.begin, t.size));
    auto sum = nc.sbuf("sum", t.size, 1, DType::f32);
    nc.activate(o, Act::gelu, acc, {.scale = 2.f, .bias = 1.f, .row_sum = sum});
    nc.tensor_scalar(o, o, Alu::subtract, sum, Alu::multiply, -0.5f);
    nc.store(y.rows(t.begin, t.size), o);
  }
}

/// A kernel that asks for each op once, with every kind of operand, slice and expression.
template <nk::Target T>
void every_op(T& nc, const typename T::Hbm& x, const typename T::Hbm& y) {
  using std::max, std::min;
  for (auto b : nc.range(nc.index(0), nc.index(2))) {
    const auto m = x.at(b);
    const auto row = nc.load_broadcast("row", m.rows(nc.index(3), 1), 4);  // [4, 8]
    auto in = nc.input_array("in", 3, 4, 8, x.dtype());
    for (auto i : nc.range(3)) nc.load(in, i, m.rows(i * 4, 4));
    auto work = nc.sbuf_array("work", 2, 4, 8, DType::f32);
    auto column = nc.sbuf("column", 4, 1, DType::f32), stats = nc.sbuf("stats", 4, 2, DType::f32);
    for (auto i : nc.range(b + 1)) nc.fill(work[min(i, nc.index(1))], 0.25f);
    nc.copy(work[nc.index(1)], row);
    nc.scalar_tensor_tensor(work[nc.index(0)], in[b], Alu::multiply, 0.5f, Alu::add, in[nc.index(2) - b]);
    nc.reduce(column, Alu::max, work[nc.index(0)]);
    nc.tensor_tensor(work[nc.index(1)], work[nc.index(0)], Alu::max, row);
    nc.tensor_scalar(work[nc.index(0)], work[nc.index(1)], Alu::subtract, column);
    nc.tensor_scalar(work[nc.index(0)], work[nc.index(0)], Alu::multiply, 2.f, Alu::add, column);
    nc.norm_stats(stats, work[nc.index(0)]);
    nc.activate(stats.free(nc.index(1), 1), Act::rsqrt, stats.free(nc.index(1), 1), {.bias = 1e-5f});
    nc.activate(work[b], Act::tanh, work[nc.index(0)],
                {.scale = stats.free(nc.index(1), 1), .bias = column, .row_sum = column});
    nc.reciprocal(column, column);
    const auto loaded = nc.load("loaded", m.rows(max(b * 4, nc.index(2)), 4), {.reads = 99});
    const auto part = nc.load_transposed("part", m.rows((b * 7 + 5) % 4, 4).cols(b * 2, 4));  // [4, 4]
    auto product = nc.psum("product", 4, 4);
    nc.matmul(product, part, nc.transposed(loaded).partitions(nc.index(4), 4));
    nc.matmul(product, part, part, {.accumulate = b >= 0});
    const auto masked = nc.causal_mask(product, b * 2, nc.index(1), -7.f);
    auto staged = nc.staged("staged", y.at(b).rows(nc.index(0), 4));  // [4, 8]
    nc.copy(staged, work[b]);
    nc.store(y.at(b).rows(nc.index(0), 4), staged);
    auto flat = nc.sbuf("flat", 4, 4, x.dtype());
    nc.copy(flat, masked);
    nc.store_transposed(y.at(b).rows(4 + b * 4, 4).cols(nc.index(4), 4), flat);
    nc.store(y.at(b).transposed().rows(nc.index(0), 4).cols(4 + b * 4, 4), flat);
    nc.store(y.at(b).rows(4 + b * 4, 1).cols(nc.index(0), 2), stats.partitions(b, 1));
    auto banks = nc.psum_array("banks", 2, 4, 4, x.dtype());
    nc.transpose(banks[b], flat, {.engine = nk::Engine::tensor});
    nc.tensor_scalar_reduce(flat, banks[b], Alu::multiply, 0.5f, Alu::min, column);
    nc.scan(flat, flat, Alu::multiply, column, Alu::add, masked);
    nc.copy(flat, flat, {.engine = nk::Engine::scalar});
    nc.store(y.at(b).rows(8 - b * 4, 4).cols(nc.index(0), 4), flat, {.dge = nk::Dge::none});
    nc.copy(flat.every(2, b), banks[b].every(2, 1 - b));
    nc.reduce(flat.free(nc.index(1), 2), Alu::add, banks[b], {.blocks = 2});
    nc.activate(flat, Act::square, banks[b], {.interleave = 2});
    nc.causal_select(flat, flat, nc.index(1), b, 3.f, {.keys = nk::KeyAxis::partition});
    nc.store(y.at(b).rows(8 - b * 4, 4).cols(nc.index(4), 4), flat);
  }
}

}  // namespace test
