// Ops of a Program as calls of nki.isa, destination first, each with its meaning in a comment.
//
// Signatures and limits: AWS Neuron SDK, nki/api/nki/isa (tests/nki/signatures.py has those in use).
#pragma once

#include <string>
#include <vector>

#include "neuron_kernels/nki/helpers.hpp"
#include "neuron_kernels/nki/layout.hpp"
#include "neuron_kernels/nki/operands.hpp"
#include "neuron_kernels/record/engines.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace nki {

/// A loop around an op: the name of its index, and how often it runs; 0: not known.
struct LoopAround {
  std::string index;
  std::int64_t trips = 0;
};
using LoopsAround = std::vector<LoopAround>;  // from the outermost

class Statements {
 public:
  Statements(const Program& program, const Names& names, Lines& lines, Helpers& helpers)
      : program_(program), operands_(program, names), names_(names), lines_(lines), helpers_(helpers) {}

  const Operands& operands() const { return operands_; }

  void write(const Op& op, const LoopsAround& loops) {
    switch (op.code) {
      case OpCode::loop:
      case OpCode::end:
        return;
      case OpCode::sbuf:
      case OpCode::psum:
      case OpCode::staged:
        return declare(op, loops);
      case OpCode::sbuf_array:
      case OpCode::psum_array:
      case OpCode::input_array:
        return declare_array(op, loops);
      case OpCode::load:
      case OpCode::load_transposed:
      case OpCode::load_broadcast:
        declare(op, loops);
        return load(op);
      case OpCode::load_element:
      case OpCode::load_transposed_element:
        return load(op);
      case OpCode::store:
      case OpCode::store_transposed:
        return store(op);
      case OpCode::matmul:
        return isa("nc_matmul",
                   {"dst=" + tile(op.dst), "stationary=" + tile(op.a), "moving=" + tile(op.b),
                    "accumulate=" + accumulate(op)},
                   name(op.dst) + (op.accumulate.op == Compare::never ? " = " : " (+)= ") + name(op.a) +
                       "^T " + name(op.b) + "  " + size(op.dst));
      case OpCode::transposed:
        declare(op, loops);
        return helper(Helper::transpose, "transpose", {"dst=" + tile(op.dst), "src=" + tile(op.a)},
                      meaning(op, name(op.a) + "^T"));
      case OpCode::transpose:
        return transpose(op);
      case OpCode::fill:
        return isa("memset", on({"dst=" + tile(op.dst), "value=" + number(op.k0.value)}, op,
                                {Engine::vector, Engine::gpsimd}));
      case OpCode::copy:
        return copy(op);
      case OpCode::reduce:
        return isa("tensor_reduce",
                   {"dst=" + tile(op.dst), "op=" + op_of(op.op0), "data=" + groups(op), "axis=" + axis(op)},
                   meaning(op, reduction(op.op0) + " of " + name(op.a)));
      case OpCode::tensor_tensor:
        return isa(
            "tensor_tensor",
            on({"dst=" + tile(op.dst), "data1=" + tile(op.a), "data2=" + tile(op.b), "op=" + op_of(op.op0)},
               op, {Engine::vector, Engine::gpsimd}),
            meaning(op, formula(name(op.a), op.op0, name(op.b))));
      case OpCode::tensor_scalar:
      case OpCode::tensor_scalar_pair:
        return tensor_scalar(op);
      case OpCode::tensor_scalar_reduce:
        return isa(
            "tensor_scalar_reduce",
            {"dst=" + tile(op.dst), "data=" + tile(op.a), "op0=" + op_of(op.op0), "operand0=" + scalar(op.k0),
             "reduce_op=" + op_of(op.op1), "reduce_res=" + tile(op.column)},
            meaning(op, formula(name(op.a), op.op0, operands_.scalar_name(op.k0))) + "; " + name(op.column) +
                " = row " + name_of(op.op1));
      case OpCode::scalar_tensor_tensor:
        return isa("scalar_tensor_tensor",
                   {"dst=" + tile(op.dst), "data=" + tile(op.a), "op0=" + op_of(op.op0),
                    "operand0=" + scalar(op.k0), "op1=" + op_of(op.op1), "operand1=" + tile(op.b)},
                   meaning(op, twice(op, name(op.a), operands_.scalar_name(op.k0), name(op.b))));
      case OpCode::activate:
        return activate(op);
      case OpCode::reciprocal:
        return isa("reciprocal", {"dst=" + tile(op.dst), "data=" + tile(op.a)},
                   meaning(op, "1 / " + name(op.a)));
      case OpCode::scan:
        return isa("tensor_tensor_scan",
                   {"dst=" + tile(op.dst), "data0=" + tile(op.a), "data1=" + tile(op.b),
                    "initial=" + scalar(op.k0), "op0=" + op_of(op.op0), "op1=" + op_of(op.op1)},
                   name(op.dst) + "[j] = " +
                       twice(op, name(op.a) + "[j]", name(op.dst) + "[j - 1]", name(op.b) + "[j]"));
      case OpCode::norm_stats:
        return helper(Helper::row_statistics, "row_statistics", {"dst=" + tile(op.dst), "src=" + tile(op.a)},
                      meaning(op, "mean and variance of " + name(op.a)));
      case OpCode::causal_mask:
        declare(op, loops);
        return select(op);
      case OpCode::causal_select:
        return select(op);
    }
  }

