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
#include "neuron_kernels/host/gemm.inl"
#include "neuron_kernels/host/math.inl"
#include "neuron_kernels/host/rows.inl"

#include "neuron_kernels/host/activate.inl"  // these after rows.inl
#include "neuron_kernels/host/convert.inl"

inline constexpr Page page = {
    .name = "avx2",
    .vector_len = Vec::len,
    .tile_rows = tile_rows,
    .tile_cols = tile_vecs * Vec::len,
    .gemm = gemm,
    .gemm_dot = gemm_dot,
    .transpose = transpose,
    .widen_bf16 = widen_bf16,
    .widen_f16 = widen_f16,
    .narrow_bf16 = narrow_bf16,
    .narrow_f16 = narrow_f16,
    .binary = binary,
    .scalar = scalar,
    .scalar_scalar = scalar_scalar,
    .scalar_tensor = scalar_tensor,
    .reduce = reduce,
    .activate = activate,
    .stats = stats,
};

}  // namespace host::avx2
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI

#if defined(__clang__)
#pragma clang attribute pop
#pragma float_control(pop)
#else
#pragma GCC pop_options
#endif

#endif  // __x86_64__
