// Dependences: which statements of a loop's body must follow which, and how many iterations lie between them.
//
// A statement is an op or a whole inner loop. Distances are found by trying the first iterations: indices are sums,
// products and remainders of loop indices, whose patterns repeat soon.
#pragma once

#include <algorithm>
#include <vector>

#include "neuron_kernels/record/engines.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// Ops [first, last] of a Program.
struct Statement {
  int first = 0, last = 0;
  bool tensor = false;  // has an instruction of the tensor engine
  double ns = 0;        // about, of its ops once each
};

/// Statement b of iteration x + distance needs what statement a of iteration x does.
struct Dependence {
  int a = 0, b = 0;
  int distance = 0;
  bool computed = false;           // b reads what another engine than tensor has computed
  bool crosses_to_tensor = false;  // and does so on the tensor engine
};

class Dependences {
 public:
  Dependences(const Program& program, int loop)
      : program_(program),
        loop_(loop),
        declared_(program.tiles.size(), false),
        aliased_(program.tiles.size()) {
    const Loop& l = nth(program.loops, loop);
    for (int i = l.first; i < l.last; ++i) {
      const Op& op = nth(program.ops, i);
      int last = i;
      if (op.code == OpCode::loop) last = nth(program.loops, op.loop).last;
      for (int k = i; k <= last; ++k) note_declared(nth(program.ops, k));
      if (!is_structure(op.code) || op.code == OpCode::loop)
        statements.push_back({i, last, has_tensor(i, last), cost(i, last)});
      i = last;
    }
    find_aliased();
    find_regions();
    find();
  }

  std::vector<Statement> statements;
  std::vector<Dependence> all;

  /// About what an iteration takes if engines overlap: the most that one of them has to do, inner loops aside.
  double iteration_ns() const {
    double tensor = 0, others = 0;
    for (const Statement& s : statements) {
      if (s.first != s.last) continue;
      s.tensor ? tensor += s.ns : others = std::max(others, s.ns);
    }
    return std::max(tensor, others);
  }

  /// Whether the tile is made in the loop's body.
  bool is_local(int tile) const { return nth(declared_, tile); }

  /// Calls f(slice, written) for each tile that an op reads or writes.
  template <class F>
  static void each_slice(const Op& op, const F& f) {
    for (const TileSlice* t : {&op.a, &op.b, &op.k0.tile, &op.k1.tile}) {
      if (t->given()) f(*t, false);
    }
    const bool accumulates = op.code == OpCode::matmul && op.accumulate.op != Compare::never;
    if (op.dst.given() && accumulates) f(op.dst, false);
    if (op.dst.given() && !is_structure(op.code)) f(op.dst, true);
    if (op.column.given()) f(op.column, true);
  }

 private:
  static constexpr int window = 160;        // iterations tried
  static constexpr int most_distance = 14;  // more than the stages of any rotation
  using Box = std::array<std::int64_t, 4>;  // [element, element_end) x [free, free_end); nothing if empty

  /// What a statement touches of a tile.
  struct Region {
    int tile = none;
    bool written = false;
    bool by_tensor = false, by_dma = false;
    std::vector<Box> at{};  // per iteration of the window
  };

  void note_declared(const Op& op) {
    if (!op.dst.given() || op.code == OpCode::load_element || op.code == OpCode::load_transposed_element)
      return;
    if (is_structure(op.code) || is_transfer(op.code) || op.code == OpCode::transposed ||
        op.code == OpCode::causal_mask)
      nth(declared_, op.dst.tile) = true;
  }
  /// Free elements at 2.4 GHz on the tensor engine and 1 GHz on the others, whose 16-bit sums take two per cycle.
  double cost(int first, int last) const {
    double ns = 0;
    for (int i = first; i <= last; ++i) {
      const Op& op = nth(program_.ops, i);
      if (is_structure(op.code) || is_transfer(op.code)) continue;
      const bool sums = op.code == OpCode::reduce;
      const double elements = sums ? op.a.f : op.dst.f;
      const bool tensor = engine_of(program_, op) == Engine::tensor;
      ns += elements / (tensor ? 2.4 : sums && dtype_of(program_, op.a) != DType::f32 ? 2.0 : 1.0);
    }
    return ns;
  }
  bool has_tensor(int first, int last) const {
    for (int i = first; i <= last; ++i) {
      const Op& op = nth(program_.ops, i);
      if (!is_structure(op.code) && engine_of(program_, op) == Engine::tensor) return true;
    }
    return false;
  }

