// Program: what a kernel asks of the core, as plain data.
// Recorder makes it; replay, print and all analyses read it.
//
// Ops stand in one list; a loop is the ops between `loop` and its `end`. Index expressions stand in one pool
// and are named by their position, children first.
// Nothing points outside; two Programs are equal if they do the same.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neuron_kernels/core/target.hpp"
#include "neuron_kernels/core/view.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

using ExprId = int;  // position in Program::exprs; `none` where there is no expression
inline constexpr int none = -1;

enum class ExprOp : std::uint8_t { constant, loop, add, subtract, multiply, divide, modulo, min, max };

/// One node of an index expression. divide and modulo round down and have a positive constant on the right.
struct Expr {
  ExprOp op = ExprOp::constant;
  std::int64_t value = 0;  // the constant, or the position in Program::loops of the loop whose index this is
  ExprId a = none, b = none;
  bool operator==(const Expr&) const = default;
};

enum class Compare : std::uint8_t {
  never,
  always,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal
};

/// a op b; never and always have no operands.
struct Condition {
  Compare op = Compare::never;
  ExprId a = none, b = none;
  bool operator==(const Condition&) const = default;
};

/// File and line in a kernel.
/// Says nothing about what the Program does: all are equal, so that a replay equals its source.
struct SourceLine {
  int file = none;  // position in Program::files
  int line = 0;
  bool operator==(const SourceLine&) const { return true; }
};

/// Where a tile is kept: chosen by the allocator, none before.
/// Says nothing about what the Program does: all are equal.
struct Placement {
  int buffers =
      0;  // tiles that there is room for, so that iterations overlap; 0: not placed. The n-th time that the
          // tile, or array of `count` tiles, is made, element e takes buffer (n count + e) % buffers
  int offset = 0;  // of the first: bytes into each partition of SBUF or PSUM
  int stride = 0;  // bytes from one to the next
  bool operator==(const Placement&) const { return true; }
};

/// An argument of the kernel in device memory.
struct Tensor {
  std::string name{};
  DType dtype = DType::f32;
  int rank = 0;
  std::array<std::int64_t, max_rank> shape{};
  bool read = false, written = false;  // by some op
  bool operator==(const Tensor&) const = default;
};

/// A tile, or an array of tiles of at most one shape;
/// lives from its op to the end of the loop body that holds the op.
struct TileDecl {
  std::string name{};  // as in the kernel; several tiles may have one name
  int p = 0, f = 0;
  DType dtype = DType::f32;
  Space space = Space::sbuf;
  bool read_only = false;
  bool is_array = false;
  std::int64_t count = 1;
  SourceLine where{};
  Placement placed{};
  bool operator==(const TileDecl&) const = default;
};

/// Rows [partition, partition + p) and the f columns free, free + step, ... of a tile
/// or of element `element` of an array.
struct TileSlice {
  int tile = none;  // position in Program::tiles; none = not given
  ExprId element = none, partition = none, free = none;
  int p = 0, f = 0;
  int step = 1;
  bool given() const { return tile != none; }
  bool operator==(const TileSlice&) const = default;
};

/// A matrix [rows, cols] of a tensor. The leading dimensions are fixed at begin[d]; the last two start at
/// begin[d] and have size[0] and size[1] elements; `transposed` exchanges these after that.
struct HbmSlice {
  int tensor = none;  // position in Program::tensors
  std::array<ExprId, max_rank> begin{none, none, none, none};
  std::array<std::int64_t, 2> size{};
  bool transposed = false;
  bool operator==(const HbmSlice&) const = default;
};

/// A number, or a column with a number for each partition.
struct Scalar {
  float value = 0.f;
  TileSlice tile{};
  bool operator==(const Scalar& other) const {  // by bits: a NaN equals itself
    return std::bit_cast<std::uint32_t>(value) == std::bit_cast<std::uint32_t>(other.value) &&
           tile == other.tile;
  }
};

enum class LoopKind : std::uint8_t { range, tiles, programs };

/// for (index = begin; index < end; ++index).
/// tiles and programs cover [0, n) in spans: one Loop for the spans of `step` elements,
/// then one that runs once for the n % step left (`tail`); a part that would be empty is not there.
struct Loop {
  LoopKind kind = LoopKind::range;
  ExprId begin = none, end = none;
  std::int64_t n = 0, step = 0;
  bool tail = false;
  int first = 0, last = 0;  // the body is ops [first, last); ops[first - 1] is its loop op, ops[last] its end
  SourceLine where{};
  bool operator==(const Loop&) const = default;
};

/// One per op of Target; `loop` and `end` enclose a loop's body.
/// The *_element ops fill an element of an input_array.
enum class OpCode : std::uint8_t {
  loop,
  end,
  sbuf,
  psum,
  sbuf_array,
  psum_array,
  input_array,
  staged,
  load,
  load_transposed,
  load_broadcast,
  load_element,
  load_transposed_element,
  store,
  store_transposed,
  matmul,
  transposed,
  transpose,
  fill,
  copy,
  reduce,
  tensor_tensor,
  tensor_scalar,
  tensor_scalar_pair,
  tensor_scalar_reduce,
  scalar_tensor_tensor,
  activate,
  reciprocal,
  scan,
  norm_stats,
  causal_mask,
  causal_select
};

