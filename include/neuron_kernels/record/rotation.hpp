// Rotation: one loop of a Program, and perhaps an inner one, written so that its statements overlap.
//
// How it looks and which loops are rotated: record/pipeline.hpp.
#pragma once

#include <optional>

#include "neuron_kernels/record/rewriter.hpp"
#include "neuron_kernels/record/stages.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// One loop over blocks, and the loop over steps in it, if there is one to overlap.
class Rotation {
 public:
  Rotation(const Program& program, int outer, const PipelineOptions& options)
      : program_(program), outer_(outer), options_(options), blocks_(program, outer) {
    find_steps();
    if (steps_ != none) {
      inner_.emplace(program, steps_);
      step_stage_ = stages_of(*inner_, options.step_lag, options.most_stages);
      if (step_stage_.empty() || most(step_stage_) == 0 || !rotates_alone()) steps_ = none;
    }
    block_stage_ =
        stages_of(blocks_, options.block_lag, options.most_stages, steps_ == none ? none : steps_statement_);
    if (block_stage_.empty() && steps_ != none) {
      steps_ = none;
      block_stage_ = stages_of(blocks_, options.block_lag, options.most_stages);
    }
    worthwhile_ = !block_stage_.empty() && (steps_ != none || most(block_stage_) > 0) && find_crossings();
  }

  bool worthwhile() const { return worthwhile_; }
  /// The inner loop that it overlaps from block to block; none if there is none.
  int steps() const { return steps_; }

  /// Writes what stands for the loop (ops from its `loop` to its `end`) into `out`.
  void write(Rewriter& out) const {
    declare_crossing(out);
    const Loop& l = nth(program_.loops, outer_);
    const ExprId begin = out.expr(l.begin), end = out.expr(l.end);
    const int last = most(block_stage_) + (steps_ != none ? 1 : 0);
    const int at = out.open(begin, out.plus(end, last));
    const ExprId now = out.index_of(at);
    // Statements before the steps, newest block first; then the first steps of a block with the last ones of the block
    // before it; then what follows a block; then the steps that only one block has.
    for (int stage = 0; stage <= most(block_stage_); ++stage)
      write_statements(out, now, begin, end, stage, true);
    if (steps_ != none) write_edges(out, now, begin, end);
    for (int stage = 0; stage <= most(block_stage_); ++stage)
      write_statements(out, now, begin, end, stage, false);
    if (steps_ != none) write_middle(out, now, begin, end);
    out.close(at);
  }

 private:
  static int most(const std::vector<int>& v) { return v.empty() ? 0 : *std::max_element(v.begin(), v.end()); }

  /// The one inner loop whose tensor work waits for other engines.
  void find_steps() {
    for (std::size_t i = 0; i < blocks_.statements.size(); ++i) {
      const Statement& s = blocks_.statements[i];
      if (!s.tensor || s.first == s.last) continue;
      const int loop = nth(program_.ops, s.first).loop;
      const Dependences d(program_, loop);
      const std::vector<int> stage = stages_of(d, options_.step_lag, options_.most_stages);
      if (stage.empty() || most(stage) == 0) continue;
      if (steps_ != none) return;  // the first of several
      steps_ = loop;
      steps_statement_ = static_cast<int>(i);
    }
  }

  /// Whether steps of one block and of the next may run side by side: nothing that is made outside the blocks is
  /// changed by them.
  bool rotates_alone() const {
    for (const Dependence& x : blocks_.all) {
      if (x.a == steps_statement_ && x.b == steps_statement_ && x.distance == 1) return false;
    }
    return true;
  }

  // ---- tiles that live in more than one stage ----

  struct Crossing {
    int elements = 1;       // iterations in flight
    bool per_step = false;  // else per block
    bool two_sets = false;  // per step: blocks do not end at a multiple of `elements`
  };

  /// Stage of the op in its loop, and of the statement of blocks that it belongs to.
  struct Use {
    int low = 1 << 20, high = -1;
    void add(int from, int to) {
      low = std::min(low, from);
      high = std::max(high, to);
    }
  };

