// schedule(program, limits): the choices that a kernel leaves open, made for a chip: who writes the descriptors of
// transfers, which engine copies, which loops overlap, where tiles lie and in how many buffers.
//
// What the Program computes stays the same, bit for bit.
#pragma once

#include <cmath>

#include "neuron_kernels/record/allocate.hpp"
#include "neuron_kernels/record/pipeline.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

struct ScheduleOptions {
  bool choose_engines = true;
  bool rotate = true;  // loops, by pipeline()
  PipelineOptions pipeline{};
  AllocateOptions buffers{};
};

namespace record {

/// How often each op is executed at most, as far as bounds tell.
class Iterations {
 public:
  explicit Iterations(const Program& program) : program_(program), loops_(program.loops.size()) {
    times_.reserve(program.ops.size());
    std::vector<double> around{1};
    for (const Op& op : program.ops) {
      if (op.code == OpCode::end) around.pop_back();
      times_.push_back(around.back());
      if (op.code != OpCode::loop) continue;
      const Loop& loop = nth(program.loops, op.loop);
      const Range begin = range(loop.begin), end = range(loop.end);
      nth(loops_, op.loop) = {begin.lo, std::max(begin.lo, end.hi - 1)};
      around.push_back(around.back() * std::max(0.0, end.hi - begin.lo));
    }
  }
  double of(std::size_t op) const { return times_[op]; }

 private:
  struct Range {
    double lo = 0, hi = 0;
  };

  Range range(ExprId id) const {
    const Expr& e = nth(program_.exprs, id);
    if (e.op == ExprOp::constant) return {static_cast<double>(e.value), static_cast<double>(e.value)};
    if (e.op == ExprOp::loop) return nth(loops_, e.value);
    const Range a = range(e.a), b = range(e.b);
    switch (e.op) {
      case ExprOp::add:
        return {a.lo + b.lo, a.hi + b.hi};
      case ExprOp::subtract:
        return {a.lo - b.hi, a.hi - b.lo};
      case ExprOp::multiply: {
        const auto [lo, hi] = std::minmax({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
        return {lo, hi};
      }
      case ExprOp::divide:
        return {std::floor(a.lo / b.lo), std::floor(a.hi / b.lo)};
      case ExprOp::modulo:
        return {0, b.lo - 1};
      case ExprOp::min:
        return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
      default:
        return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    }
  }

  const Program& program_;
  std::vector<Range> loops_;   // values of each loop's index
  std::vector<double> times_;  // per op
};

/// Gives copies that any engine can make to the vector or the scalar engine, whichever has less to do by then. Free
/// elements stand for time: both take one per cycle at about the same clock.
inline void choose_engines(Program& program) {
  const Iterations iterations(program);
  double vector = 0, scalar = 0;
  const auto elements = [](const Op& op) {
    return static_cast<double>(op.code == OpCode::reduce ? op.a.f : op.dst.f);
  };
  const auto is_free = [](const Op& op) { return op.code == OpCode::copy && op.engine == Engine::automatic; };
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (is_structure(op.code) || is_transfer(op.code) || is_free(op)) continue;
    const Engine engine = engine_of(program, op);
    if (engine == Engine::vector) vector += elements(op) * iterations.of(i);
    if (engine == Engine::scalar) scalar += elements(op) * iterations.of(i);
  }
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    Op& op = program.ops[i];
    if (!is_free(op)) continue;
    const double work = elements(op) * iterations.of(i);
    op.engine = scalar + work < vector ? Engine::scalar : Engine::vector;
    (op.engine == Engine::scalar ? scalar : vector) += work;
  }
}

}  // namespace record

/// The Program with every choice made for the chip; see the head of this file. All addresses are known beforehand, so
/// descriptors can lie ready in HBM.
/// errors: as allocate
inline Program schedule(const Program& program, const Limits& limits, const ScheduleOptions& options = {}) {
  const auto placed = [&](Program p) {
    for (record::Op& op : p.ops) {
      if (record::is_transfer(op.code) && op.dge == Dge::automatic) op.dge = Dge::none;
    }
    if (options.choose_engines) record::choose_engines(p);
    return allocate(p, limits, options.buffers);
  };
  if (!options.rotate) return placed(program);
  try {
    return placed(pipeline(program, options.pipeline));
  } catch (const TileError&) {  // iterations in flight need more than there is
    return placed(program);
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
