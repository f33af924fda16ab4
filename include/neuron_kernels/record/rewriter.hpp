// Rewriter: writes a Program anew, op by op, with other loops and with tiles that have become elements of arrays.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "neuron_kernels/record/engines.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class Rewriter {
 public:
  explicit Rewriter(const Program& from)
      : from_(from),
        tile_(from.tiles.size(), none),
        element_(from.tiles.size(), none),
        index_(from.loops.size(), none) {
    to_.chip = from.chip;
    to_.files = from.files;
    to_.tensors = from.tensors;
  }
  const Program& program() const { return to_; }

  // ---- expressions of the new Program ----

  ExprId constant(std::int64_t value) { return intern({ExprOp::constant, value}); }
  ExprId index_of(int loop) { return intern({ExprOp::loop, loop}); }
  ExprId plus(ExprId a, std::int64_t b) { return add(a, constant(b)); }
  ExprId add(ExprId a, ExprId b) { return combine(ExprOp::add, a, b); }
  ExprId multiply(ExprId a, std::int64_t b) { return combine(ExprOp::multiply, a, constant(b)); }
  ExprId modulo(ExprId a, std::int64_t b) { return combine(ExprOp::modulo, a, constant(b)); }
  ExprId min(ExprId a, ExprId b) { return combine(ExprOp::min, a, b); }
  ExprId max(ExprId a, ExprId b) { return combine(ExprOp::max, a, b); }

  /// An expression of the old Program, of the loops that stand for its own now.
  ExprId expr(ExprId old) {
    if (old == none) return none;
    const Expr& e = nth(from_.exprs, old);
    if (e.op == ExprOp::constant) return constant(e.value);
    if (e.op == ExprOp::loop) return nth(index_, e.value);
    return combine(e.op, expr(e.a), expr(e.b));
  }
  /// What stands for the index of an old loop now.
  ExprId bound(int old_loop) const { return nth(index_, old_loop); }

  // ---- loops ----

  int open(ExprId begin, ExprId end) {
    Loop loop;
    loop.begin = begin;
    loop.end = end;
    return push(loop);
  }
  /// The same loop. Spans of tiles() become indices.
  int open_like(int old_loop) {
    Loop loop = nth(from_.loops, old_loop);
    loop.begin = expr(loop.begin);
    loop.end = expr(loop.end);
    if (loop.kind == LoopKind::tiles) loop = {.begin = loop.begin, .end = loop.end, .where = loop.where};
    const int at = push(loop);
    bind_loop(old_loop, at);
    return at;
  }
  void close(int loop) {
    nth(to_.loops, loop).last = static_cast<int>(to_.ops.size());
    Op op;
    op.code = OpCode::end;
    op.loop = loop;
    to_.ops.push_back(op);
  }
  void bind_loop(int old_loop, int loop) { nth(index_, old_loop) = index_of(loop); }

  // ---- tiles and ops ----

  /// From now on the tile is an array of n (times what it was), made here.
  void declare_array(int old, int n) {
    TileDecl d = nth(from_.tiles, old);
    const bool loaded = d.read_only;
    d.count = std::max<std::int64_t>(d.count, 1) * n;
    d.is_array = true;
    Op op;
    op.code = loaded ? OpCode::input_array : d.space == Space::psum ? OpCode::psum_array : OpCode::sbuf_array;
    op.where = d.where;
    make(old, std::move(d), op);
    nth(element_, old) = constant(0);
  }
  /// Ops that are copied from now on mean this element of it.
  void bind_element(int old, ExprId element) { nth(element_, old) = element; }

  /// Old ops [first, last], with the loops among them.
  void copy(int first, int last) {
    for (int i = first; i <= last; ++i) {
      const Op& op = nth(from_.ops, i);
      if (op.code != OpCode::loop) {
        copy(op);
        continue;
      }
      const Loop& loop = nth(from_.loops, op.loop);
      const int at = open_like(op.loop);
      copy(loop.first, loop.last - 1);
      close(at);
      i = loop.last;
    }
  }

 private:
  bool is_array_now(int old) const { return nth(element_, old) != none; }

  void copy(const Op& old) {
    Op op = old;
    for (ExprId* e : {&op.query, &op.key, &op.accumulate.a, &op.accumulate.b}) *e = expr(*e);
    if (op.hbm.tensor != none) {
      for (ExprId& e : op.hbm.begin) e = expr(e);
    }
    for (TileSlice* t : {&op.a, &op.b, &op.k0.tile, &op.k1.tile, &op.column}) translate(*t);
    const bool into_array = op.code == OpCode::load_element || op.code == OpCode::load_transposed_element;
    const bool makes = op.dst.given() && !into_array &&
                       (is_structure(op.code) || is_transfer(op.code) || op.code == OpCode::transposed ||
                        op.code == OpCode::causal_mask);
    if (!makes) {
      translate(op.dst);
      to_.ops.push_back(op);
      return;
    }
    if (!is_array_now(old.dst.tile)) {
      make(old.dst.tile, nth(from_.tiles, old.dst.tile), op);
      return;
    }
    if (is_structure(op.code)) return;  // made with the array
    op.code = op.code == OpCode::load ? OpCode::load_element : OpCode::load_transposed_element;
    op.dst.tile = nth(tile_, old.dst.tile);
    op.dst.element = nth(element_, old.dst.tile);
    to_.ops.push_back(op);
  }

  void make(int old, TileDecl d, Op op) {
    op.dst = {};
    op.dst.tile = static_cast<int>(to_.tiles.size());
    op.dst.p = d.p;
    op.dst.f = d.f;
    nth(tile_, old) = op.dst.tile;
    to_.tiles.push_back(std::move(d));
    to_.ops.push_back(op);
  }

  void translate(TileSlice& t) {
    if (!t.given()) return;
    const int old = t.tile;
    t.tile = nth(tile_, old);
    t.partition = expr(t.partition);
    t.free = expr(t.free);
    t.element = expr(t.element);
    if (!is_array_now(old)) return;
    const std::int64_t count = std::max<std::int64_t>(nth(from_.tiles, old).count, 1);
    const ExprId first = multiply(nth(element_, old), count);
    t.element = t.element == none ? first : add(first, t.element);
    if (t.partition == none) t.partition = constant(0);
    if (t.free == none) t.free = constant(0);
  }

  int push(const Loop& loop) {
    to_.loops.push_back(loop);
    const int at = static_cast<int>(to_.loops.size()) - 1;
    Op op;
    op.code = OpCode::loop;
    op.loop = at;
    op.where = loop.where;
    to_.ops.push_back(op);
    nth(to_.loops, at).first = static_cast<int>(to_.ops.size());
    return at;
  }

  ExprId intern(const Expr& e) {
    const auto [entry, is_new] = known_.try_emplace({static_cast<int>(e.op), e.value, e.a, e.b},
                                                    static_cast<ExprId>(to_.exprs.size()));
    if (is_new) to_.exprs.push_back(e);
    return entry->second;
  }
  ExprId combine(ExprOp op, ExprId a, ExprId b) {
    const Expr x = nth(to_.exprs, a), y = nth(to_.exprs, b);
    if (x.op == ExprOp::constant && y.op == ExprOp::constant) {
      Program one;
      one.exprs = {x, y, {op, 0, 0, 1}};
      return constant(evaluate(one, 2, {}));
    }
    const bool zero = y.op == ExprOp::constant && y.value == 0,
               one = y.op == ExprOp::constant && y.value == 1;
    if ((op == ExprOp::add && zero) || ((op == ExprOp::multiply || op == ExprOp::divide) && one)) return a;
    if (op == ExprOp::add && x.op == ExprOp::constant && x.value == 0) return b;
    if (op == ExprOp::multiply && zero) return b;
    return intern({op, 0, a, b});
  }

  const Program& from_;
  Program to_{};
  std::vector<int> tile_;        // per old tile: the new one that stands for it now
  std::vector<ExprId> element_;  // per old tile: its element, where it has become one of an array
  std::vector<ExprId> index_;    // per old loop
  std::map<std::tuple<int, std::int64_t, ExprId, ExprId>, ExprId> known_;
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
