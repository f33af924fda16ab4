// Recorder: the Target that writes a kernel down as a Program instead of executing it.
//
// Checked here: shapes, memories, dtypes, lifetimes and bounds of views.
// A chip's limits are not: they are checked over the whole Program.
// Recording takes a microsecond or so per op, whatever the extents of the loops.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "neuron_kernels/core/target.hpp"
#include "neuron_kernels/core/tile_rules.hpp"
#include "neuron_kernels/record/appender.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// Usage:
///     Recorder nc(trn2);
///     kernel(nc, {.q = nc.hbm("q", f32, {1024, 64}), ...});
///     print(nc.program(), std::cout);
class Recorder : public record::Appender {
 public:
  using Index = record::Index;
  using Cond = record::Cond;
  using Hbm = record::Hbm;
  using Tile = record::Tile;
  using TileArray = record::TileArray;

  /// limits: what nc.limits() tells the kernel; kept as a copy.
  explicit Recorder(const Limits& limits) : Appender(limits) {}

  /// What has been recorded; complete once the kernel has returned.
  const Program& program() const { return state_.program; }

  /// A tensor argument of the kernel.
  /// Errors: ShapeError on a rank outside 1..4 or a negative size.
  Hbm hbm(std::string_view name, DType dtype, std::span<const std::int64_t> shape) {
    const Layout layout(shape);
    state_.program.tensors.push_back({std::string(name), dtype, layout.rank, layout.shape});
    return {state_, static_cast<int>(state_.program.tensors.size()) - 1};
  }
  Hbm hbm(std::string_view name, DType dtype, std::initializer_list<std::int64_t> shape) {
    return hbm(name, dtype, std::span(shape.begin(), shape.size()));
  }

  const Limits& limits() const { return state_.limits; }
  Index index(int n) const { return n; }

  // The ops, in the order of core/target.hpp.

  Tile sbuf(const char* name, int p, int f, DType dtype, const Where& where = Where::current()) {
    return make(OpCode::sbuf, {.name = name, .p = p, .f = f, .dtype = dtype}, where);
  }
  Tile psum(const char* name, int p, int f, DType dtype = DType::f32, const Where& where = Where::current()) {
    return make(OpCode::psum, {.name = name, .p = p, .f = f, .dtype = dtype, .space = Space::psum}, where);
  }
  TileArray sbuf_array(const char* name, std::int64_t n, int p, int f, DType dtype,
                       const Where& where = Where::current()) {
    return make_array(OpCode::sbuf_array,
                      {.name = name, .p = p, .f = f, .dtype = dtype, .is_array = true, .count = n}, where);
  }
  TileArray psum_array(const char* name, std::int64_t n, int p, int f, DType dtype = DType::f32,
                       const Where& where = Where::current()) {
    return make_array(
        OpCode::psum_array,
        {.name = name, .p = p, .f = f, .dtype = dtype, .space = Space::psum, .is_array = true, .count = n},
        where);
  }
  TileArray input_array(const char* name, std::int64_t n, int p, int f, DType dtype,
                        const Where& where = Where::current()) {
    return make_array(
        OpCode::input_array,
        {.name = name, .p = p, .f = f, .dtype = dtype, .read_only = true, .is_array = true, .count = n},
        where);
  }
  Tile staged(const char* name, const Hbm& hbm, const Where& where = Where::current()) {
    check("staged", hbm, where);
    const Tile dst =
        make(OpCode::staged,
             {.name = name, .p = hbm.matrix_rows(), .f = hbm.matrix_cols(), .dtype = hbm.dtype()}, where);
    last().hbm = hbm.use();
    return dst;
  }

  Tile load(const char* name, const Hbm& src, LoadOptions options = {},
            const Where& where = Where::current()) {
    check("load", src, where);
    return loaded(OpCode::load, name, src, src.matrix_rows(), src.matrix_cols(), options, where);
  }
  Tile load_transposed(const char* name, const Hbm& src, LoadOptions options = {},
                       const Where& where = Where::current()) {
    check("load_transposed", src, where);
    return loaded(OpCode::load_transposed, name, src, src.matrix_cols(), src.matrix_rows(), options, where);
  }
  Tile load_broadcast(const char* name, const Hbm& src, int p, const Where& where = Where::current()) {
    check("load_broadcast", src, where);
    const TileInfo row{name, 1, src.matrix_cols(), src.dtype(), Space::sbuf, true};
    tile_rules::transfer("load_broadcast", row, src.matrix_rows(), src.matrix_cols(), where);
    return loaded(OpCode::load_broadcast, name, src, p, src.matrix_cols(), {}, where);
  }
  void load(const TileArray& array, const Index& i, const Hbm& src, LoadOptions options = {},
            const Where& where = Where::current()) {
    check("load", src, where);
    fill_element(OpCode::load_element, array, i, src, src.matrix_rows(), src.matrix_cols(), options, where);
  }
  void load_transposed(const TileArray& array, const Index& i, const Hbm& src, LoadOptions options = {},
                       const Where& where = Where::current()) {
    check("load_transposed", src, where);
    fill_element(OpCode::load_transposed_element, array, i, src, src.matrix_cols(), src.matrix_rows(),
                 options, where);
  }
  void store(const Hbm& dst, const Tile& src, StoreOptions options = {},
             const Where& where = Where::current()) {
    check("store", dst, src, where);
    tile_rules::transfer("store", src, dst.matrix_rows(), dst.matrix_cols(), where);
    stored(OpCode::store, dst, src, options, where);
  }
  void store_transposed(const Hbm& dst, const Tile& src, StoreOptions options = {},
                        const Where& where = Where::current()) {
    check("store_transposed", dst, src, where);
    tile_rules::transfer("store_transposed", src, dst.matrix_cols(), dst.matrix_rows(), where);
    stored(OpCode::store_transposed, dst, src, options, where);
  }

