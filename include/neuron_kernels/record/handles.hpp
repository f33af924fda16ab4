// What Recorder hands to kernels: Hbm, Tile and TileArray, which name parts of the Program being recorded.
#pragma once

#include <climits>
#include <string>
#include <string_view>
#include <vector>

#include "neuron_kernels/core/tile_rules.hpp"
#include "neuron_kernels/record/index.hpp"
#include "neuron_kernels/record/program.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// One recording: the Program and what only the Recorder must know.
struct State {
  struct Shape {
    int p = 0, f = 0;  // 0: not loaded
    bool operator==(const Shape&) const = default;
  };
  Limits limits;
  Program program{};
  IndexPool pool{};
  std::vector<char> tile_alive{};
  std::vector<std::vector<Shape>> elements{};  // per tile; for an input_array, the shape of each element
};

/// Checks [begin, begin + n) against a dimension of `size`, wherever the bounds of begin are certain.
inline void inside(const char* op, std::string_view what, const Index& begin, std::int64_t n,
                   std::int64_t size, const Where& where) {
  if (!begin.alive()) {
    tile_error(where, op,
               text("an Index of a loop that has ended, into ", what, "; use an Index of an open loop"));
  }
  const Bounds b = begin.bounds();
  const bool outside = b.exact ? b.lo < 0 || b.hi + n > size : b.hi < 0 || b.lo + n > size;
  if (n < 1 || outside) {
    const std::string from = b.constant() ? text(b.lo) : text(b.lo, " to ", b.hi);
    tile_error(where, op,
               text(n, " from ", from, " of ", what, "; allowed are 1 or more within [0, ", size, ")"));
  }
}

/// A tensor argument, or a part of one; see core/target.hpp.
class Hbm {
 public:
  Hbm() = default;
  Hbm(State& state, int tensor) : state_(&state), tensor_(tensor) {
    const Tensor& t = nth(state.program.tensors, tensor);
    rank_ = t.rank;
    size_ = t.shape;
  }

  explicit operator bool() const { return state_ != nullptr; }
  int rank() const { return rank_; }
  DType dtype() const { return nth(state_->program.tensors, tensor_).dtype; }
  std::int64_t dim(int d, const Where& where = Where::current()) const {
    given("dim", where);
    if (d < 0 || d >= rank_)
      tile_error(where, "dim", text("dimension ", d, " of ", describe(), "; allowed are 0 to ", rank_ - 1));
    return nth(size_, axis(d));
  }

  Hbm at(const Index& i, const Where& where = Where::current()) const {
    given("at", where);
    if (rank_ < 2) tile_error(where, "at", text(describe(), " has rank 1; at() needs rank 2 to 4"));
    Hbm part = cut("at", axis(0), i, 1, where);
    --part.rank_;
    return part;
  }
  Hbm rows(const Index& begin, int n, const Where& where = Where::current()) const {
    matrix("rows", where);
    return cut("rows", axis(0), begin, n, where);
  }
  Hbm cols(const Index& begin, int n, const Where& where = Where::current()) const {
    matrix("cols", where);
    return cut("cols", axis(1), begin, n, where);
  }
  Hbm transposed(const Where& where = Where::current()) const {
    matrix("transposed", where);
    Hbm other = *this;
    other.transposed_ = !transposed_;
    return other;
  }

  /// Throws unless an op may use it: given, rank 2, sizes that a tile can have.
  void matrix(const char* op, const Where& where) const {
    given(op, where);
    if (rank_ != 2)
      tile_error(where, op, text(describe(), " has rank ", rank_, "; ", op, " needs a matrix: use at()"));
    for (int d : {0, 1}) {
      if (at_size(d) > INT_MAX)
        tile_error(where, op, text(describe(), " is too large for a tile; use rows() or cols()"));
    }
    for (int d = 0; d < max_rank; ++d) {
      if (!begin_[static_cast<std::size_t>(d)].alive()) {
        tile_error(where, op, text(describe(), " was cut with the Index of a loop that has ended"));
      }
    }
  }
  int matrix_rows() const { return static_cast<int>(at_size(0)); }
  int matrix_cols() const { return static_cast<int>(at_size(1)); }

  HbmSlice use() const {
    HbmSlice s;
    s.tensor = tensor_;
    const int tensor_rank = nth(state_->program.tensors, tensor_).rank;
    for (int d = 0; d < tensor_rank; ++d)
      nth(s.begin, d) = nth(begin_, d).use(state_->pool, state_->program.exprs);
    s.size = {nth(size_, tensor_rank - 2), nth(size_, tensor_rank - 1)};
    s.transposed = transposed_;
    return s;
  }
  const State* state() const { return state_; }

 private:
  void given(const char* op, const Where& where) const {
    if (state_ == nullptr)
      tile_error(where, op, "an HBM tensor that is not given; test it with `if (hbm)` before use");
  }
  /// Dimension of the tensor that is dimension d of this part.
  int axis(int d) const {
    const int fixed = nth(state_->program.tensors, tensor_).rank - rank_;
    return fixed + (transposed_ && d < 2 ? 1 - d : d);
  }
  std::int64_t at_size(int d) const { return nth(size_, axis(d)); }
  Hbm cut(const char* op, int axis, const Index& begin, int n, const Where& where) const {
    const std::size_t d = static_cast<std::size_t>(axis);
    inside(op, describe(), begin, n, size_[d], where);
    Hbm part = *this;
    part.begin_[d] = begin_[d] + begin;
    part.size_[d] = n;
    return part;
  }
  std::string describe() const {
    std::string s = nth(state_->program.tensors, tensor_).name + " [";
    for (int d = 0; d < rank_; ++d) s += (d != 0 ? ", " : "") + text(at_size(d));
    return s + "]";
  }

