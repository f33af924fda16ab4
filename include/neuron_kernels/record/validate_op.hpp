// check_op(program, op): the rules of core/tile_rules.hpp for an op that is already in a Program.
//
// Recorder checks them of each op as it comes; this is for Programs that it did not make.
#pragma once

#include "neuron_kernels/core/tile_rules.hpp"
#include "neuron_kernels/record/fields.hpp"
#include "neuron_kernels/record/program_error.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class OpRules {
 public:
  OpRules(const Program& program, const Op& op)
      : program_(program), op_(op), where_(Where::current(file(program, op.where), op.where.line)) {}

  /// needs: every position in op is in range
  void check() const {
    const char* name = name_of(op_.code);
    const auto fields = fields_of(op_.code);
    if (fields & field_hbm) transfer(name);
    if (fields & field_k0) scalar(name, op_.k0);
    if (fields & field_k1) scalar(name, op_.k1);
    if (fields & field_column && op_.column.given()) column(name);
    switch (op_.code) {
      case OpCode::matmul:
        return tile_rules::matmul(info(op_.dst), info(op_.a), info(op_.b), where_);
      case OpCode::transposed:
        tile_rules::transposed(info(op_.a), where_);
        return same(op_.dst, op_.a.f, op_.a.p, info(op_.a).dtype);
      case OpCode::transpose:
        return tile_rules::transpose(info(op_.dst), info(op_.a), where_);
      case OpCode::fill:
        return tile_rules::writable(info(op_.dst), name, where_);
      case OpCode::reduce:
        return tile_rules::reduce(info(op_.dst), op_.op0, info(op_.a), {.blocks = op_.blocks}, where_);
      case OpCode::norm_stats:
        return tile_rules::norm_stats(info(op_.dst), info(op_.a), where_);
      case OpCode::causal_mask:
        tile_rules::writable(info(op_.a), name, where_);
        return same(op_.dst, op_.a.p, op_.a.f, info(op_.a).dtype);
      case OpCode::tensor_scalar_reduce:
        tile_rules::reducing(name, op_.op1, where_);
        break;
      case OpCode::activate:
        tile_rules::interleave(info(op_.a), op_.blocks, op_.column.given(), where_);
        break;
      default:
        break;
    }
    if (!(fields & field_dst) || !(fields & field_a)) return;
    tile_rules::elementwise(name, info(op_.dst), info(op_.a), where_);
    if (fields & field_b) tile_rules::same_shape(info(op_.dst), info(op_.b), name, where_);
  }

 private:
  static const char* file(const Program& program, const SourceLine& line) {
    return line.file == none ? "program" : nth(program.files, line.file).c_str();
  }
  TileInfo info(const TileSlice& s) const {
    const TileDecl& d = nth(program_.tiles, s.tile);
    return {d.name.c_str(), s.p, s.f, d.dtype, d.space, d.read_only};
  }
  void scalar(const char* name, const Scalar& k) const {
    if (k.tile.given()) tile_rules::column_of(info(k.tile), info(op_.a), name, where_);
  }
  void column(const char* name) const {
    tile_rules::writable(info(op_.column), name, where_);
    tile_rules::column_of(info(op_.column), info(op_.a), name, where_);
  }
  /// The tile that the op makes is [p, f] of dtype.
  void same(const TileSlice& made, int p, int f, DType dtype) const {
    const TileInfo t = info(made);
    if (t.p != p || t.f != f || t.dtype != dtype) {
      tile_error(where_, name_of(op_.code),
                 text("makes ", describe(t), "; it must be [", p, ", ", f, "] ", name_of(dtype)));
    }
  }

  void transfer(const char* name) const {
    const DType dtype = nth(program_.tensors, op_.hbm.tensor).dtype;
    int rows = static_cast<int>(op_.hbm.size[0]), cols = static_cast<int>(op_.hbm.size[1]);
    if (op_.hbm.transposed) std::swap(rows, cols);
    switch (op_.code) {
      case OpCode::store:
        return tile_rules::transfer(name, info(op_.a), rows, cols, where_);
      case OpCode::store_transposed:
        return tile_rules::transfer(name, info(op_.a), cols, rows, where_);
      case OpCode::load_transposed:
        return same(op_.dst, cols, rows, dtype);
      case OpCode::load_broadcast:
        if (rows != 1) tile_error(where_, name, text("of ", rows, " rows; allowed is one"));
        return same(op_.dst, op_.dst.p, cols, dtype);
      case OpCode::load_element:
      case OpCode::load_transposed_element:
        return element(name, rows, cols, dtype);
      default:
        return same(op_.dst, rows, cols, dtype);
    }
  }
  void element(const char* name, int rows, int cols, DType dtype) const {
    if (op_.code == OpCode::load_transposed_element) std::swap(rows, cols);
    const TileDecl& d = nth(program_.tiles, op_.dst.tile);
    if (!d.is_array || !d.read_only)
      tile_error(where_, name, text("into ", d.name, "; load into an array made by input_array"));
    tile_rules::fits(name, {d.name.c_str(), d.p, d.f, d.dtype, d.space, true}, rows, cols, dtype, where_);
    tile_rules::transfer(name, info(op_.dst), rows, cols, where_);
  }

  const Program& program_;
  const Op& op_;
  Where where_;
};

inline void check_op(const Program& program, const Op& op) { OpRules(program, op).check(); }

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