  /// Loaded and staged tiles may be the HBM itself: who reads or writes them does so with the tensor. Tensors that
  /// nothing writes do not count.
  void find_aliased() {
    std::vector<char> written(program_.tensors.size(), false);
    for (const Op& op : program_.ops) {
      if (op.hbm.tensor != none && (op.a.given() || op.code == OpCode::staged))
        nth(written, op.hbm.tensor) = true;
    }
    for (const Op& op : program_.ops) {
      if (op.hbm.tensor == none || !op.dst.given() || !nth(written, op.hbm.tensor)) continue;
      std::vector<int>& of = nth(aliased_, op.dst.tile);
      if (std::find(of.begin(), of.end(), op.hbm.tensor) == of.end()) of.push_back(op.hbm.tensor);
    }
  }

  void find_regions() {
    std::vector<std::int64_t> index(program_.loops.size(), 0);
    for (std::size_t l = 0; l < index.size(); ++l) index[l] = first_value(static_cast<int>(l), index);
    const Loop& loop = nth(program_.loops, loop_);
    const std::int64_t begin = evaluate(program_, loop.begin, index);
    for (const Statement& s : statements) {
      std::vector<Region> regions;
      for (int i = s.first; i <= s.last; ++i) {
        const Op& op = nth(program_.ops, i);
        if (op.code == OpCode::loop || op.code == OpCode::end) continue;
        const std::vector<int> inner = loops_between(s, i);
        each_slice(op, [&](const TileSlice& t, bool written) {
          const Engine engine = is_structure(op.code) ? Engine::automatic : engine_of(program_, op);
          Region r{.tile = t.tile,
                   .written = written,
                   .by_tensor = engine == Engine::tensor,
                   .by_dma = engine == Engine::dma};
          for (int x = 0; x < window; ++x) {
            nth(index, loop_) = begin + x;
            Box box{};
            extend(box, t, inner, 0, index);
            r.at.push_back(box);
          }
          regions.push_back(std::move(r));
        });
        const auto statement = static_cast<int>(&s - statements.data());
        if (is_transfer(op.code)) tensors_.push_back({statement, op.hbm.tensor, op.a.given()});
        each_slice(op, [&](const TileSlice& t, bool written) {
          for (const int tensor : nth(aliased_, t.tile))
            tensors_.push_back({statement, tensor, written && !is_transfer(op.code)});
        });
      }
      regions_.push_back(std::move(regions));
    }
  }

  std::int64_t first_value(int loop, const std::vector<std::int64_t>& index) const {
    return evaluate(program_, nth(program_.loops, loop).begin, index);
  }

  /// The loops within the statement around op i, outermost first.
  std::vector<int> loops_between(const Statement& s, int i) const {
    std::vector<int> open;
    for (int k = s.first; k < i; ++k) {
      const Op& op = nth(program_.ops, k);
      if (op.code == OpCode::loop) open.push_back(op.loop);
      if (op.code == OpCode::end) open.pop_back();
    }
    return open;
  }