  State* state_ = nullptr;
  int tensor_ = none, rank_ = 0;
  bool transposed_ = false;
  std::array<Index, max_rank> begin_{};
  std::array<std::int64_t, max_rank> size_{};
};

/// A tile, an element of an array, or a part of one; see core/target.hpp.
class Tile {
 public:
  Tile() = default;
  Tile(State& state, int tile) : state_(&state), tile_(tile), p_(decl().p), f_(decl().f) {}
  /// Element i of an array.
  /// What is wrong with it is said by the op that uses it, which knows where it stands.
  Tile(State& state, int tile, const Index& i) : Tile(state, tile) {
    element_ = i;
    const Bounds b = i.bounds();
    const std::vector<State::Shape>& shapes = nth(state.elements, tile);
    if (!decl().read_only || !i.alive() || b.lo < 0 || b.hi >= decl().count) return;
    State::Shape common;
    for (std::int64_t k = b.lo; k <= b.hi; k += b.step != 0 ? b.step : 1) {
      const State::Shape s = nth(shapes, k);
      if (s.p == 0 || s == common) continue;
      mixed_ = common.p != 0;
      if (mixed_) return;
      common = s;
    }
    empty_ = common.p == 0;
    if (!empty_) p_ = common.p, f_ = common.f;
  }

  explicit operator bool() const { return state_ != nullptr; }
  int p() const { return p_; }
  int f() const { return f_; }
  DType dtype() const { return decl().dtype; }
  Tile partitions(const Index& begin, int n, const Where& where = Where::current()) const {
    usable("partitions", where);
    inside("partitions", text("the partitions of ", neuron_kernels::describe(*this)), begin, n, p_, where);
    Tile part = *this;
    part.partition_ = partition_ + begin;
    part.p_ = n;
    return part;
  }
  Tile free(const Index& begin, int n, const Where& where = Where::current()) const {
    usable("free", where);
    inside("free", text("the free elements of ", neuron_kernels::describe(*this)), begin, n, f_, where);
    Tile part = *this;
    part.free_ = free_ + begin * step_;
    part.f_ = n;
    return part;
  }
  Tile every(int n, const Index& begin, const Where& where = Where::current()) const {
    usable("every", where);
    const Bounds at = begin.bounds();
    const int count = tile_rules::every(*this, n, at.constant() && at.lo == 0, where);
    inside("every", text("the first ", n, " free elements of ", neuron_kernels::describe(*this)), begin, 1, n,
           where);
    Tile part = *this;
    part.free_ = free_ + begin * step_;
    part.step_ = step_ * n;
    part.f_ = count;
    return part;
  }

  operator TileInfo() const {  // implicit, for tile_rules
    const TileDecl& d = decl();
    return {d.name.c_str(), p_, f_, d.dtype, d.space, d.read_only};
  }

  /// Throws unless an op may use it: given, alive, within its array.
  void usable(const char* op, const Where& where) const {
    if (state_ == nullptr)
      tile_error(where, op, "a tile that is not given; test it with `if (tile)` before use");
    if (!nth(state_->tile_alive, tile_)) {
      tile_error(where, op,
                 text(neuron_kernels::describe(*this),
                      " belongs to a loop iteration that has ended; make it outside the loop"));
    }
    if (!partition_.alive() || !free_.alive()) {
      tile_error(where, op,
                 text(neuron_kernels::describe(*this), " was cut with the Index of a loop that has ended"));
    }
    if (!decl().is_array) return;
    inside(op, text("the tiles of array ", decl().name), element_, 1, decl().count, where);
    const Bounds b = element_.bounds();
    const std::string which = text(decl().name, "[", b.lo, b.constant() ? "" : text(" to ", b.hi), "]");
    if (mixed_)
      tile_error(where, op,
                 text(which,
                      " were loaded with different shapes; one op needs one shape: use tiles() or an own op "
                      "for the rest"));
    if (empty_) tile_error(where, op, text(which, " is read before it is loaded; load it first"));
  }

  TileSlice use() const {
    TileSlice s;
    s.tile = tile_;
    const auto expr = [&](const Index& i) { return i.use(state_->pool, state_->program.exprs); };
    if (decl().is_array) s.element = expr(element_);
    s.partition = expr(partition_);
    s.free = expr(free_);
    s.p = p_;
    s.f = f_;
    s.step = step_;
    return s;
  }
  const State* state() const { return state_; }

 private:
  const TileDecl& decl() const { return nth(state_->program.tiles, tile_); }

  State* state_ = nullptr;
  int tile_ = none, p_ = 0, f_ = 0, step_ = 1;
  bool mixed_ = false, empty_ = false;
  Index element_{}, partition_{}, free_{};
};

/// Tiles of one shape: array[i]; see core/target.hpp.
class TileArray {
 public:
  TileArray() = default;
  TileArray(State& state, int tile) : state_(&state), tile_(tile) {}
  Tile operator[](const Index& i) const { return {*state_, tile_, i}; }

 private:
  friend class Appender;
  State* state_ = nullptr;
  int tile_ = none;
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