 private:
  using Arguments = std::vector<std::string>;

  bool trn1() const { return program_.chip == trn1_name; }
  std::string tile(const TileSlice& t) const { return operands_.tile(t); }
  std::string name(const TileSlice& t) const { return operands_.said(t); }
  std::string scalar(const Scalar& k) const { return operands_.scalar(k); }
  static std::string size(const TileSlice& t) { return text("[", t.p, ", ", t.f, "]"); }
  std::string meaning(const Op& op, const std::string& what) const {
    return name(op.dst) + " = " + what + "  " + size(op.dst);
  }
  static std::string formula(const std::string& a, Alu op, const std::string& b) {
    if (op == Alu::max || op == Alu::min) return std::string(name_of(op)) + "(" + a + ", " + b + ")";
    return a + (op == Alu::add ? " + " : op == Alu::subtract ? " - " : " * ") + b;
  }
  static std::string reduction(Alu op) {
    return op == Alu::add ? "row sum" : op == Alu::max ? "row maximum" : "row minimum";
  }
  /// (a op0 k) op1 b, brackets as needed.
  static std::string twice(const Op& op, const std::string& a, const std::string& k, const std::string& b) {
    const auto called = [](Alu alu) { return alu == Alu::max || alu == Alu::min; };
    const std::string first = formula(a, op.op0, k);
    return formula(called(op.op0) || called(op.op1) ? first : "(" + first + ")", op.op1, b);
  }
  std::string accumulate(const Op& op) const { return operands_.condition(op.accumulate); }

  void isa(const std::string& call, const Arguments& arguments, const std::string& comment = "") {
    lines_.call("nisa." + call, arguments, comment);
  }
  void helper(Helper h, const std::string& call, const Arguments& arguments, const std::string& comment) {
    helpers_.use(h);
    lines_.call(call, arguments, comment);
  }

  /// With the engine that the op runs on, where NKI has it do such ops.
  Arguments on(Arguments arguments, const Op& op, std::initializer_list<Engine> allowed) const {
    const Engine engine = record::engine_of(program_, op);
    const bool psum = operands_.in_psum(op.dst) || operands_.in_psum(op.a) || operands_.in_psum(op.b);
    for (const Engine e : allowed) {  // GpSimd does not reach PSUM
      if (e == engine && !(psum && e == Engine::gpsimd))
        arguments.push_back(std::string("engine=nisa.engine.") + name_of(e));
    }
    return arguments;
  }
  /// With who writes the descriptors, where the op says so. Hardware does on trn2 and newer.
  Arguments by(Arguments arguments, const Op& op) const {
    constexpr const char* names[] = {"", "none", "swdge", "hwdge"};
    if (op.dge == Dge::automatic || (op.dge == Dge::hardware && trn1())) return arguments;
    arguments.push_back(std::string("dge_mode=nisa.dge_mode.") + names[static_cast<int>(op.dge)]);
    return arguments;
  }

  static std::string buffer(const TileDecl& d) { return d.space == Space::psum ? "nl.psum" : "nl.sbuf"; }

