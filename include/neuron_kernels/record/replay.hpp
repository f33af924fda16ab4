// replay(program, nc, tensors): asks a Target for what the Program holds.
// On Host the numbers are those of the kernel, bit for bit; on Recorder the Program comes out again.
//
// A programs() loop becomes one of the target, so that each core does its share.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "neuron_kernels/core/target.hpp"
#include "neuron_kernels/record/program.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

template <Target T>
class Replay {
 public:
  using Index = typename T::Index;
  using Cond = typename T::Cond;
  using Hbm = typename T::Hbm;
  using Tile = typename T::Tile;

  Replay(const Program& program, T& nc, std::span<const Hbm> tensors)
      : program_(program),
        nc_(nc),
        tensors_(tensors),
        tiles_(program.tiles.size()),
        arrays_(program.tiles.size()),
        indices_(program.loops.size()) {}

  /// Ops [first, last).
  void run(int first, int last) {
    for (int i = first; i < last; ++i) {
      const Op& op = nth(program_.ops, i);
      if (op.code == OpCode::loop) {
        i = loop(op.loop);
        continue;
      }
      try {
        execute(op);
      } catch (const TileError& error) {  // which names the line in this file
        throw TileError(text(place(op.where), name_of(op.code), ", replayed: ", error.what()));
      }
    }
  }

 private:
  /// Runs a loop, with its tail if it has one; returns the position of the end op.
  int loop(int l) {
    const Loop& first = nth(program_.loops, l);
    if (first.kind == LoopKind::range) {
      for (auto i : nc_.range(index(first.begin), index(first.end))) body(l, i);
      return first.last;
    }
    // A loop over the full spans is followed by the loop over the rest, if there is one.
    const bool pair = !first.tail && first.n % first.step != 0;
    const int tail = first.tail ? l : pair ? nth(program_.ops, first.last + 1).loop : none;
    const auto span = [&](const auto& s) { body(s.size == first.step ? l : tail, s.index); };
    if (first.kind == LoopKind::tiles) {
      for (auto s : nc_.tiles(first.n, first.step)) span(s);
    } else {
      for (auto s : nc_.programs(first.n, first.step)) span(s);
    }
    return pair ? nth(program_.loops, tail).last : first.last;
  }

  void body(int l, const Index& i) {
    nth(indices_, l).emplace(i);
    run(nth(program_.loops, l).first, nth(program_.loops, l).last);
  }

  Index constant(std::int64_t value) {
    constexpr int base = 1 << 30;  // nc.index takes an int
    if (value >= -base && value <= base) return nc_.index(static_cast<int>(value));
    return constant(value / base) * base + static_cast<int>(value % base);
  }

  Index index(ExprId id) {
    const Expr& e = nth(program_.exprs, id);
    if (e.op == ExprOp::constant) return constant(e.value);
    if (e.op == ExprOp::loop) return *nth(indices_, e.value);
    const Index a = index(e.a);
    if (e.op == ExprOp::divide) return a / static_cast<int>(nth(program_.exprs, e.b).value);
    if (e.op == ExprOp::modulo) return a % static_cast<int>(nth(program_.exprs, e.b).value);
    const Index b = index(e.b);
    using std::max, std::min;  // for a target whose Index is a plain integer
    switch (e.op) {
      case ExprOp::add:
        return a + b;
      case ExprOp::subtract:
        return a - b;
      case ExprOp::multiply:
        return a * b;
      case ExprOp::min:
        return min(a, b);
      default:
        return max(a, b);
    }
  }

  std::string place(const SourceLine& w) const {
    const std::string s = place_of(program_, w);
    return s.empty() ? s : s + " ";
  }

  Cond condition(const Condition& c) {
    if (c.op == Compare::never) return false;
    if (c.op == Compare::always) return true;
    return record::compare(c.op, index(c.a), index(c.b));
  }

  bool is_zero(ExprId id) const { return nth(program_.exprs, id) == Expr{}; }

