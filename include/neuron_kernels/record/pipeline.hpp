// pipeline(program): software pipelining. Statements of a loop that wait for others run some iterations later, so
// that the tensor engine works on one tile while the others prepare the next.
//
// In a loop over blocks with an inner loop over steps, the last steps of a block and the first of the next run side
// by side. Each statement still runs once per iteration, in an inner loop of its own that runs once or not at all:
//     for t in [b, e + k - 1):  for i in [max(t - s, b), min(t - s + 1, e)):  statement of stage s
// Tiles that cross stages become arrays with an element for each iteration in flight. Results are the same bits.
// source: Lam 1988 (doi 10.1145/53990.54022), software pipelining
#pragma once

#include "neuron_kernels/record/rotation.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// Which loops to rotate: the innermost that gain by it, with the loop around them where that joins their ends.
class PipelinePlan {
 public:
  PipelinePlan(const Program& program, const PipelineOptions& options)
      : program_(program), options_(options), known_(program.loops.size()) {}

  const Rotation* rotation(int loop) {
    if (nth(program_.loops, loop).kind == LoopKind::programs || runs_once(loop)) return nullptr;
    const Rotation& p = at(loop);
    if (!p.worthwhile()) return nullptr;
    const Loop& l = nth(program_.loops, loop);
    for (int i = l.first; i < l.last; ++i) {
      const Op& op = nth(program_.ops, i);
      if (op.code != OpCode::loop) continue;
      const Rotation& inner = at(op.loop);
      if (runs_once(op.loop)) continue;
      if (op.loop == p.steps() ? inner.steps() != none : inner.worthwhile()) return nullptr;
    }
    return &p;
  }

 private:
  const Rotation& at(int loop) {
    std::optional<Rotation>& known = nth(known_, loop);
    if (!known) known.emplace(program_, loop, options_);
    return *known;
  }

  /// Whether it runs at most once, as far as the first iterations of the loop around it tell.
  bool runs_once(int loop) const {
    std::vector<std::int64_t> index(program_.loops.size(), 0);
    int around = none;
    for (int l = 0; l < static_cast<int>(index.size()); ++l) {
      const Loop& other = nth(program_.loops, l);
      nth(index, l) = evaluate(program_, other.begin, index);
      const Loop& mine = nth(program_.loops, loop);
      if (other.first < mine.first && other.last > mine.last &&
          (around == none || other.first > nth(program_.loops, around).first))
        around = l;
    }
    const Loop& l = nth(program_.loops, loop);
    constexpr int window = 28;
    for (int x = 0; x < (around == none ? 1 : window); ++x) {
      if (evaluate(program_, l.end, index) - evaluate(program_, l.begin, index) > 1) return false;
      if (around != none) ++nth(index, around);
    }
    return true;
  }

  const Program& program_;
  PipelineOptions options_;
  std::vector<std::optional<Rotation>> known_;
};

}  // namespace record

/// The Program with every loop rotated where that lets engines overlap; the others as they were.
inline Program pipeline(const Program& program, const PipelineOptions& options = {}) {
  record::Rewriter out(program);
  record::PipelinePlan plan(program, options);
  const auto rewrite = [&](const auto& self, int first, int last) -> void {
    for (int i = first; i < last; ++i) {
      const record::Op& op = record::nth(program.ops, i);
      if (op.code != record::OpCode::loop) {
        out.copy(i, i);
        continue;
      }
      const record::Loop& loop = record::nth(program.loops, op.loop);
      i = loop.last;
      if (const record::Rotation* rotation = plan.rotation(op.loop)) {
        rotation->write(out);
        continue;
      }
      const int at = out.open_like(op.loop);
      self(self, loop.first, loop.last);
      out.close(at);
    }
  };
  rewrite(rewrite, 0, static_cast<int>(program.ops.size()));
  return out.program();
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
