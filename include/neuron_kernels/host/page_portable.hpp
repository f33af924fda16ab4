// The page for any CPU: vectors of 4 floats, no intrinsics, no FMA (a product and a sum round apart).
#pragma once

#include <cstdint>

#include "neuron_kernels/core/abi.hpp"
#include "neuron_kernels/core/ops.hpp"
#include "neuron_kernels/host/page.hpp"

// -march=native would let a compiler turn a * b + c into one rounding: results would depend on the flags.
// Clang does so within one expression only, which two operators of Vec are not;
// its pragma is kept to where it can be undone.
#if defined(__clang__) && defined(__x86_64__)
#pragma float_control(push)
#pragma clang fp contract(off)
#elif !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host::portable {

#include "neuron_kernels/host/vec_portable.inl"
inline constexpr int tile_rows = 4, tile_vecs = 2;
inline constexpr const char* page_name = "portable";
#include "neuron_kernels/host/page.inl"

}  // namespace host::portable
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI

#if defined(__clang__) && defined(__x86_64__)
#pragma float_control(pop)
#elif !defined(__clang__)
#pragma GCC pop_options
#endif