  bool find_crossings() {
    crossing_.assign(program_.tiles.size(), {});
    std::vector<Use> use(program_.tiles.size());
    const auto note = [&](const Dependences& d, int first, int last, int low, int high) {
      for (int i = first; i <= last; ++i) {
        const Op& op = nth(program_.ops, i);
        if (op.code == OpCode::loop || op.code == OpCode::end) continue;
        Dependences::each_slice(op, [&](const TileSlice& t, bool) {
          if (d.is_local(t.tile)) nth(use, t.tile).add(low, high);
        });
      }
    };
    if (steps_ != none) {
      for (std::size_t i = 0; i < inner_->statements.size(); ++i)
        note(*inner_, inner_->statements[i].first, inner_->statements[i].last, step_stage_[i],
             step_stage_[i]);
      if (!settle(use, *inner_, true)) return false;
    }
    use.assign(program_.tiles.size(), {});
    for (std::size_t i = 0; i < blocks_.statements.size(); ++i) {
      const bool steps = steps_ != none && static_cast<int>(i) == steps_statement_;
      note(blocks_, blocks_.statements[i].first, blocks_.statements[i].last, block_stage_[i],
           block_stage_[i] + (steps ? 1 : 0));
      // Before and after the steps are loops of their own, of one stage or not: a tile of both lies outside them.
      if (steps_ == none || static_cast<int>(i) <= steps_statement_) continue;
      for (int k = blocks_.statements[i].first; k <= blocks_.statements[i].last; ++k) {
        Dependences::each_slice(nth(program_.ops, k), [&](const TileSlice& t, bool) {
          if (blocks_.is_local(t.tile) && used_before_steps(t.tile))
            nth(use, t.tile).add(block_stage_[i], block_stage_[i] + 1);
        });
      }
    }
    return settle(use, blocks_, false) && added_bytes() <= options_.most_bytes;
  }

  bool used_before_steps(int tile) const {
    bool used = false;
    for (int i = 0; i < steps_statement_; ++i) {
      for (int k = nth(blocks_.statements, i).first; k <= nth(blocks_.statements, i).last; ++k) {
        Dependences::each_slice(nth(program_.ops, k),
                                [&](const TileSlice& t, bool) { used = used || t.tile == tile; });
      }
    }
    return used;
  }

  /// Of SBUF, for the iterations in flight beyond the first.
  std::int64_t added_bytes() const {
    std::int64_t sum = 0;
    for (std::size_t t = 0; t < crossing_.size(); ++t) {
      const TileDecl& d = program_.tiles[t];
      const Crossing& c = crossing_[t];
      if (d.space == Space::sbuf)
        sum += std::int64_t{c.elements * (c.two_sets ? 2 : 1) - 1} * std::max<std::int64_t>(d.count, 1) *
               d.f * size_of(d.dtype);
    }
    return sum;
  }

  bool settle(const std::vector<Use>& use, const Dependences& d, bool per_step) {
    for (std::size_t t = 0; t < use.size(); ++t) {
      const TileDecl& tile = program_.tiles[t];
      // Banks are few: those of a step are the same in the first, middle and last steps.
      const bool bank = per_step && tile.space == Space::psum && can_cross(static_cast<int>(t));
      if (!d.is_local(static_cast<int>(t)) || use[t].high < use[t].low + (bank ? 0 : 1)) continue;
      if (!per_step && steps_ != none && inner_->is_local(static_cast<int>(t))) continue;  // made in a step
      const Statement* maker = inside_statement(d, static_cast<int>(t));
      if (maker != nullptr && maker->first != maker->last && !bank)
        continue;  // made and used within an inner loop
      Crossing& c = crossing_[t];
      c.elements = std::max(use[t].high - use[t].low + 1, bank ? 2 : 1);
      c.per_step = per_step;
      c.two_sets = per_step && !blocks_end_at_multiple_of(c.elements);
      if (!can_cross(static_cast<int>(t))) return false;
    }
    return true;
  }