constexpr const char* name_of(OpCode code) {
  constexpr const char* names[] = {"loop",
                                   "end",
                                   "sbuf",
                                   "psum",
                                   "sbuf_array",
                                   "psum_array",
                                   "input_array",
                                   "staged",
                                   "load",
                                   "load_transposed",
                                   "load_broadcast",
                                   "load",
                                   "load_transposed",
                                   "store",
                                   "store_transposed",
                                   "matmul",
                                   "transposed",
                                   "transpose",
                                   "fill",
                                   "copy",
                                   "reduce",
                                   "tensor_tensor",
                                   "tensor_scalar",
                                   "tensor_scalar",
                                   "tensor_scalar_reduce",
                                   "scalar_tensor_tensor",
                                   "activate",
                                   "reciprocal",
                                   "scan",
                                   "norm_stats",
                                   "causal_mask",
                                   "causal_select"};
  return names[static_cast<int>(code)];
}

/// One op. Each code uses the fields that its Target op has: dst and sources in the order of its parameters.
struct Op {
  OpCode code = OpCode::end;
  int loop = none;            // loop, end: position in Program::loops
  TileSlice dst{}, a{}, b{};  // matmul: a stationary, b moving; store: a;
                              // tile-making ops: dst is the new tile
  HbmSlice hbm{};             // load*, store*, staged
  Alu op0 = Alu::add, op1 = Alu::add;
  Act act = Act::identity;
  Scalar k0{}, k1{};                // tensor_scalar, scalar_tensor_tensor; activate: scale, bias;
                                    // fill, causal_*: value; scan: initial
  TileSlice column{};               // activate: row_sum; tensor_scalar_reduce: what it reduces to
  Condition accumulate{};           // matmul
  ExprId query = none, key = none;  // causal_*
  KeyAxis keys = KeyAxis::free;     // causal_select
  int blocks = 1;                   // reduce; activate: interleave
  int reads = 1;                    // load*
  Dge dge = Dge::automatic;         // load*, store*
  Engine engine = Engine::automatic;
  SourceLine where{};
  bool operator==(const Op&) const = default;
};

/// v[i] with a signed position.
template <class Vector>
auto& nth(Vector& v, std::int64_t i) {
  return v[static_cast<std::size_t>(i)];
}

/// a / b rounded down, b > 0.
constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace record

struct Program {
  std::string chip;  // Limits::chip of the target it was recorded for
  std::vector<std::string> files;
  std::vector<record::Tensor> tensors;
  std::vector<record::TileDecl> tiles;
  std::vector<record::Loop> loops;
  std::vector<record::Expr> exprs;
  std::vector<record::Op> ops;

  /// Equal if they do the same; source lines do not count.
  bool operator==(const Program& other) const {
    return chip == other.chip && tensors == other.tensors && tiles == other.tiles && loops == other.loops &&
           exprs == other.exprs && ops == other.ops;
  }
};

namespace record {

/// The operator of an expression, neither constant nor loop, applied to the values of its operands.
constexpr std::int64_t apply(ExprOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case ExprOp::add:
      return a + b;
    case ExprOp::subtract:
      return a - b;
    case ExprOp::multiply:
      return a * b;
    case ExprOp::divide:
      return floor_divide(a, b);
    case ExprOp::modulo:
      return a - b * floor_divide(a, b);
    case ExprOp::min:
      return a < b ? a : b;
    default:
      return a > b ? a : b;
  }
}

/// "flash_attention.hpp:31", or "" where the line is not known.
inline std::string place_of(const Program& program, const SourceLine& where) {
  if (where.file == none) return "";
  const std::string& file = nth(program.files, where.file);
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(where.line);
}

}  // namespace record

/// Value of an expression when loop i has index loop_index[i].
inline std::int64_t evaluate(const Program& program, record::ExprId id,
                             std::span<const std::int64_t> loop_index) {
  using record::ExprOp;
  const record::Expr& e = record::nth(program.exprs, id);
  if (e.op == ExprOp::constant) return e.value;
  if (e.op == ExprOp::loop) return record::nth(loop_index, e.value);
  return record::apply(e.op, evaluate(program, e.a, loop_index), evaluate(program, e.b, loop_index));
}

namespace record {

/// a op b of two numbers, or a Target's Cond of two Index values, for an op that compares.
template <class Value>
auto compare(Compare op, const Value& a, const Value& b) {
  switch (op) {
    case Compare::less:
      return a < b;
    case Compare::less_equal:
      return a <= b;
    case Compare::greater:
      return a > b;
    case Compare::greater_equal:
      return a >= b;
    case Compare::equal:
      return a == b;
    default:
      return a != b;
  }
}

}  // namespace record

inline bool evaluate(const Program& program, const record::Condition& c,
                     std::span<const std::int64_t> loop_index) {
  using record::Compare;
  if (c.op == Compare::never || c.op == Compare::always) return c.op == Compare::always;
  return record::compare(c.op, evaluate(program, c.a, loop_index), evaluate(program, c.b, loop_index));
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
