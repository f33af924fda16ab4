// The page for x86 CPUs with AVX-512 F, BW, DQ and VL (Skylake-SP, Zen 4 and later).
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
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))), \
                             apply_to = function)
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // g++ 12 warns of its own _mm512_undefined_ps
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#pragma GCC optimize("fp-contract=off")
#if defined(__SANITIZE_ADDRESS__) && __GNUC__ < 14
// Frames with a stack protector and variables of 64 bytes of alignment fault in the fake stack of
// detect_stack_use_after_return before g++ 13.3 (https://gcc.gnu.org/PR110027); Ubuntu has both on by default.
#pragma GCC optimize("no-stack-protector")
#endif
#endif

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host::avx512 {

#include "neuron_kernels/host/vec_avx512.inl"
inline constexpr int tile_rows = 14, tile_vecs = 2;
inline constexpr const char* page_name = "avx512";
#include "neuron_kernels/host/page.inl"

}  // namespace host::avx512
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI

#if defined(__clang__)
#pragma clang attribute pop
#pragma float_control(pop)
#else
#pragma GCC pop_options
#pragma GCC diagnostic pop
#endif

#endif  // __x86_64__