  /// The number of the time that a tile or array is made, for buffers that take turns: a sum over as many of the
  /// innermost loops as it takes to come round; empty if it stays where it is.
  static std::string turn(const TileDecl& d, const LoopsAround& loops) {
    std::string sum;
    std::int64_t turns = 1;
    for (auto l = loops.rbegin(); l != loops.rend() && turns > 0 && turns * d.count < d.placed.buffers; ++l) {
      sum += (sum.empty() ? "" : " + ") + (turns > 1 ? text(turns, " * ", l->index) : l->index);
      turns *= l->trips;
    }
    return sum.find(' ') == sum.npos ? sum : "(" + sum + ")";
  }
  /// First byte of the buffer in use.
  static std::string address(const TileDecl& d, const LoopsAround& loops) {
    const std::string n = turn(d, loops), first = d.placed.offset == 0 ? "" : text(d.placed.offset, " + ");
    if (n.empty()) return text(d.placed.offset);
    return text(first, d.placed.stride, " * (", n, " % ", d.placed.buffers, ")");
  }
  /// Whether its copies lie within banks of PSUM. Tensors of NKI begin where banks do.
  static bool within_banks(const TileDecl& d) {
    return d.space == Space::psum && d.placed.buffers > 0 &&
           (d.placed.offset % psum_bank_bytes != 0 || d.placed.stride % psum_bank_bytes != 0);
  }

  void declare(const Op& op, const LoopsAround& loops) {
    const TileDecl& d = operands_.decl(op.dst);
    const std::string to = operands_.name(op.dst) + " = ";
    if (within_banks(d)) {
      return helper(Helper::part_of_bank, to + "part_of_bank",
                    {shape(d.p, d.f), dtype_text(d.dtype), text(psum_bank_bytes / size_of(d.dtype)),
                     "address=" + address(d, loops)},
                    "");
    }
    Arguments arguments = {shape(d.p, d.f), "dtype=" + dtype_text(d.dtype), "buffer=" + buffer(d)};
    if (d.placed.buffers > 0) arguments.push_back("address=(0, " + address(d, loops) + ")");
    lines_.call(to + "nl.ndarray", arguments);
  }

  void declare_array(const Op& op, const LoopsAround& loops) {
    const TileDecl& d = operands_.decl(op.dst);
    Arguments arguments = {text(d.count), shape(d.p, d.f), dtype_text(d.dtype), buffer(d)};
    if (d.placed.buffers > 0) {
      const std::string n = turn(d, loops);
      arguments.push_back(text("address=", d.placed.offset));
      arguments.push_back(text("stride=", d.placed.stride));
      arguments.push_back(text("buffers=", d.placed.buffers));
      arguments.push_back(n.empty()      ? "first=0"
                          : d.count == 1 ? "first=" + n
                                         : text("first=", d.count, " * ", n));
    }
    const std::string to = names_.tiles[static_cast<std::size_t>(op.dst.tile)] + " = ";
    if (d.placed.buffers == 0) return helper(Helper::tile_list, to + "tile_list", arguments, "");
    if (!within_banks(d)) return helper(Helper::placed_list, to + "placed_list", arguments, "");
    arguments[3] = text(psum_bank_bytes / size_of(d.dtype));
    helpers_.use(Helper::part_of_bank);
    helper(Helper::part_list, to + "part_list", arguments, "");
  }

  /// DMA transposes 2-byte types on trn2 and newer; HBM rows go in 16 at a time, at most 128 elements long.
  /// source: nki.isa.dma_transpose, "DMA Direct Transpose Constraints"
  bool dma_transposes(DType dtype, std::int64_t rows, std::int64_t cols) const {
    return !trn1() && size_of(dtype) == 2 && rows % 16 == 0 && cols <= 128;
  }

  void load(const Op& op) {
    const std::string dst = "dst=" + tile(op.dst), src = operands_.hbm(op.hbm);
    if (op.code == OpCode::load_broadcast) {
      const std::string row = op.hbm.transposed ? src + ".permute((1, 0))" : src;
      return isa("dma_copy", by({dst, text("src=", row, ".broadcast(0, ", op.dst.p, ")")}, op),
                 meaning(op, operands_.name(op.hbm) + " in each partition"));
    }
    const bool turns = (op.code == OpCode::load_transposed || op.code == OpCode::load_transposed_element) !=
                       op.hbm.transposed;
    if (!turns) return isa("dma_copy", by({dst, "src=" + src}, op));
    const std::string what = meaning(op, operands_.name(op.hbm) + "^T");
    const DType dtype = operands_.decl(op.dst).dtype;
    if (op.dst.p == 1 || op.dst.f == 1)  // a row or a column: element by element
      return isa("dma_copy", by({dst, "src=" + src + ".permute((1, 0))"}, op), what);
    if (dma_transposes(dtype, op.hbm.size[0], op.hbm.size[1]))
      return isa("dma_transpose", {dst, "src=" + src}, what);
    helper(Helper::load_transposed, "load_transposed", by({dst, "src=" + src}, op), what);
  }