  /// The statement that makes the tile, if it is one.
  const Statement* inside_statement(const Dependences& d, int tile) const {
    for (const Statement& s : d.statements) {
      for (int i = s.first; i <= s.last; ++i) {
        const Op& op = nth(program_.ops, i);
        if (op.code != OpCode::loop && op.code != OpCode::end && op.dst.tile == tile && makes(op.code))
          return &s;
      }
    }
    return nullptr;
  }
  static bool makes(OpCode code) {
    return (is_structure(code) || is_transfer(code) || code == OpCode::transposed ||
            code == OpCode::causal_mask) &&
           code != OpCode::load_element && code != OpCode::load_transposed_element;
  }

  /// Arrays are filled by structure or by loads; other ops make a tile of their own.
  bool can_cross(int tile) const {
    for (const Op& op : program_.ops) {
      if (op.code == OpCode::loop || op.code == OpCode::end || op.dst.tile != tile || !makes(op.code))
        continue;
      if (!is_structure(op.code) && op.code != OpCode::load && op.code != OpCode::load_transposed)
        return false;
    }
    return true;
  }

  bool blocks_end_at_multiple_of(int n) const {
    const Loop& l = nth(program_.loops, steps_);
    return multiple(l.begin, n) && multiple(l.end, n);
  }
  bool multiple(ExprId id, int n) const {
    const Expr& e = nth(program_.exprs, id);
    switch (e.op) {
      case ExprOp::constant:
        return e.value % n == 0;
      case ExprOp::add:
      case ExprOp::subtract:
      case ExprOp::min:
      case ExprOp::max:
        return multiple(e.a, n) && multiple(e.b, n);
      case ExprOp::multiply:
        return multiple(e.a, n) || multiple(e.b, n);
      case ExprOp::divide: {  // (n c x) / c
        const Expr& by = nth(program_.exprs, e.b);
        return by.op == ExprOp::constant && by.value > 0 && multiple(e.a, static_cast<int>(by.value) * n);
      }
      default:
        return false;
    }
  }

  void declare_crossing(Rewriter& out) const {
    for (std::size_t t = 0; t < crossing_.size(); ++t) {
      if (crossing_[t].elements > 1)
        out.declare_array(static_cast<int>(t), crossing_[t].elements * (crossing_[t].two_sets ? 2 : 1));
    }
  }

  /// Which element holds tiles of block `block` and step `step`.
  void bind(Rewriter& out, ExprId block, ExprId step) const {
    for (std::size_t t = 0; t < crossing_.size(); ++t) {
      const Crossing& c = crossing_[t];
      if (c.elements <= 1 || (c.per_step && step == none)) continue;
      ExprId element = out.modulo(c.per_step ? step : block, c.elements);
      if (c.two_sets) element = out.add(element, out.multiply(out.modulo(block, 2), c.elements));
      out.bind_element(static_cast<int>(t), element);
    }
  }

  // ---- writing ----

  /// Statements of one stage that stand before the steps, or behind them, for the block that is due.
  void write_statements(Rewriter& out, ExprId now, ExprId begin, ExprId end, int stage, bool before) const {
    std::vector<int> due;
    for (std::size_t i = 0; i < blocks_.statements.size(); ++i) {
      const int n = static_cast<int>(i);
      if (block_stage_[i] != stage || (steps_ != none && n == steps_statement_)) continue;
      if (before != (steps_ == none || n < steps_statement_)) continue;
      due.push_back(n);
    }
    if (due.empty()) return;
    const int at = open_block(out, now, begin, end, stage);
    declare_local(out, blocks_, due);
    for (const int n : due) out.copy(nth(blocks_.statements, n).first, nth(blocks_.statements, n).last);
    out.close(at);
  }

  int open_block(Rewriter& out, ExprId now, ExprId begin, ExprId end, int stage) const {
    const ExprId block = out.plus(now, -stage);
    const int at = out.open(out.max(block, begin), out.min(out.plus(block, 1), end));
    out.bind_loop(outer_, at);
    bind(out, out.index_of(at), none);
    return at;
  }

