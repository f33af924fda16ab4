// Appender: what Recorder's ops are made of: checks of operands, new ops and tiles in the Program.
//
// Not the ops themselves: these are in recorder.hpp.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "neuron_kernels/record/handles.hpp"
#include "neuron_kernels/record/loops.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class Appender : public Loops {
 protected:
  explicit Appender(const Limits& limits) : Loops(limits) {}

  void check(const char* op, const Tile& tile, const Where& where) const {
    tile.usable(op, where);
    own(op, tile.state(), where);
  }
  void check(const char* op, const Hbm& hbm, const Where& where) const {
    hbm.matrix(op, where);
    own(op, hbm.state(), where);
  }
  void check(const char* op, const Tile& a, const Tile& b, const Where& where) const {
    check(op, a, where);
    check(op, b, where);
  }
  void check(const char* op, const Tile& a, const Tile& b, const Tile& c, const Where& where) const {
    check(op, a, b, where);
    check(op, c, where);
  }
  void check(const char* op, const Hbm& hbm, const Tile& tile, const Where& where) const {
    check(op, hbm, where);
    check(op, tile, where);
  }
  void check(const char* op, const Operand<Tile>& k, const Tile& src, const Where& where) const {
    if (!k.is_tile()) return;
    check(op, k.tile(), where);
    tile_rules::column_of(k.tile(), src, op, where);
  }
  void own(const char* op, const State* state, const Where& where) const {
    if (state != &state_)
      tile_error(where, op, "a tile or tensor of another Recorder; record one kernel with one Recorder");
  }

  Scalar use(const Operand<Tile>& k) const {
    return k.is_tile() ? Scalar{0.f, k.tile().use()} : Scalar{k.value()};
  }

  Op& last() { return state_.program.ops.back(); }
  Op& add(OpCode code, const Where& where) {
    Op op;
    op.code = code;
    op.where = line(where);
    state_.program.ops.push_back(op);
    return last();
  }
  Op& add(OpCode code, const Where& where, const Tile& dst) {
    Op& op = add(code, where);
    op.dst = dst.use();
    return op;
  }
  Op& add(OpCode code, const Where& where, const Tile& dst, const Tile& a) {
    Op& op = add(code, where, dst);
    op.a = a.use();
    return op;
  }
  Op& add(OpCode code, const Where& where, const Tile& dst, const Tile& a, const Tile& b) {
    Op& op = add(code, where, dst, a);
    op.b = b.use();
    return op;
  }

  int declare(OpCode code, TileDecl decl, const Where& where) {
    tile_rules::fresh(decl.name.c_str(), decl.p, decl.f, where);
    decl.where = line(where);
    state_.program.tiles.push_back(std::move(decl));
    state_.tile_alive.push_back(true);
    state_.elements.emplace_back();
    TileSlice dst;
    dst.tile = static_cast<int>(state_.program.tiles.size()) - 1;
    dst.p = state_.program.tiles.back().p;
    dst.f = state_.program.tiles.back().f;
    add(code, where).dst = dst;
    return dst.tile;
  }
  Tile make(OpCode code, TileDecl decl, const Where& where) {
    return {state_, declare(code, std::move(decl), where)};
  }
  TileArray make_array(OpCode code, TileDecl decl, const Where& where) {
    if (decl.count < 0)
      tile_error(where, name_of(code), text(decl.name, " of ", decl.count, " tiles; allowed are 0 or more"));
    const std::int64_t count = decl.count;
    const bool input = decl.read_only;
    const int tile = declare(code, std::move(decl), where);
    if (input) state_.elements.back().resize(static_cast<std::size_t>(count));
    return {state_, tile};
  }

  Tile loaded(OpCode code, const char* name, const Hbm& src, int p, int f, LoadOptions options,
              const Where& where) {
    const Tile dst =
        make(code, {.name = name, .p = p, .f = f, .dtype = src.dtype(), .read_only = true}, where);
    read(src, options);
    return dst;
  }
  void read(const Hbm& src, LoadOptions options) {
    last().hbm = src.use();
    last().reads = options.reads;
    last().dge = options.dge;
    nth(state_.program.tensors, last().hbm.tensor).read = true;
  }
  void stored(OpCode code, const Hbm& dst, const Tile& src, StoreOptions options, const Where& where) {
    add(code, where).a = src.use();
    last().dge = options.dge;
    last().hbm = dst.use();
    nth(state_.program.tensors, last().hbm.tensor).written = true;
  }

  void fill_element(OpCode code, const TileArray& array, const Index& i, const Hbm& src, int p, int f,
                    LoadOptions options, const Where& where) {
    const char* name = name_of(code);
    if (array.state_ == nullptr) tile_error(where, name, "a tile array that is not given");
    own(name, array.state_, where);
    const TileDecl& slot = nth(state_.program.tiles, array.tile_);
    if (!nth(state_.tile_alive, array.tile_)) {
      tile_error(
          where, name,
          text("array ", slot.name, " belongs to a loop iteration that has ended; make it outside the loop"));
    }
    if (!slot.read_only)
      tile_error(where, name,
                 text("into array ", slot.name, " made by sbuf_array; load into one made by input_array"));
    inside(name, text("the tiles of array ", slot.name), i, 1, slot.count, where);
    tile_rules::fits(name, {slot.name.c_str(), slot.p, slot.f, slot.dtype, slot.space, true}, p, f,
                     src.dtype(), where);
    const Bounds b = i.bounds();
    std::vector<State::Shape>& shapes = nth(state_.elements, array.tile_);
    const std::int64_t first = std::max<std::int64_t>(b.lo, 0),
                       past = std::min<std::int64_t>(b.hi + 1, slot.count);
    for (std::int64_t k = first; k < past; k += b.step != 0 ? b.step : 1) nth(shapes, k) = {p, f};
    TileSlice dst;
    dst.tile = array.tile_;
    dst.element = i.use(state_.pool, state_.program.exprs);
    dst.p = p;
    dst.f = f;
    add(code, where).dst = dst;
    read(src, options);
  }
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
