// The fields of a Program in JSON, each named once for json_write.hpp and json.hpp; docs/program.md explains them.
//
// An archive takes field(key, value) for a field that must be there and field(key, value, otherwise) for one that is
// left out where it has that value.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "neuron_kernels/record/fields.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

inline constexpr int program_schema = 1;

/// Names of an enum's values, in their order.
template <class E>
inline constexpr std::array<std::string_view, 0> spelled{};
template <>
inline constexpr std::array<std::string_view, 3> spelled<DType>{"f32", "bf16", "f16"};
template <>
inline constexpr std::array<std::string_view, 2> spelled<Space>{"sbuf", "psum"};
template <>
inline constexpr std::array<std::string_view, alu_count> spelled<Alu>{"add", "subtract", "multiply", "max",
                                                                      "min"};
template <>
inline constexpr std::array<std::string_view, act_count> spelled<Act>{
    "identity", "exp",    "log",  "tanh", "erf",  "sigmoid",
    "rsqrt",    "square", "relu", "silu", "gelu", "gelu_tanh"};
template <>
inline constexpr std::array<std::string_view, engine_count> spelled<Engine>{"automatic", "tensor", "vector",
                                                                            "scalar",    "gpsimd", "dma"};
template <>
inline constexpr std::array<std::string_view, dge_count> spelled<Dge>{"automatic", "none", "software",
                                                                      "hardware"};
template <>
inline constexpr std::array<std::string_view, 2> spelled<KeyAxis>{"free", "partition"};
template <>
inline constexpr std::array<std::string_view, 3> spelled<LoopKind>{"range", "tiles", "programs"};
template <>
inline constexpr std::array<std::string_view, 9> spelled<ExprOp>{
    "constant", "loop", "add", "subtract", "multiply", "divide", "modulo", "min", "max"};
template <>
inline constexpr std::array<std::string_view, 8> spelled<Compare>{
    "never", "always", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"};
/// As the enumerators: name_of(OpCode) has one name for several.
template <>
inline constexpr std::array<std::string_view, static_cast<std::size_t>(last_op_code) + 1> spelled<OpCode>{
    "loop",
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
    "load_element",
    "load_transposed_element",
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
    "tensor_scalar_pair",
    "tensor_scalar_reduce",
    "scalar_tensor_tensor",
    "activate",
    "reciprocal",
    "scan",
    "norm_stats",
    "causal_mask",
    "causal_select"};

/// The first n elements of an array, or as many as there are (n is set).
template <class Array, class Int>
struct Prefix {
  Array& values;
  Int& n;
};
template <class Array, class Int>
Prefix(Array&, Int&) -> Prefix<Array, Int>;
/// Two numbers that are written as [first, second].
template <class Int>
struct Pair {
  Int &first, &second;
};
template <class Int>
Pair(Int&, Int&) -> Pair<Int>;

// Value is const or not, by the archive.

template <class Archive, class Value>
void fields(Archive& field, Value& t, const Tensor&) {
  field("name", t.name);
  field("dtype", t.dtype);
  field("shape", Prefix{t.shape, t.rank});
}

template <class Archive, class Value>
void fields(Archive& field, Value& p, const Placement&) {
  field("buffers", p.buffers);
  field("offset", p.offset);
  field("stride", p.stride);
}

template <class Archive, class Value>
void fields(Archive& field, Value& t, const TileDecl&) {
  field("name", t.name);
  field("shape", Pair{t.p, t.f});
  field("dtype", t.dtype);
  field("space", t.space, Space::sbuf);
  field("read_only", t.read_only, false);
  field("array", t.is_array, false);
  field("count", t.count, std::int64_t{1});
  field("at", t.where, SourceLine{});
  field("placed", t.placed, Placement{});
}

template <class Archive, class Value>
void fields(Archive& field, Value& e, const Expr&) {
  field("op", e.op);
  if (e.op == ExprOp::constant || e.op == ExprOp::loop) {
    field(e.op == ExprOp::constant ? "value" : "loop", e.value);
  } else {
    field("a", e.a);
    field("b", e.b);
  }
}

template <class Archive, class Value>
void fields(Archive& field, Value& c, const Condition&) {
  field("op", c.op);
  field("a", c.a);
  field("b", c.b);
}

template <class Archive, class Value>
void fields(Archive& field, Value& l, const Loop&) {
  field("kind", l.kind, LoopKind::range);
  field("begin", l.begin);
  field("end", l.end);
  if (l.kind != LoopKind::range) {
    field("n", l.n);
    field("step", l.step);
    field("tail", l.tail, false);
  }
  field("at", l.where, SourceLine{});
}

template <class Archive, class Value>
void fields(Archive& field, Value& t, const TileSlice&) {
  field("tile", t.tile);
  field("element", t.element, none);
  field("partition", t.partition, none);
  field("free", t.free, none);
  field("shape", Pair{t.p, t.f});
  field("step", t.step, 1);
}

template <class Archive, class Value>
void fields(Archive& field, Value& h, const HbmSlice&) {
  field("tensor", h.tensor);
  int rank = 0;
  while (rank < max_rank && nth(h.begin, rank) != none) ++rank;
  field("begin", Prefix{h.begin, rank});
  field("size", Pair{h.size[0], h.size[1]});
  field("transposed", h.transposed, false);
}

template <class Archive, class Value>
void fields(Archive& field, Value& o, const Op&) {
  field("op", o.code);
  const auto of = fields_of(o.code);
  if (o.code == OpCode::loop) field("loop", o.loop);
  if (of & field_makes) field("makes", o.dst.tile);
  if (of & field_dst) field("dst", o.dst);
  if (of & field_act) field("act", o.act);
  if (of & field_a) field("a", o.a);
  if (of & field_op0) field("op0", o.op0);
  if (of & field_k0) field("k0", o.k0);
  if (of & field_op1) field("op1", o.op1);
  if (of & field_k1) field("k1", o.k1);
  if (of & field_b) field("b", o.b);
  if (of & field_column) field("column", o.column, TileSlice{});
  if (of & field_accumulate) field("accumulate", o.accumulate, Condition{});
  if (of & field_query_key) field("query", o.query);
  if (of & field_query_key) field("key", o.key);
  if (of & field_value) field("value", o.k0.value);
  if (of & field_keys) field("keys", o.keys, KeyAxis::free);
  if (of & field_blocks) field("blocks", o.blocks, 1);
  if (of & field_hbm) field("hbm", o.hbm);
  if (of & field_reads) field("reads", o.reads, 1);
  if (of & field_dge) field("dge", o.dge, Dge::automatic);
  if (of & field_engine) field("engine", o.engine, Engine::automatic);
  if (o.code != OpCode::loop && o.code != OpCode::end) field("at", o.where, SourceLine{});
}

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
