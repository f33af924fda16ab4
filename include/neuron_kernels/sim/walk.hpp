// Walk: runs through a Program's loops and says which op comes next, with the values of its index expressions.
//
// Each expression is computed anew only where the innermost loop that it depends on takes its next step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "neuron_kernels/record/program.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace sim {

class Walk {
 public:
  explicit Walk(const Program& program)
      : program_(program),
        values_(program.exprs.size()),
        index_(program.loops.size()),
        moved_by_(program.loops.size()) {
    // Of the loops that an expression uses, all open at once, the last to be opened is the innermost.
    const auto inner = [&](int a, int b) {
      if (a == record::none || b == record::none) return std::max(a, b);
      return record::nth(program.loops, a).first > record::nth(program.loops, b).first ? a : b;
    };
    std::vector<int> innermost(program.exprs.size(), record::none);
    for (std::size_t i = 0; i < program.exprs.size(); ++i) {
      const record::Expr& e = program.exprs[i];
      int loop = e.op == record::ExprOp::loop ? static_cast<int>(e.value) : record::none;
      for (const record::ExprId child : {e.a, e.b}) {
        if (child != record::none) loop = inner(loop, record::nth(innermost, child));
      }
      innermost[i] = loop;
      if (loop == record::none) {
        values_[i] = value(e);
      } else {
        record::nth(moved_by_, loop).push_back(static_cast<int>(i));
      }
    }
  }

  std::int64_t at(record::ExprId id) const { return id == record::none ? 0 : record::nth(values_, id); }

  /// Deals the iterations of programs() loops to `cores` in turn and walks the share of one of them.
  void deal_to(int cores, int core) {
    cores_ = cores;
    core_ = core;
  }

  /// Calls visit(op, position) for each op that is executed, but loop and end, until it returns false.
  template <class Visit>
  void run(const Visit& visit) {
    run(0, static_cast<int>(program_.ops.size()), visit);
  }

 private:
  template <class Visit>
  bool run(int first, int last, const Visit& visit) {
    for (int i = first; i < last; ++i) {
      const record::Op& op = record::nth(program_.ops, i);
      if (op.code != record::OpCode::loop) {
        if (!visit(op, i)) return false;
        continue;
      }
      const record::Loop& loop = record::nth(program_.loops, op.loop);
      const std::int64_t begin = at(loop.begin), end = at(loop.end);
      const bool deal = loop.kind == record::LoopKind::programs && cores_ > 1;
      for (std::int64_t step = begin; step < end; ++step) {
        if (deal && program_number_++ % cores_ != core_) continue;
        move(op.loop, step);
        if (!run(loop.first, loop.last, visit)) return false;
      }
      i = loop.last;
    }
    return true;
  }

  void move(int loop, std::int64_t to) {
    record::nth(index_, loop) = to;
    for (const int i : record::nth(moved_by_, loop))
      record::nth(values_, i) = value(record::nth(program_.exprs, i));
  }

  std::int64_t value(const record::Expr& e) const {
    using record::ExprOp;
    if (e.op == ExprOp::constant) return e.value;
    if (e.op == ExprOp::loop) return record::nth(index_, e.value);
    return record::apply(e.op, at(e.a), at(e.b));
  }

  const Program& program_;
  std::vector<std::int64_t> values_, index_;
  std::vector<std::vector<int>>
      moved_by_;  // per loop: the expressions of which it is the innermost, children first
  std::int64_t program_number_ = 0;
  int cores_ = 1, core_ = 0;
};

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
