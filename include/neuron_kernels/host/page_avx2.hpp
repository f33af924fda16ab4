// The page for x86 CPUs with AVX2, FMA and F16C (Haswell, Zen and later).
#pragma once

#if defined(__x86_64__)

#include <cstdint>

#include <immintrin.h>

#include "neuron_kernels/core/abi.hpp"
#include "neuron_kernels/core/ops.hpp"
#include "neuron_kernels/host/page.hpp"

// No contraction: an operation rounds once unless it says fma.
#if defined(__clang__)
#pragma float_control(push)
#pragma clang fp contract(off)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#pragma GCC optimize("fp-contract=off")
#endif

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host::avx2 {

#include "neuron_kernels/host/vec_avx2.inl"
inline constexpr int tile_rows = 6, tile_vecs = 2;
inline constexpr const char* page_name = "avx2";
#include "neuron_kernels/host/page.inl"

}  // namespace host::avx2
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI

#if defined(__clang__)
#pragma clang attribute pop
#pragma float_control(pop)
#else
#pragma GCC pop_options
#endif

#endif  // __x86_64__
