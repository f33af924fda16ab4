// Steps that more than one kernel takes, and the arithmetic of cutting sizes into blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "neuron_kernels/core/target.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t step) { return (n + step - 1) / step; }
constexpr std::int64_t round_up(std::int64_t n, std::int64_t step) { return ceil_div(n, step) * step; }

/// The step that cuts n into equal parts of at most `most`, rounded up to a multiple of `unit`:
/// no small last block.
constexpr int even_step(std::int64_t n, std::int64_t most, std::int64_t unit = 1) {
  if (n <= most) return static_cast<int>(std::max<std::int64_t>(n, 1));
  return static_cast<int>(std::min(round_up(ceil_div(n, ceil_div(n, most)), unit), round_up(most, unit)));
}

/// Throws ShapeError unless 1 <= value <= most: for the check() of a Blocking.
inline void check_block(const char* kernel, const char* field, int value, int most, const Limits& limits) {
  if (value < 1 || value > most) {
    shape_error(kernel, text("blocking.", field),
                text(value, "; allowed are 1 to ", most, " on ", limits.chip));
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