  /// Tiles that only these statements use are made where they are.
  void declare_local(Rewriter& out, const Dependences& d, const std::vector<int>& statements) const {
    const Loop& l = nth(program_.loops, &d == &blocks_ ? outer_ : steps_);
    for (int i = l.first; i < l.last; ++i) {
      const Op& op = nth(program_.ops, i);
      if (op.code == OpCode::loop) {
        i = nth(program_.loops, op.loop).last;
        continue;
      }
      if (!is_structure(op.code) || nth(crossing_, op.dst.tile).elements > 1) continue;
      bool used = false;
      for (const int n : statements) {
        for (int k = nth(d.statements, n).first; k <= nth(d.statements, n).last; ++k) {
          const Op& user = nth(program_.ops, k);
          if (user.code == OpCode::loop || user.code == OpCode::end) continue;
          Dependences::each_slice(user,
                                  [&](const TileSlice& t, bool) { used = used || t.tile == op.dst.tile; });
          used = used || user.dst.tile == op.dst.tile;
        }
      }
      if (used) out.copy(i, i);
    }
  }

  void write_step_stage(Rewriter& out, ExprId first, ExprId past, int stage) const {
    std::vector<int> due;
    for (std::size_t i = 0; i < inner_->statements.size(); ++i) {
      if (step_stage_[i] == stage) due.push_back(static_cast<int>(i));
    }
    if (due.empty()) return;
    const int at = out.open(first, past);
    out.bind_loop(steps_, at);
    bind(out, out.bound(outer_), out.index_of(at));
    declare_local(out, *inner_, due);
    for (const int n : due) out.copy(nth(inner_->statements, n).first, nth(inner_->statements, n).last);
    out.close(at);
  }

  /// Steps [0, k - 1) of a block beside the k - 1 that the block before it still has to do.
  void write_edges(Rewriter& out, ExprId now, ExprId begin, ExprId end) const {
    const Loop& l = nth(program_.loops, steps_);
    const int stages = most(step_stage_) + 1, own = nth(block_stage_, steps_statement_);
    const int steps = out.open(out.constant(0), out.constant(stages - 1));
    const ExprId t = out.index_of(steps);
    for (int s = 0; s < stages; ++s) {
      int at = open_block(out, now, begin, end, own);
      ExprId b = out.expr(l.begin), e = out.expr(l.end), j = out.plus(out.add(b, t), -s);
      write_step_stage(out, out.max(j, b), out.min(out.plus(j, 1), out.plus(e, -s)), s);
      out.close(at);
      if (s == 0) continue;
      at = open_block(out, now, begin, end, own + 1);
      b = out.expr(l.begin), e = out.expr(l.end), j = out.plus(out.add(e, t), -s);
      write_step_stage(out, out.max(j, b), out.min(out.plus(j, 1), e), s);
      out.close(at);
    }
    out.close(steps);
  }

  void write_middle(Rewriter& out, ExprId now, ExprId begin, ExprId end) const {
    const Loop& l = nth(program_.loops, steps_);
    const int stages = most(step_stage_) + 1;
    const int at = open_block(out, now, begin, end, nth(block_stage_, steps_statement_));
    const int steps = out.open(out.plus(out.expr(l.begin), stages - 1), out.expr(l.end));
    for (int s = 0; s < stages; ++s) {
      const ExprId j = out.plus(out.index_of(steps), -s);
      write_step_stage(out, j, out.plus(j, 1), s);
    }
    out.close(steps);
    out.close(at);
  }

  const Program& program_;
  int outer_;
  PipelineOptions options_;
  Dependences blocks_;
  int steps_ = none, steps_statement_ = none;  // the loop over steps; its place among the statements
  std::optional<Dependences> inner_{};
  std::vector<int> step_stage_{}, block_stage_{};
  std::vector<Crossing> crossing_{};  // per tile
  bool worthwhile_ = false;
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