  void store(const Op& op) {
    const bool psum = operands_.in_psum(op.a);
    if (psum) helpers_.use(Helper::in_sbuf);
    const std::string dst = "dst=" + operands_.hbm(op.hbm),
                      src = "src=" + (psum ? "in_sbuf(" + tile(op.a) + ")" : tile(op.a)),
                      what = operands_.name(op.hbm) + " = " + name(op.a) + "^T";
    const bool turns = (op.code == OpCode::store_transposed) != op.hbm.transposed;
    if (!turns) return isa("dma_copy", by({dst, src}, op));
    if (op.a.p == 1 || op.a.f == 1) return isa("dma_copy", by({dst + ".permute((1, 0))", src}, op), what);
    helper(Helper::store_transposed, "store_transposed", by({dst, src}, op), what);
  }

  void transpose(const Op& op) {
    const std::string what = meaning(op, name(op.a) + "^T");
    const std::string dst = "dst=" + tile(op.dst), data = "data=" + tile(op.a);
    const bool small = op.a.p <= 32 && op.a.f <= 32;  // what the vector engine takes
    if (op.engine == Engine::vector && small)
      return isa("nc_transpose", {dst, data, "engine=nisa.engine.vector"}, what);
    if (operands_.in_psum(op.dst)) return isa("nc_transpose", {dst, data, "engine=nisa.engine.tensor"}, what);
    if (op.engine != Engine::tensor && dma_transposes(operands_.decl(op.dst).dtype, op.a.p, op.a.f))
      return isa("dma_transpose", {dst, "src=" + tile(op.a)}, what);
    helper(Helper::transpose, "transpose", {dst, "src=" + tile(op.a)}, what);
  }

  void copy(const Op& op) {
    const std::string dst = "dst=" + tile(op.dst);
    // NeuronCore-v2's scalar engine copies by its identity function only (nki.isa.tensor_copy).
    if (trn1() && op.engine == Engine::scalar)
      return isa("activation", {dst, "op=nl.copy", "data=" + tile(op.a)});
    isa("tensor_copy", on({dst, "src=" + tile(op.a)}, op, {Engine::vector, Engine::scalar, Engine::gpsimd}));
  }

  /// Free elements of reduce's source as [blocks, n, group], those that meet in one element last.
  std::string groups(const Op& op) const {
    const int group = op.a.f / (op.dst.f * op.blocks);
    std::string s = tile(op.a);
    if (op.dst.f == 1) return s;
    if (op.blocks == 1) return text(s, ".reshape_dim(1, (", op.dst.f, ", ", group, "))");
    if (group == 1) return text(s, ".reshape_dim(1, (", op.blocks, ", ", op.dst.f, ")).permute((0, 2, 1))");
    return text(s, ".reshape_dim(1, (", op.blocks, ", ", op.dst.f, ", ", group, ")).permute((0, 2, 1, 3))");
  }
  static std::string axis(const Op& op) {
    if (op.dst.f == 1) return "1";
    return op.blocks != 1 && op.a.f != op.dst.f * op.blocks ? "(2, 3)" : "2";
  }

  void tensor_scalar(const Op& op) {
    const bool pair = op.code == OpCode::tensor_scalar_pair;
    Arguments arguments = {"dst=" + tile(op.dst), "data=" + tile(op.a), "op0=" + op_of(op.op0),
                           "operand0=" + scalar(op.k0)};
    std::string what = pair
                           ? twice(op, name(op.a), operands_.scalar_name(op.k0), operands_.scalar_name(op.k1))
                           : formula(name(op.a), op.op0, operands_.scalar_name(op.k0));
    if (pair) {
      arguments.push_back("op1=" + op_of(op.op1));
      arguments.push_back("operand1=" + scalar(op.k1));
    }
    // trn2's scalar engine multiplies and adds, in that order (nki.isa.tensor_scalar).
    const bool scalar_engine = !trn1() && (pair ? op.op0 == Alu::multiply && op.op1 == Alu::add
                                                : op.op0 == Alu::multiply || op.op0 == Alu::add);
    if (op.engine != Engine::scalar || scalar_engine)
      arguments = on(arguments, op, {Engine::vector, Engine::scalar});
    isa("tensor_scalar", arguments, meaning(op, what));
  }

