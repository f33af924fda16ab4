// The loops of Recorder: a body runs once, with a symbol for the index;
// tiles() and programs() once more for the rest.
#pragma once

#include <string>
#include <vector>

#include "neuron_kernels/core/target.hpp"
#include "neuron_kernels/record/handles.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class Loops {
 public:
  /// What tiles() and programs() yield; see core/target.hpp.
  struct Span {
    Index index, begin;
    int size;
  };
  struct End {};

  /// Runs the body of `for (auto i : nc.range(...))` once, or not at all where the range is surely empty.
  class Range {
   public:
    Range(Loops& loops, const Index& from, const Index& to, const Where& where)
        : loops_(&loops), from_(from), to_(to), where_(where) {}
    Range& begin() {
      done_ = from_.bounds().lo >= to_.bounds().hi;
      if (!done_) index_ = loops_->open({}, from_, to_, where_);
      return *this;
    }
    End end() const { return {}; }
    Index operator*() const { return index_; }
    void operator++() {
      loops_->close();
      done_ = true;
    }
    bool operator!=(End) const { return !done_; }

   private:
    Loops* loops_;
    Index from_, to_, index_{};
    Where where_;
    bool done_ = false;
  };

  /// Runs the body once for all spans of `step` elements and once for the rest, as far as there are any.
  class Spans {
   public:
    Spans(Loops& loops, LoopKind kind, std::int64_t n, std::int64_t step, const Where& where)
        : loops_(&loops), kind_(kind), n_(n), step_(step), full_(n / step), where_(where) {}
    Spans& begin() {
      part_ = 0;
      open();
      return *this;
    }
    End end() const { return {}; }
    const Span& operator*() const { return span_; }
    void operator++() {
      loops_->close();
      ++part_;
      open();
    }
    bool operator!=(End) const { return part_ < 2; }

   private:
    void open() {
      if (part_ == 0 && full_ == 0) part_ = 1;
      if (part_ == 1 && n_ % step_ == 0) part_ = 2;
      if (part_ == 2) return;
      const bool tail = part_ == 1;
      Loop loop;
      loop.kind = kind_;
      loop.n = n_;
      loop.step = step_;
      loop.tail = tail;
      span_.index = loops_->open(loop, tail ? full_ : 0, tail ? full_ + 1 : full_, where_);
      span_.begin = span_.index * step_;
      span_.size = static_cast<int>(tail ? n_ % step_ : step_);
    }

    Loops* loops_;
    LoopKind kind_;
    std::int64_t n_, step_, full_;
    int part_ = 0;  // 0 full spans, 1 the rest, 2 done
    Where where_;
    Span span_{};
  };

  Range range(const Index& n, const Where& where = Where::current()) { return {*this, 0, n, where}; }
  Range range(const Index& begin, const Index& end, const Where& where = Where::current()) {
    return {*this, begin, end, where};
  }
  Spans tiles(std::int64_t n, std::int64_t step, const Where& where = Where::current()) {
    return spans("tiles", LoopKind::tiles, n, step, where);
  }
  Spans programs(std::int64_t n, std::int64_t step, const Where& where = Where::current()) {
    for (const int l : open_) {
      if (nth(state_.program.loops, l).kind == LoopKind::programs) {
        tile_error(where, "programs",
                   "inside another programs(); allowed around it and in it are range() and tiles()");
      }
    }
    return spans("programs", LoopKind::programs, n, step, where);
  }

 protected:
  explicit Loops(const Limits& limits) : state_{limits} { state_.program.chip = limits.chip; }
  Loops(const Loops&) = delete;  // handles and indices point into it
  Loops& operator=(const Loops&) = delete;
  ~Loops() = default;

  SourceLine line(const Where& where) {
    std::vector<std::string>& files = state_.program.files;
    if (where.file_name() != last_file_) {  // names of one file mostly share a pointer
      last_file_ = where.file_name();
      last_ = 0;
      while (last_ < static_cast<int>(files.size()) && nth(files, last_) != last_file_) ++last_;
      if (last_ == static_cast<int>(files.size())) files.emplace_back(last_file_);
    }
    return {last_, static_cast<int>(where.line())};
  }

  State state_;

 private:
  Spans spans(const char* op, LoopKind kind, std::int64_t n, std::int64_t step, const Where& where) {
    if (n < 0 || step < 1)
      tile_error(where, op, text(op, "(", n, ", ", step, "); n must be at least 0, step at least 1"));
    return {*this, kind, n, step, where};
  }

  Index open(Loop loop, const Index& begin, const Index& end, const Where& where) {
    if (!begin.alive() || !end.alive())
      tile_error(where, "range", "to or from an Index of a loop that has ended");
    Program& program = state_.program;
    const int l = static_cast<int>(program.loops.size());
    loop.begin = begin.use(state_.pool, program.exprs);
    loop.end = end.use(state_.pool, program.exprs);
    loop.where = line(where);
    Op op;
    op.code = OpCode::loop;
    op.loop = l;
    op.where = loop.where;
    program.ops.push_back(op);
    loop.first = loop.last = static_cast<int>(program.ops.size());
    program.loops.push_back(loop);
    open_.push_back(l);
    tiles_before_.push_back(program.tiles.size());
    state_.pool.open.push_back(true);
    const Bounds from = begin.bounds(), to = end.bounds();
    return Index::of_loop(
        state_.pool, l,
        {from.lo, to.hi - 1, 1, from.constant() && to.constant(), std::uint64_t{1} << (l % 64)});
  }

  void close() {
    Program& program = state_.program;
    const int l = open_.back();
    nth(program.loops, l).last = static_cast<int>(program.ops.size());
    Op op;
    op.code = OpCode::end;
    op.loop = l;
    op.where = nth(program.loops, l).where;
    program.ops.push_back(op);
    nth(state_.pool.open, l) = false;
    for (std::size_t t = tiles_before_.back(); t < program.tiles.size(); ++t) state_.tile_alive[t] = false;
    open_.pop_back();
    tiles_before_.pop_back();
  }

  std::vector<int> open_;
  std::vector<std::size_t> tiles_before_;  // per open loop, how many tiles there were
  const char* last_file_ = nullptr;
  int last_ = 0;  // position of last_file_ in Program::files
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
