// Values: what index expressions of a Program can be, by bounds and, where these do not decide, by iterations.
//
// Not an interpreter: loops stay symbolic; only those that an expression depends on are run through, and of long ones
// the first and last iterations. Every iteration it shows is a real one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "neuron_kernels/record/index.hpp"
#include "neuron_kernels/record/program.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class Values {
 public:
  explicit Values(const Program& program)
      : program_(program),
        bounds_(program.exprs.size()),
        known_(program.exprs.size(), false),
        loop_bounds_(program.loops.size()),
        outer_(program.loops.size(), none),
        inside_(program.ops.size(), none) {
    std::vector<int> open{none};
    for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
      const Op& op = nth(program.ops, i);
      if (op.code == OpCode::end) open.pop_back();
      nth(inside_, i) = open.back();
      if (op.code != OpCode::loop) continue;
      nth(outer_, op.loop) = open.back();
      const Loop& loop = nth(program.loops, op.loop);
      const Bounds from = of(loop.begin), to = of(loop.end);
      nth(loop_bounds_, op.loop) = {from.lo, std::max(from.lo, to.hi - 1), 1,
                                    from.constant() && to.constant(), std::uint64_t{1} << (op.loop % 64)};
      open.push_back(op.loop);
    }
  }

  /// Bounds of an expression; of one that is not there, 0.
  Bounds of(ExprId id) {
    if (id == none) return {};
    if (nth(known_, id)) return nth(bounds_, id);
    const Expr& e = nth(program_.exprs, id);
    Bounds b;
    if (e.op == ExprOp::constant) {
      b.lo = b.hi = Bounds::clamp(e.value);
    } else if (e.op == ExprOp::loop) {
      b = nth(loop_bounds_, e.value);
    } else {
      b = Bounds::of(e.op, of(e.a), of(e.b));
    }
    nth(known_, id) = true;
    return nth(bounds_, id) = b;
  }

  int loop_around(int op) const { return nth(inside_, op); }
  int loop_around_loop(int loop) const { return nth(outer_, loop); }
  bool encloses(int loop, int op) const {
    return loop == none || (nth(program_.loops, loop).first <= op && op < nth(program_.loops, loop).last);
  }
  /// Whether the loop may have no iteration.
  bool may_be_empty(int loop) {
    return of(nth(program_.loops, loop).begin).hi >= of(nth(program_.loops, loop).end).lo;
  }

  /// Calls f(loop_index) for iterations in which op is executed, in their order, until f returns true; of loops that
  /// decide nothing about `exprs` one iteration. Returns whether f did; `complete` says whether it saw all of them.
  template <class F>
  bool any(int op, std::span<const ExprId> exprs, const F& f, bool* complete = nullptr) {
    std::vector<int> chain;  // outermost first
    for (int l = loop_around(op); l != none; l = loop_around_loop(l)) chain.insert(chain.begin(), l);
    std::vector<char> matters(program_.loops.size(), false);
    for (const ExprId e : exprs) mark(e, matters);
    for (bool changed = true; changed;) {  // loops that bound, or may skip, those that matter
      changed = false;
      for (const int l : chain) {
        const Loop& loop = nth(program_.loops, l);
        const bool skips =
            !nth(matters, l) && may_be_empty(l) && (uses(loop.begin, matters) || uses(loop.end, matters));
        if (skips) nth(matters, l) = true, changed = true;
        if (nth(matters, l))
          changed = mark(loop.begin, matters) || changed, changed = mark(loop.end, matters) || changed;
      }
    }
    double all = 1;
    for (const int l : chain) {
      const Bounds& b = nth(loop_bounds_, l);
      if (nth(matters, l)) all *= static_cast<double>(b.hi - b.lo + 1);
    }
    const bool every = all <= most_iterations;
    if (complete != nullptr) *complete = every;
    std::vector<std::int64_t> index(program_.loops.size(), 0);
    left_ = 4 * most_iterations;
    return walk(chain, 0, matters, every, index, f);
  }

  std::int64_t value(ExprId id, std::span<const std::int64_t> index) const {
    return id == none ? 0 : evaluate(program_, id, index);
  }

 private:
  static constexpr int most_iterations = 4096, first_iterations = 6, last_iterations = 2;

  bool mark(ExprId id, std::vector<char>& matters) {
    if (id == none) return false;
    const Expr& e = nth(program_.exprs, id);
    if (e.op == ExprOp::constant) return false;
    if (e.op == ExprOp::loop) {
      const bool is_new = !nth(matters, e.value);
      nth(matters, e.value) = true;
      return is_new;
    }
    const bool a = mark(e.a, matters);
    return mark(e.b, matters) || a;
  }
  bool uses(ExprId id, const std::vector<char>& loops) const {
    const Expr& e = nth(program_.exprs, id);
    if (e.op == ExprOp::constant) return false;
    if (e.op == ExprOp::loop) return nth(loops, e.value);
    return uses(e.a, loops) || uses(e.b, loops);
  }

  template <class F>
  bool walk(const std::vector<int>& chain, std::size_t at, const std::vector<char>& matters, bool every,
            std::vector<std::int64_t>& index, const F& f) {
    if (at == chain.size()) return --left_ >= 0 && f(std::span<const std::int64_t>(index));
    const int l = chain[at];
    const std::int64_t from = value(nth(program_.loops, l).begin, index),
                       to = value(nth(program_.loops, l).end, index);
    for (std::int64_t i = from; i < to && left_ > 0; ++i) {
      if (!every && nth(matters, l) && i == from + first_iterations) i = std::max(i, to - last_iterations);
      nth(index, l) = i;
      if (walk(chain, at + 1, matters, every, index, f)) return true;
      if (!nth(matters, l)) break;
    }
    return false;
  }

  const Program& program_;
  std::vector<Bounds> bounds_;
  std::vector<char> known_;
  std::vector<Bounds> loop_bounds_;
  std::vector<int> outer_, inside_;  // per loop, per op: the innermost loop around
  std::int64_t left_ = 0;
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