  void matmul(const Tile& dst, const Tile& stationary, const Tile& moving,
              const MatmulFlags<Cond>& flags = {}, const Where& where = Where::current()) {
    check("matmul", dst, stationary, moving, where);
    tile_rules::matmul(dst, stationary, moving, where);
    if (!flags.accumulate.alive())
      tile_error(where, "matmul", "accumulate compares an Index of a loop that has ended");
    Op& op = add(OpCode::matmul, where, dst, stationary, moving);
    op.accumulate = flags.accumulate.use(state_.pool, state_.program.exprs);
  }
  Tile transposed(const Tile& src, const Where& where = Where::current()) {
    check("transposed", src, where);
    tile_rules::transposed(src, where);
    const TileInfo t = src;
    const Tile dst = make(
        OpCode::transposed,
        {.name = std::string(t.name) + "T", .p = t.f, .f = t.p, .dtype = t.dtype, .read_only = true}, where);
    last().a = src.use();
    return dst;
  }
  void transpose(const Tile& dst, const Tile& src, EngineOptions options = {},
                 const Where& where = Where::current()) {
    check("transpose", dst, src, where);
    tile_rules::transpose(dst, src, where);
    add(OpCode::transpose, where, dst, src).engine = options.engine;
  }
  void fill(const Tile& dst, float value, EngineOptions options = {}, const Where& where = Where::current()) {
    check("fill", dst, where);
    tile_rules::writable(dst, "fill", where);
    Op& op = add(OpCode::fill, where, dst);
    op.k0.value = value;
    op.engine = options.engine;
  }
  void copy(const Tile& dst, const Tile& src, EngineOptions options = {},
            const Where& where = Where::current()) {
    check("copy", dst, src, where);
    tile_rules::elementwise("copy", dst, src, where);
    add(OpCode::copy, where, dst, src).engine = options.engine;
  }
  void reduce(const Tile& dst, Alu op0, const Tile& src, ReduceOptions options = {},
              const Where& where = Where::current()) {
    check("reduce", dst, src, where);
    tile_rules::reduce(dst, op0, src, options, where);
    Op& op = add(OpCode::reduce, where, dst, src);
    op.op0 = op0;
    op.blocks = options.blocks;
  }
  void tensor_tensor(const Tile& dst, const Tile& a, Alu op0, const Tile& b, EngineOptions options = {},
                     const Where& where = Where::current()) {
    check("tensor_tensor", dst, a, b, where);
    tile_rules::elementwise("tensor_tensor", dst, a, b, where);
    Op& op = add(OpCode::tensor_tensor, where, dst, a, b);
    op.op0 = op0;
    op.engine = options.engine;
  }
  void tensor_scalar(const Tile& dst, const Tile& a, Alu op0, const Operand<Tile>& k0,
                     EngineOptions options = {}, const Where& where = Where::current()) {
    check("tensor_scalar", dst, a, where);
    tile_rules::elementwise("tensor_scalar", dst, a, where);
    check("tensor_scalar", k0, a, where);
    Op& op = add(OpCode::tensor_scalar, where, dst, a);
    op.op0 = op0;
    op.k0 = use(k0);
    op.engine = options.engine;
  }
  void tensor_scalar(const Tile& dst, const Tile& a, Alu op0, const Operand<Tile>& k0, Alu op1,
                     const Operand<Tile>& k1, EngineOptions options = {},
                     const Where& where = Where::current()) {
    check("tensor_scalar", dst, a, where);
    tile_rules::elementwise("tensor_scalar", dst, a, where);
    check("tensor_scalar", k0, a, where);
    check("tensor_scalar", k1, a, where);
    Op& op = add(OpCode::tensor_scalar_pair, where, dst, a);
    op.op0 = op0;
    op.k0 = use(k0);
    op.op1 = op1;
    op.k1 = use(k1);
    op.engine = options.engine;
  }
  void tensor_scalar_reduce(const Tile& dst, const Tile& a, Alu op0, const Operand<Tile>& k0, Alu op1,
                            const Tile& column, const Where& where = Where::current()) {
    check("tensor_scalar_reduce", dst, a, column, where);
    tile_rules::elementwise("tensor_scalar_reduce", dst, a, where);
    check("tensor_scalar_reduce", k0, a, where);
    tile_rules::writable(column, "tensor_scalar_reduce", where);
    tile_rules::column_of(column, a, "tensor_scalar_reduce", where);
    tile_rules::reducing("tensor_scalar_reduce", op1, where);
    Op& op = add(OpCode::tensor_scalar_reduce, where, dst, a);
    op.op0 = op0;
    op.k0 = use(k0);
    op.op1 = op1;
    op.column = column.use();
  }
  void scalar_tensor_tensor(const Tile& dst, const Tile& a, Alu op0, const Operand<Tile>& k, Alu op1,
                            const Tile& b, const Where& where = Where::current()) {
    check("scalar_tensor_tensor", dst, a, b, where);
    tile_rules::elementwise("scalar_tensor_tensor", dst, a, b, where);
    check("scalar_tensor_tensor", k, a, where);
    Op& op = add(OpCode::scalar_tensor_tensor, where, dst, a, b);
    op.op0 = op0;
    op.k0 = use(k);
    op.op1 = op1;
  }
  void activate(const Tile& dst, Act f, const Tile& src, const ActivateOptions<Tile>& options = {},
                const Where& where = Where::current()) {
    check("activate", dst, src, where);
    tile_rules::elementwise("activate", dst, src, where);
    check("activate", options.scale, src, where);
    check("activate", options.bias, src, where);
    tile_rules::interleave(src, options.interleave, static_cast<bool>(options.row_sum), where);
    if (options.row_sum) {
      check("activate", options.row_sum, where);
      tile_rules::writable(options.row_sum, "activate", where);
      tile_rules::column_of(options.row_sum, src, "activate", where);
    }
    Op& op = add(OpCode::activate, where, dst, src);
    op.act = f;
    op.k0 = use(options.scale);
    op.k1 = use(options.bias);
    if (options.row_sum) op.column = options.row_sum.use();
    op.blocks = options.interleave;
  }
  void reciprocal(const Tile& dst, const Tile& src, const Where& where = Where::current()) {
    check("reciprocal", dst, src, where);
    tile_rules::elementwise("reciprocal", dst, src, where);
    add(OpCode::reciprocal, where, dst, src);
  }
  void scan(const Tile& dst, const Tile& a, Alu op0, const Operand<Tile>& initial, Alu op1, const Tile& b,
            const Where& where = Where::current()) {
    check("scan", dst, a, b, where);
    tile_rules::elementwise("scan", dst, a, b, where);
    check("scan", initial, a, where);
    Op& op = add(OpCode::scan, where, dst, a, b);
    op.op0 = op0;
    op.k0 = use(initial);
    op.op1 = op1;
  }
  void norm_stats(const Tile& dst, const Tile& src, const Where& where = Where::current()) {
    check("norm_stats", dst, src, where);
    tile_rules::norm_stats(dst, src, where);
    add(OpCode::norm_stats, where, dst, src);
  }
  Tile causal_mask(const Tile& src, const Index& query, const Index& key, float value,
                   const Where& where = Where::current()) {
    check("causal_mask", src, where);
    tile_rules::writable(src, "causal_mask", where);
    const TileInfo t = src;
    const Tile dst =
        make(OpCode::causal_mask,
             {.name = std::string(t.name) + "_masked", .p = t.p, .f = t.f, .dtype = t.dtype}, where);
    last().a = src.use();
    select(query, key, value, where);
    return dst;
  }
  void causal_select(const Tile& dst, const Tile& src, const Index& query, const Index& key, float value,
                     SelectOptions options = {}, const Where& where = Where::current()) {
    check("causal_select", dst, src, where);
    tile_rules::elementwise("causal_select", dst, src, where);
    add(OpCode::causal_select, where, dst, src).keys = options.keys;
    select(query, key, value, where);
  }

 private:
  using Op = record::Op;
  using OpCode = record::OpCode;

  void select(const Index& query, const Index& key, float value, const Where& where) {
    Op& op = last();
    if (!query.alive() || !key.alive())
      tile_error(where, name_of(op.code), "an Index of a loop that has ended; use an Index of an open loop");
    op.query = query.use(state_.pool, state_.program.exprs);
    op.key = key.use(state_.pool, state_.program.exprs);
    op.k0.value = value;
  }
};

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