  /// Adds what t means in the first and last iterations of the inner loops from `depth` on; nothing where one is
  /// empty. Expressions rise or fall with an index, or wrap around, which the whole tile stands for.
  void extend(Box& box, const TileSlice& t, const std::vector<int>& inner, std::size_t depth,
              std::vector<std::int64_t>& index) const {
    if (depth < inner.size()) {
      const Loop& loop = nth(program_.loops, inner[depth]);
      const std::int64_t begin = evaluate(program_, loop.begin, index),
                         end = evaluate(program_, loop.end, index);
      if (begin >= end) return;
      for (const std::int64_t value : {begin, end - 1}) {
        nth(index, inner[depth]) = value;
        extend(box, t, inner, depth + 1, index);
      }
      return;
    }
    const TileDecl& d = nth(program_.tiles, t.tile);
    Box one{0, std::max<std::int64_t>(d.count, 1), 0, d.f};
    if (t.element != none && !wraps(t.element, inner)) {
      one[0] = evaluate(program_, t.element, index);
      one[1] = one[0] + 1;
    }
    if (t.free != none && !wraps(t.free, inner)) {
      one[2] = evaluate(program_, t.free, index);
      one[3] = one[2] + std::int64_t{t.f - 1} * t.step + 1;
    }
    if (box[0] == box[1]) {
      box = one;
      return;
    }
    box = {std::min(box[0], one[0]), std::max(box[1], one[1]), std::min(box[2], one[2]),
           std::max(box[3], one[3])};
  }
  /// Whether there is a remainder of the index of an inner loop that runs more than once.
  bool wraps(ExprId id, const std::vector<int>& inner) const {
    const Expr& e = nth(program_.exprs, id);
    if (e.op == ExprOp::constant || e.op == ExprOp::loop) return false;
    if (e.op == ExprOp::modulo) {
      for (const int loop : inner) {
        if (uses(e.a, loop) && !runs_once(loop)) return true;
      }
      return false;
    }
    return wraps(e.a, inner) || wraps(e.b, inner);
  }
  bool uses(ExprId id, int loop) const {
    const Expr& e = nth(program_.exprs, id);
    if (e.op == ExprOp::loop) return e.value == loop;
    return (e.a != none && uses(e.a, loop)) || (e.b != none && uses(e.b, loop));
  }
  /// [x, y) with y - x at most 1 in all iterations of the window.
  bool runs_once(int loop) const {
    std::vector<std::int64_t> index(program_.loops.size(), 0);
    for (std::size_t l = 0; l < index.size(); ++l) index[l] = first_value(static_cast<int>(l), index);
    const Loop& l = nth(program_.loops, loop);
    for (int x = 0; x < window; ++x, ++nth(index, loop_)) {
      if (evaluate(program_, l.end, index) - evaluate(program_, l.begin, index) > 1) return false;
    }
    return true;
  }

  void find() {
    const auto n = static_cast<int>(statements.size());
    for (int a = 0; a < n; ++a) {
      for (int b = 0; b < n; ++b) {
        for (const Region& x : nth(regions_, a)) {
          for (const Region& y : nth(regions_, b)) {
            if (x.tile == y.tile && (x.written || y.written)) relate(a, b, x, y);
          }
        }
      }
    }
    for (const Touched& x : tensors_) {  // HBM that is written stays in order
      for (const Touched& y : tensors_) {
        if (x.tensor != y.tensor || (!x.written && !y.written)) continue;
        if (x.statement < y.statement) all.push_back({x.statement, y.statement, 0});
        all.push_back({x.statement, y.statement, 1});
      }
    }
  }

  void relate(int a, int b, const Region& x, const Region& y) {
    const bool flows = x.written && !y.written && !x.by_tensor && !x.by_dma;
    for (int d = a < b ? 0 : 1; d < most_distance; ++d) {
      if (d > 0 && is_local(x.tile)) return;  // a tile of its own in each iteration
      for (int i = 0; i + d < window; ++i) {
        const auto &p = nth(x.at, i), &q = nth(y.at, i + d);
        if (p[0] < q[1] && q[0] < p[1] && p[2] < q[3] && q[2] < p[3]) {
          all.push_back({a, b, d, flows && d == 0, flows && d == 0 && y.by_tensor});
          return;
        }
      }
    }
  }

  struct Touched {
    int statement, tensor;
    bool written;
  };

  const Program& program_;
  int loop_;
  std::vector<char> declared_;
  std::vector<std::vector<int>> aliased_;     // per tile: tensors that it may be a part of
  std::vector<std::vector<Region>> regions_;  // per statement
  std::vector<Touched> tensors_;
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
