// ProgramSize: what a Program from outside may have at most, so that nothing it asks for exhausts memory or the stack.
#pragma once

#include <cstddef>
#include <cstdint>

#include "neuron_kernels/core/abi.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// What one Program may have at most. Recorded kernels stay far below: a body is recorded once, whatever its extents.
struct ProgramSize {
  static constexpr std::size_t files = 1000, tensors = 1000, tiles = 10'000, loops = 10'000, exprs = 200'000,
                               ops = 100'000;
  static constexpr std::size_t name = 200, file_name = 4096;  // characters
  static constexpr int depth = 64;                            // of loops
  static constexpr int expr_nodes = 1000;                     // of one expression written out
  static constexpr int expr_depth = 200;
  static constexpr std::int64_t value = std::int64_t{1} << 40;     // of an index, a dimension, an extent
  static constexpr std::int64_t elements = std::int64_t{1} << 60;  // of a tensor
  static constexpr int tile_side = 1 << 28;
  static constexpr std::int64_t tiles_in_arrays =
      1 << 16;  // of all arrays, or of their buffers if these are more
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
