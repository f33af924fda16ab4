// The version of the library, for code that has the headers alone. kernel.toml is where it is changed.
#pragma once

#include <string_view>

#include "neuron_kernels/core/abi.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// Semantic version, "major.minor.patch".
inline constexpr std::string_view version = "0.1.0";

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
