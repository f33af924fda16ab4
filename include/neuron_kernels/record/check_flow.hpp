// check_flow: what is read has been written; matmuls accumulate on matmuls; accumulation groups; unused tiles.
//
// Parts that may have been written are collected as boxes over all iterations, too large rather than too small: an
// error is an iteration that surely reads what no op has written. A replay on PoisonedHost finds the rest.
#pragma once

#include <array>
#include <set>
#include <tuple>
#include <vector>

#include "neuron_kernels/record/check_boxes.hpp"
#include "neuron_kernels/record/check_context.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class FlowCheck {
 public:
  explicit FlowCheck(Context& c)
      : c_(c), uses_(c.program.tiles.size()), home_(c.program.tiles.size(), none) {}

  void run() {
    for (int i = 0; i < static_cast<int>(c_.program.ops.size()); ++i) {
      const Op& op = nth(c_.program.ops, i);
      if (op.dst.given() && (is_structure(op.code) || op.dst.partition == none)) {
        nth(home_, op.dst.tile) = c_.values.loop_around(i);
        made_.push_back({op.dst.tile, i});
      }
      for_each_access(op, [&](const TileSlice& t, bool writes) {
        nth(uses_, t.tile).push_back({i, &t, writes, hull(t)});
      });
    }
    for (const auto& [tile, at] : made_) {
      written_before_read(tile);
      unused(tile, at);
    }
    for (int i = 0; i < static_cast<int>(c_.program.ops.size()); ++i) {
      const Op& op = nth(c_.program.ops, i);
      if (op.code != OpCode::matmul || op.accumulate.op == Compare::never) continue;
      if (!c_.limits.is_host() && !c_.is_trn3()) accumulates_on(i);
    }
    if (!c_.limits.is_host()) groups();
  }

 private:
  using Part = Box<3>;  // elements of an array, partitions, free elements
  static constexpr std::size_t most_parts = 512;
  struct Use {
    int op;
    const TileSlice* slice;
    bool writes;
    Part part;  // over all iterations
  };

  Part hull(const TileSlice& t) {
    const Bounds e = c_.values.of(t.element), p = c_.values.of(t.partition), f = c_.values.of(t.free);
    const std::int64_t reach = std::int64_t{t.f - 1} * t.step + 1;
    return {{e.lo, p.lo, f.lo}, {e.hi + 1, p.hi + t.p, f.hi + reach}, f.constant() ? std::max(t.step, 1) : 1};
  }
  Part part(const TileSlice& t, std::span<const std::int64_t> index) const {
    const std::int64_t e = c_.values.value(t.element, index), p = c_.values.value(t.partition, index),
                       f = c_.values.value(t.free, index);
    return {{e, p, f}, {e + 1, p + t.p, f + std::int64_t{t.f - 1} * t.step + 1}, std::max(t.step, 1)};
  }

  /// Whether op `writer` behind `reader` may come before it: in an earlier iteration of a loop that holds both, when
  /// the reader may sit out the first one.
  bool may_precede(int tile, int writer, int reader) {
    bool skips = false;
    int outermost = none;
    std::vector<int> around;
    for (int l = c_.values.loop_around(reader); l != none && l != nth(home_, tile);
         l = c_.values.loop_around_loop(l)) {
      around.push_back(l);
      if (c_.values.encloses(l, writer)) outermost = l;
    }
    if (outermost == none) return false;
    for (const int l : around) {
      if (l == outermost) break;
      skips = skips || c_.values.may_be_empty(l);
    }
    return skips;
  }

  void written_before_read(int tile) {
    std::vector<Part> written;
    const auto add = [](std::vector<Part>& parts, const Part& p) {
      for (const Part& q : parts) {
        if (q == p) return;
      }
      parts.push_back(p);
    };
    for (const Use& use : nth(uses_, tile)) {
      const Op& op = nth(c_.program.ops, use.op);
      const bool adds = use.writes && op.code == OpCode::matmul && &op.dst == use.slice &&
                        op.accumulate.op != Compare::never;
      if (!use.writes || adds) {
        if (!covered(written, use.part)) {
          std::vector<Part> before = written;
          for (const Use& later : nth(uses_, tile)) {
            if (later.writes && later.op >= use.op && may_precede(tile, later.op, use.op))
              add(before, later.part);
          }
          reads(tile, use, before, adds);
        }
      }
      if (use.writes) add(written, use.part);
    }
  }

  /// before: what may have been written by then. adds: the use is a matmul that may add to what is there, also to
  /// what it wrote itself in earlier iterations.
  void reads(int tile, const Use& use, const std::vector<Part>& before, bool adds) {
    if (covered(before, use.part)) return;
    const Op& op = nth(c_.program.ops, use.op);
    std::vector<ExprId> exprs{use.slice->element, use.slice->partition, use.slice->free};
    if (adds) exprs.insert(exprs.end(), {op.accumulate.a, op.accumulate.b});
    std::erase(exprs, none);
    bool saw_all = false;
    std::string when;
    const TileDecl& d = nth(c_.program.tiles, tile);
    std::vector<Part> written = before;
    const auto stale = [&](std::span<const std::int64_t> index) {
      const Part p = part(*use.slice, index);
      if (adds && !evaluate(c_.program, op.accumulate, index)) {
        if (std::find(written.begin(), written.end(), p) == written.end()) written.push_back(p);
        return written.size() > most_parts;
      }
      if (covered(written, p)) return false;
      when = c_.iteration(use.op, index);
      return true;
    };
    if (!c_.values.any(use.op, exprs, stale, &saw_all) || written.size() > most_parts) return;
    // Iterations that were skipped may have written.
    if (adds && !saw_all && written.size() > before.size()) return;
    const bool nothing = before.empty();
    c_.report(Rule::read_before_write, use.op, d.name,
              text(adds ? "adds to" : "reads",
                   nothing ? " a tile that nothing has written" : " a part that nothing has written", when,
                   "; a fresh tile has no content"),
              adds ? "let the first matmul overwrite: {.accumulate = k.index > 0}"
                   : "fill, load or compute it first");
  }

  void unused(int tile, int at) {
    const TileDecl& d = nth(c_.program.tiles, tile);
    bool by_the_way = !nth(uses_, tile).empty();  // dst of an op that is there for its column
    for (const Use& use : nth(uses_, tile)) {
      if (!use.writes) return;
      const Op& op = nth(c_.program.ops, use.op);
      by_the_way = by_the_way && op.column.given() && op.column.tile != tile;
    }
    if (by_the_way) return;
    c_.report(Rule::unused_tile, at, d.name,
              nth(uses_, tile).empty() ? "never used" : "written and never read",
              "drop it, and the op that fills it");
  }

  bool same_place(const TileSlice& a, const TileSlice& b) const {
    return a.tile == b.tile && a.element == b.element && a.partition == b.partition && a.free == b.free;
  }
  /// Whether an op between loop `l` and itself may be skipped.
  bool may_be_skipped(int op, int l) {
    for (int k = c_.values.loop_around(op); k != none && k != l; k = c_.values.loop_around_loop(k)) {
      if (c_.values.may_be_empty(k)) return true;
    }
    return false;
  }

  /// Matmul i adds; no other kind of op may have written there since the last matmul did.
  void accumulates_on(int i) {
    const Op& op = nth(c_.program.ops, i);
    const std::vector<Use>& uses = nth(uses_, op.dst.tile);
    const auto writes = [&](const Use& u, bool by_matmul) {
      return u.writes && same_place(*u.slice, op.dst) &&
             (nth(c_.program.ops, u.op).code == OpCode::matmul) == by_matmul;
    };
    for (const Use& w : uses) {
      if (!writes(w, false)) continue;
      int common = c_.values.loop_around(w.op);
      while (common != none && !c_.values.encloses(common, i)) common = c_.values.loop_around_loop(common);
      const bool before = w.op < i;
      if (!before && (common == none || common == nth(home_, op.dst.tile)))
        continue;  // the next tile is another
      if (may_be_skipped(w.op, common)) continue;
      const bool restarted = std::any_of(uses.begin(), uses.end(), [&](const Use& m) {
        if (!writes(m, true) || m.op == i) return false;
        return before ? m.op > w.op && m.op < i
                      : c_.values.encloses(common, m.op) && (m.op > w.op || m.op < i);
      });
      if (restarted) continue;
      std::vector<ExprId> exprs;
      if (op.accumulate.a != none) exprs = {op.accumulate.a, op.accumulate.b};
      const auto adds = [&](std::span<const std::int64_t> index) {
        for (int l = c_.values.loop_around(i); l != common; l = c_.values.loop_around_loop(l)) {
          if (nth(index, l) != c_.values.value(nth(c_.program.loops, l).begin, index)) return false;
        }
        if (!before && nth(index, common) == c_.values.value(nth(c_.program.loops, common).begin, index))
          return false;
        return evaluate(c_.program, op.accumulate, index);
      };
      if (!before) exprs.push_back(loop_expr(common));
      std::erase(exprs, none);
      if (!c_.values.any(i, exprs, adds)) continue;
      const Op& writer = nth(c_.program.ops, w.op);
      c_.report(Rule::psum_accumulate, i, c_.tile(op.dst).name,
                text("adds to what ", name_of(writer.code), " at ", c_.place(writer.where),
                     "has written; allowed is a matmul"),
                "let the first matmul overwrite, and add the rest by tensor_tensor");
      return;
    }
  }
  ExprId loop_expr(int loop) const {
    for (std::size_t e = 0; e < c_.program.exprs.size(); ++e) {
      if (c_.program.exprs[e] == Expr{ExprOp::loop, loop}) return static_cast<ExprId>(e);
    }
    return none;
  }

  /// For each loop, the groups that stay open from one iteration to the next.
  void groups() {
    using Group =
        std::tuple<int, std::int64_t, std::int64_t, std::int64_t>;  // tile, element, partition, free
    std::vector<std::set<Group>> open(c_.program.loops.size());
    std::vector<int> last(c_.program.loops.size(), none);
    for (int i = 0; i < static_cast<int>(c_.program.ops.size()); ++i) {
      const Op& op = nth(c_.program.ops, i);
      if (op.code != OpCode::matmul || op.accumulate.a == none) continue;
      for (int l = c_.values.loop_around(i); l != none && l != nth(home_, op.dst.tile);
           l = c_.values.loop_around_loop(l)) {
        const ExprId index_of = loop_expr(l);
        if (index_of == none || !depends(op.accumulate, index_of)) continue;
        std::vector<ExprId> exprs{op.dst.element, op.dst.partition, op.dst.free};
        std::erase(exprs, none);
        (void)c_.values.any(i, exprs, [&](std::span<const std::int64_t> index) {
          nth(open, l).insert({op.dst.tile, c_.values.value(op.dst.element, index),
                               c_.values.value(op.dst.partition, index),
                               c_.values.value(op.dst.free, index)});
          return nth(open, l).size() > 4096;
        });
        nth(last, l) = i;
      }
    }
    for (std::size_t l = 0; l < open.size(); ++l) {
      if (static_cast<int>(open[l].size()) <= c_.limits.psum_banks) continue;
      c_.report(Rule::psum_groups, last[l], c_.tile(nth(c_.program.ops, last[l]).dst).name,
                text(open[l].size(), " accumulation groups are open over loop i", l, "; allowed are ",
                     c_.limits.psum_banks),
                "make the contraction the inner loop, or accumulate fewer tiles at a time");
    }
  }
  bool depends(const Condition& c, ExprId loop) const { return depends(c.a, loop) || depends(c.b, loop); }
  bool depends(ExprId e, ExprId loop) const {
    if (e == loop) return true;
    if (e == none) return false;
    const Expr& x = nth(c_.program.exprs, e);
    return depends(x.a, loop) || depends(x.b, loop);
  }

  Context& c_;
  std::vector<std::vector<Use>> uses_;       // per tile, in the order of ops
  std::vector<int> home_;                    // per tile: the loop whose body makes it
  std::vector<std::pair<int, int>> made_{};  // tile, the op that makes it
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
