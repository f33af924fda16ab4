// engine_of(program, op): the engine of the chip that executes an op, and whether it does so in one instruction.
//
// source: AWS Neuron SDK, nki.isa: "Engines" of each function; SDK nki/guides/architecture/trainium2_arch.rst
#pragma once

#include "neuron_kernels/record/program.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

inline Space space_of(const Program& program, const TileSlice& t) { return nth(program.tiles, t.tile).space; }
inline DType dtype_of(const Program& program, const TileSlice& t) { return nth(program.tiles, t.tile).dtype; }

/// Whether an op only names tiles or encloses others: no engine has to do with it.
constexpr bool is_structure(OpCode code) {
  switch (code) {
    case OpCode::loop:
    case OpCode::end:
    case OpCode::sbuf:
    case OpCode::psum:
    case OpCode::sbuf_array:
    case OpCode::psum_array:
    case OpCode::input_array:
    case OpCode::staged:
      return true;
    default:
      return false;
  }
}

/// Whether an op is a transfer from or to HBM.
constexpr bool is_transfer(OpCode code) {
  switch (code) {
    case OpCode::load:
    case OpCode::load_transposed:
    case OpCode::load_broadcast:
    case OpCode::load_element:
    case OpCode::load_transposed_element:
    case OpCode::store:
    case OpCode::store_transposed:
      return true;
    default:
      return false;
  }
}

/// Of an op that is several instructions (transposed, load_transposed, store_transposed, causal_mask in PSUM), the
/// engine of the one that it is named for. Not of structure.
inline Engine engine_of(const Program& program, const Op& op) {
  if (op.engine != Engine::automatic) return op.engine;
  if (is_transfer(op.code)) return Engine::dma;
  switch (op.code) {
    case OpCode::matmul:
    case OpCode::transposed:
      return Engine::tensor;
    case OpCode::transpose:
      return space_of(program, op.dst) == Space::psum ? Engine::tensor : Engine::dma;
    case OpCode::activate:
      return Engine::scalar;
    case OpCode::causal_mask:
    case OpCode::causal_select:
      return Engine::gpsimd;
    case OpCode::fill:  // GpSimd has the time, but does not reach PSUM
      return space_of(program, op.dst) == Space::psum ? Engine::vector : Engine::gpsimd;
    default:
      return Engine::vector;
  }
}

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
