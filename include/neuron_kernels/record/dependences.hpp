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
};

/// Statement b of iteration x + distance needs what statement a of iteration x does.
struct Dependence {
  int a = 0, b = 0;
  int distance = 0;
  bool crosses_to_tensor = false;  // the tensor engine reads what another engine has computed
};

class Dependences {
 public:
  Dependences(const Program& program, int loop)
      : program_(program), loop_(loop), declared_(program.tiles.size(), false) {
    const Loop& l = nth(program.loops, loop);
    for (int i = l.first; i < l.last; ++i) {
      const Op& op = nth(program.ops, i);
      int last = i;
      if (op.code == OpCode::loop) last = nth(program.loops, op.loop).last;
      for (int k = i; k <= last; ++k) note_declared(nth(program.ops, k));
      if (!is_structure(op.code) || op.code == OpCode::loop)
        statements.push_back({i, last, has_tensor(i, last)});
      i = last;
    }
    find_regions();
    find();
  }

  std::vector<Statement> statements;
  std::vector<Dependence> all;

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
  static constexpr int window =
      28;  // iterations tried: more than twice the longest rotation of a kernel's own arrays

  /// What a statement touches of a tile in one iteration: [element, element_end) x [free, free_end).
  struct Region {
    int tile = none;
    bool written = false;
    bool by_tensor = false, by_dma = false;
    std::vector<std::array<std::int64_t, 4>> at{};  // per iteration of the window
  };

  void note_declared(const Op& op) {
    if (!op.dst.given() || op.code == OpCode::load_element || op.code == OpCode::load_transposed_element)
      return;
    if (is_structure(op.code) || is_transfer(op.code) || op.code == OpCode::transposed ||
        op.code == OpCode::causal_mask)
      nth(declared_, op.dst.tile) = true;
  }
  bool has_tensor(int first, int last) const {
    for (int i = first; i <= last; ++i) {
      const Op& op = nth(program_.ops, i);
      if (!is_structure(op.code) && engine_of(program_, op) == Engine::tensor) return true;
    }
    return false;
  }

  void find_regions() {
    std::vector<std::int64_t> index(program_.loops.size(), 0);
    for (std::size_t l = 0; l < index.size(); ++l) index[l] = first_value(static_cast<int>(l), index);
    const Loop& loop = nth(program_.loops, loop_);
    const std::int64_t begin = evaluate(program_, loop.begin, index);
    // The last iteration of the loops around is the longest one of a loop whose extent grows with them.
    iterations_ = window;
    for (const Statement& s : statements) {
      std::vector<Region> regions;
      for (int i = s.first; i <= s.last; ++i) {
        const Op& op = nth(program_.ops, i);
        if (op.code == OpCode::loop || op.code == OpCode::end) continue;
        each_slice(op, [&](const TileSlice& t, bool written) {
          const Engine engine = is_structure(op.code) ? Engine::automatic : engine_of(program_, op);
          Region r{.tile = t.tile,
                   .written = written,
                   .by_tensor = engine == Engine::tensor,
                   .by_dma = engine == Engine::dma};
          for (int x = 0; x < iterations_; ++x) {
            nth(index, loop_) = begin + x;
            r.at.push_back(region(t, s, index));
          }
          regions.push_back(std::move(r));
        });
        if (is_transfer(op.code))
          tensors_.push_back({static_cast<int>(&s - statements.data()), op.hbm.tensor, op.a.given()});
      }
      regions_.push_back(std::move(regions));
    }
  }

  std::int64_t first_value(int loop, const std::vector<std::int64_t>& index) const {
    return evaluate(program_, nth(program_.loops, loop).begin, index);
  }

  /// All of the tile where an inner loop of the statement decides.
  std::array<std::int64_t, 4> region(const TileSlice& t, const Statement& s,
                                     const std::vector<std::int64_t>& index) const {
    const TileDecl& d = nth(program_.tiles, t.tile);
    std::array<std::int64_t, 4> r{0, std::max<std::int64_t>(d.count, 1), 0, d.f};
    if (t.element != none && !uses_inner(t.element, s)) {
      r[0] = evaluate(program_, t.element, index);
      r[1] = r[0] + 1;
    }
    if (t.free != none && !uses_inner(t.free, s)) {
      r[2] = evaluate(program_, t.free, index);
      r[3] = r[2] + std::int64_t{t.f - 1} * t.step + 1;
    }
    return r;
  }
  bool uses_inner(ExprId id, const Statement& s) const {
    const Expr& e = nth(program_.exprs, id);
    if (e.op == ExprOp::loop) {
      const int at = nth(program_.loops, e.value).first;
      return at > s.first && at <= s.last;
    }
    return (e.a != none && uses_inner(e.a, s)) || (e.b != none && uses_inner(e.b, s));
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
    for (const Touched& x : tensors_) {  // HBM that is both read and written stays in order
      for (const Touched& y : tensors_) {
        if (x.tensor != y.tensor || x.written == y.written) continue;
        if (x.statement < y.statement) all.push_back({x.statement, y.statement, 0});
        all.push_back({x.statement, y.statement, 1});
      }
    }
  }

  void relate(int a, int b, const Region& x, const Region& y) {
    const bool flows = x.written && !y.written && !x.by_tensor && !x.by_dma && y.by_tensor;
    for (int d = a < b ? 0 : 1; d < iterations_; ++d) {
      if (d > 0 && is_local(x.tile)) return;  // a tile of its own in each iteration
      for (int i = 0; i + d < iterations_; ++i) {
        const auto &p = nth(x.at, i), &q = nth(y.at, i + d);
        if (p[0] < q[1] && q[0] < p[1] && p[2] < q[3] && q[2] < p[3]) {
          all.push_back({a, b, d, flows && d == 0});
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
  int loop_, iterations_ = 0;
  std::vector<char> declared_;
  std::vector<std::vector<Region>> regions_;  // per statement
  std::vector<Touched> tensors_;
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