  Hbm hbm(const HbmSlice& h) {
    const Tensor& tensor = nth(program_.tensors, h.tensor);
    const int fixed = tensor.rank - 2;
    Hbm part = nth(tensors_, h.tensor);
    for (int d = 0; d < fixed; ++d) part = part.at(index(nth(h.begin, d)));
    const ExprId row = nth(h.begin, fixed), col = nth(h.begin, fixed + 1);
    if (!is_zero(row) || h.size[0] != nth(tensor.shape, fixed))
      part = part.rows(index(row), static_cast<int>(h.size[0]));
    if (!is_zero(col) || h.size[1] != nth(tensor.shape, fixed + 1))
      part = part.cols(index(col), static_cast<int>(h.size[1]));
    return h.transposed ? part.transposed() : part;
  }

  Tile tile(const TileSlice& t) {
    Tile part = t.element == none ? nth(tiles_, t.tile)
                                  : static_cast<Tile>((*nth(arrays_, t.tile))[index(t.element)]);
    if (t.partition != none && (!is_zero(t.partition) || t.p != part.p()))
      part = part.partitions(index(t.partition), t.p);
    if (t.step != 1) return part.free(index(t.free), (t.f - 1) * t.step + 1).every(t.step, nc_.index(0));
    if (t.free != none && (!is_zero(t.free) || t.f != part.f())) part = part.free(index(t.free), t.f);
    return part;
  }

  /// A scalar operand with the tile to which it refers.
  struct HeldScalar {
    Tile tile{};
    float value = 0.f;
    Operand<Tile> operand() const { return tile ? Operand<Tile>(tile) : Operand<Tile>(value); }
  };
  HeldScalar scalar(const Scalar& k) {
    if (k.tile.given()) return {.tile = tile(k.tile)};
    return {.value = k.value};
  }

