// fields_of(code): which fields of Op an op has. For all that read or write Programs field by field.
#pragma once

#include "neuron_kernels/record/program.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// A set of bits. makes: dst is a tile that the op declares.
enum Field : std::uint32_t {
  field_makes = 1u << 0,
  field_dst = 1u << 1,
  field_a = 1u << 2,
  field_b = 1u << 3,
  field_hbm = 1u << 4,
  field_op0 = 1u << 5,
  field_op1 = 1u << 6,
  field_act = 1u << 7,
  field_k0 = 1u << 8,
  field_k1 = 1u << 9,
  field_value = 1u << 10,  // k0, a number only
  field_column = 1u << 11,
  field_accumulate = 1u << 12,
  field_query_key = 1u << 13,
  field_keys = 1u << 14,
  field_blocks = 1u << 15,
  field_reads = 1u << 16,
  field_dge = 1u << 17,
  field_engine = 1u << 18,
  field_loop = 1u << 19
};

inline constexpr OpCode last_op_code = OpCode::causal_select;

constexpr std::uint32_t fields_of(OpCode code) {
  constexpr std::uint32_t unary = field_dst | field_a;
  constexpr std::uint32_t load = field_hbm | field_reads | field_dge;
  switch (code) {
    case OpCode::loop:
    case OpCode::end:
      return field_loop;
    case OpCode::sbuf:
    case OpCode::psum:
    case OpCode::sbuf_array:
    case OpCode::psum_array:
    case OpCode::input_array:
      return field_makes;
    case OpCode::staged:
      return field_makes | field_hbm;
    case OpCode::load:
    case OpCode::load_transposed:
      return field_makes | load;
    case OpCode::load_broadcast:
      return field_makes | field_hbm | field_dge;
    case OpCode::load_element:
    case OpCode::load_transposed_element:
      return field_dst | load;
    case OpCode::store:
    case OpCode::store_transposed:
      return field_hbm | field_a | field_dge;
    case OpCode::matmul:
      return unary | field_b | field_accumulate;
    case OpCode::transposed:
      return field_makes | field_a;
    case OpCode::transpose:
    case OpCode::copy:
      return unary | field_engine;
    case OpCode::fill:
      return field_dst | field_value | field_engine;
    case OpCode::reduce:
      return unary | field_op0 | field_blocks;
    case OpCode::tensor_tensor:
      return unary | field_b | field_op0 | field_engine;
    case OpCode::tensor_scalar:
      return unary | field_op0 | field_k0 | field_engine;
    case OpCode::tensor_scalar_pair:
      return unary | field_op0 | field_k0 | field_op1 | field_k1 | field_engine;
    case OpCode::tensor_scalar_reduce:
      return unary | field_op0 | field_k0 | field_op1 | field_column;
    case OpCode::scalar_tensor_tensor:
    case OpCode::scan:
      return unary | field_b | field_op0 | field_k0 | field_op1;
    case OpCode::activate:
      return unary | field_act | field_k0 | field_k1 | field_column | field_blocks;
    case OpCode::reciprocal:
    case OpCode::norm_stats:
      return unary;
    case OpCode::causal_mask:
      return field_makes | field_a | field_query_key | field_value;
    case OpCode::causal_select:
      return unary | field_query_key | field_value | field_keys;
  }
  return 0;
}

constexpr bool has(OpCode code, Field field) { return (fields_of(code) & field) != 0; }

/// What a tile that `code` declares must be.
struct Made {
  Space space = Space::sbuf;
  bool read_only = false, is_array = false;
};
constexpr Made made_by(OpCode code) {
  switch (code) {
    case OpCode::psum:
      return {.space = Space::psum};
    case OpCode::sbuf_array:
      return {.is_array = true};
    case OpCode::psum_array:
      return {.space = Space::psum, .is_array = true};
    case OpCode::input_array:
      return {.read_only = true, .is_array = true};
    case OpCode::load:
    case OpCode::load_transposed:
    case OpCode::load_broadcast:
    case OpCode::transposed:
      return {.read_only = true};
    default:
      return {};
  }
}

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