  void activate(const Op& op) {
    const bool scaled = op.k0.tile.given() || op.k0.value != 1.f;
    const bool biased = op.k1.tile.given() || op.k1.value != 0.f;
    Arguments arguments = {"dst=" + tile(op.dst), "op=" + op_of(op.act), "data=" + tile(op.a)};
    if (op.blocks != 1) {  // blocks of data take turns in dst
      const int n = op.a.f / op.blocks;
      arguments[0] += text(".reshape_dim(1, (", n, ", ", op.blocks, ")).permute((0, 2, 1))");
      arguments[2] += text(".reshape_dim(1, (", op.blocks, ", ", n, "))");
    }
    std::string what = name(op.a);
    if (scaled)
      arguments.push_back("scale=" + scalar(op.k0)), what = operands_.scalar_name(op.k0) + " * " + what;
    if (biased) {
      what += " + " + operands_.scalar_name(op.k1);
      if (trn1() && !op.k1.tile.given()) {
        helpers_.use(Helper::column);
        arguments.push_back(text("bias=column(", op.a.p, ", ", number(op.k1.value), ")"));
      } else {
        arguments.push_back("bias=" + scalar(op.k1));
      }
    }
    std::string comment = meaning(op, std::string(name_of(op.act)) + "(" + what + ")");
    if (op.column.given()) {
      arguments.insert(arguments.end(), {"reduce_op=nl.add", "reduce_res=" + tile(op.column),
                                         "reduce_cmd=nisa.reduce_cmd.reset_reduce"});
      comment += "; " + name(op.column) + " = row sum";
    }
    isa("activation", arguments, comment);
  }

  /// affine_select keeps an element where offset + channel_multiplier * partition + step * column >= 0, here
  /// where the query is not before the key; it reads and writes SBUF only (nki.isa.affine_select).
  void select(const Op& op) {
    const bool across = op.code == OpCode::causal_select && op.keys == KeyAxis::partition;
    const std::string dst = "dst=" + tile(op.dst), step = across ? "1" : "-1", value = number(op.k0.value),
                      offset = "offset=" + difference(op.query, op.key),
                      multiplier = std::string("channel_multiplier=") + (across ? "-1" : "1"),
                      what = meaning(op, name(op.a) + ", but " + value + " where the key is after the query");
    if (operands_.in_psum(op.dst)) {
      return helper(Helper::select_to_psum, "select_to_psum",
                    {dst, "src=" + tile(op.a), "step=" + step, offset, multiplier, "value=" + value}, what);
    }
    const bool copied = operands_.in_psum(op.a);
    if (copied) isa("tensor_copy", {dst, "src=" + tile(op.a), "engine=nisa.engine.vector"});
    isa("affine_select",
        {dst, text("pattern=[[", step, ", ", op.dst.f, "]]"), offset, multiplier,
         "on_true_tile=" + tile(copied ? op.dst : op.a), "on_false_value=" + value,
         "cmp_op=nl.greater_equal"},
        what);
  }

  /// a - b
  std::string difference(ExprId a, ExprId b) const {
    const record::Expr &x = nth(program_.exprs, a), &y = nth(program_.exprs, b);
    if (y.op == record::ExprOp::constant) {
      if (x.op == record::ExprOp::constant) return text(x.value - y.value);
      if (y.value == 0) return operands_.expression(a);
    }
    return operands_.expression(a) + " - " + operands_.expression(b, 2);
  }

  static constexpr const char* trn1_name = "trn1";
  static constexpr int psum_bank_bytes = trn2.psum_bank_bytes;  // on every chip

  const Program& program_;
  Operands operands_;
  const Names& names_;
  Lines& lines_;
  Helpers& helpers_;
};

}  // namespace nki
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