  void execute(const Op& op) {
    const int made = op.dst.tile;
    const LoadOptions options{.reads = op.reads, .dge = op.dge};
    const EngineOptions on{.engine = op.engine};
    const auto name = [&] { return nth(program_.tiles, made).name.c_str(); };
    const auto array = [&]() -> auto& { return *nth(arrays_, made); };
    switch (op.code) {
      case OpCode::loop:
      case OpCode::end:
        return;
      case OpCode::sbuf:
        nth(tiles_, made) = nc_.sbuf(name(), op.dst.p, op.dst.f, nth(program_.tiles, made).dtype);
        return;
      case OpCode::psum:
        nth(tiles_, made) = nc_.psum(name(), op.dst.p, op.dst.f, nth(program_.tiles, made).dtype);
        return;
      case OpCode::sbuf_array: {
        const TileDecl& d = nth(program_.tiles, made);
        nth(arrays_, made).emplace(nc_.sbuf_array(name(), d.count, d.p, d.f, d.dtype));
        return;
      }
      case OpCode::psum_array: {
        const TileDecl& d = nth(program_.tiles, made);
        nth(arrays_, made).emplace(nc_.psum_array(name(), d.count, d.p, d.f, d.dtype));
        return;
      }
      case OpCode::input_array: {
        const TileDecl& d = nth(program_.tiles, made);
        nth(arrays_, made).emplace(nc_.input_array(name(), d.count, d.p, d.f, d.dtype));
        return;
      }
      case OpCode::staged:
        nth(tiles_, made) = nc_.staged(name(), hbm(op.hbm));
        return;
      case OpCode::load:
        nth(tiles_, made) = nc_.load(name(), hbm(op.hbm), options);
        return;
      case OpCode::load_transposed:
        nth(tiles_, made) = nc_.load_transposed(name(), hbm(op.hbm), options);
        return;
      case OpCode::load_broadcast:
        nth(tiles_, made) = nc_.load_broadcast(name(), hbm(op.hbm), op.dst.p);
        return;
      case OpCode::load_element:
        nc_.load(array(), index(op.dst.element), hbm(op.hbm), options);
        return;
      case OpCode::load_transposed_element:
        nc_.load_transposed(array(), index(op.dst.element), hbm(op.hbm), options);
        return;
      case OpCode::store:
        nc_.store(hbm(op.hbm), tile(op.a), {.dge = op.dge});
        return;
      case OpCode::store_transposed:
        nc_.store_transposed(hbm(op.hbm), tile(op.a), {.dge = op.dge});
        return;
      case OpCode::matmul:
        nc_.matmul(tile(op.dst), tile(op.a), tile(op.b),
                   MatmulFlags<Cond>{.accumulate = condition(op.accumulate)});
        return;
      case OpCode::transposed:
        nth(tiles_, made) = nc_.transposed(tile(op.a));
        return;
      case OpCode::transpose:
        nc_.transpose(tile(op.dst), tile(op.a), on);
        return;
      case OpCode::fill:
        nc_.fill(tile(op.dst), op.k0.value, on);
        return;
      case OpCode::copy:
        nc_.copy(tile(op.dst), tile(op.a), on);
        return;
      case OpCode::reduce:
        nc_.reduce(tile(op.dst), op.op0, tile(op.a), {.blocks = op.blocks});
        return;
      case OpCode::tensor_tensor:
        nc_.tensor_tensor(tile(op.dst), tile(op.a), op.op0, tile(op.b), on);
        return;
      case OpCode::tensor_scalar:
        nc_.tensor_scalar(tile(op.dst), tile(op.a), op.op0, scalar(op.k0).operand(), on);
        return;
      case OpCode::tensor_scalar_pair:
        nc_.tensor_scalar(tile(op.dst), tile(op.a), op.op0, scalar(op.k0).operand(), op.op1,
                          scalar(op.k1).operand(), on);
        return;
      case OpCode::tensor_scalar_reduce:
        nc_.tensor_scalar_reduce(tile(op.dst), tile(op.a), op.op0, scalar(op.k0).operand(), op.op1,
                                 tile(op.column));
        return;
      case OpCode::scalar_tensor_tensor:
        nc_.scalar_tensor_tensor(tile(op.dst), tile(op.a), op.op0, scalar(op.k0).operand(), op.op1,
                                 tile(op.b));
        return;
      case OpCode::activate: {
        const HeldScalar scale = scalar(op.k0), bias = scalar(op.k1);
        ActivateOptions<Tile> o{.scale = scale.operand(), .bias = bias.operand()};
        if (op.column.given()) o.row_sum = tile(op.column);
        o.interleave = op.blocks;
        nc_.activate(tile(op.dst), op.act, tile(op.a), o);
        return;
      }
      case OpCode::reciprocal:
        nc_.reciprocal(tile(op.dst), tile(op.a));
        return;
      case OpCode::scan:
        nc_.scan(tile(op.dst), tile(op.a), op.op0, scalar(op.k0).operand(), op.op1, tile(op.b));
        return;
      case OpCode::norm_stats:
        nc_.norm_stats(tile(op.dst), tile(op.a));
        return;
      case OpCode::causal_mask:
        nth(tiles_, made) = nc_.causal_mask(tile(op.a), index(op.query), index(op.key), op.k0.value);
        return;
      case OpCode::causal_select:
        nc_.causal_select(tile(op.dst), tile(op.a), index(op.query), index(op.key), op.k0.value,
                          {.keys = op.keys});
        return;
    }
  }

  const Program& program_;
  T& nc_;
  std::span<const Hbm> tensors_;
  std::vector<Tile> tiles_;  // per tile of the program; the last one made
  std::vector<std::optional<typename T::TileArray>> arrays_;
  std::vector<std::optional<Index>> indices_;  // per loop
};

}  // namespace record

/// Re-issues the ops of `program` on nc.
/// needs: tensors[i] of the dtype and shape of program.tensors[i]
/// errors: ShapeError when they are not; whatever the target throws
template <Target T>
void replay(const Program& program, T& nc, std::span<const typename T::Hbm> tensors) {
  if (tensors.size() != program.tensors.size()) {
    shape_error("replay", "tensors",
                text(tensors.size(), " given; the program has ", program.tensors.size()));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const record::Tensor& want = program.tensors[i];
    bool same = static_cast<bool>(tensors[i]);
    for (int d = 0; same && d < want.rank; ++d) same = tensors[i].dim(d) == record::nth(want.shape, d);
    if (!same || tensors[i].dtype() != want.dtype) {
      Layout layout;
      layout.rank = want.rank;
      layout.shape = want.shape;
      shape_error("replay", want.name,
                  text("is not the ", name_of(want.dtype), " ", shape_text(layout),
                       " that the program was recorded with"));
    }
  }
  record::Replay<T>(program, nc, tensors).run(0, static_cast<int>(program.ops.size()));
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
