// The name of the inline namespace that holds everything in this library.
//
// It depends on the instruction-set macros of the translation unit, so that a unit built with -march=haswell
// never lends the linker a function for a unit built without: one program runs on the lower machine.
#pragma once

#if defined(__FAST_MATH__)
#error "neuron_kernels needs IEEE arithmetic (NaN, infinities, signed zeros): build without -ffast-math"
#endif

// One digit per group of features that compilers use on their own; 1 = the unit was built with the group.
#if defined(__SSE3__) || defined(__SSSE3__) || defined(__SSE4_1__) || defined(__SSE4_2__) || \
    defined(__POPCNT__)
#define NEURON_KERNELS_ABI_SSE4 1
#else
#define NEURON_KERNELS_ABI_SSE4 0
#endif
#if defined(__AVX__) || defined(__F16C__)
#define NEURON_KERNELS_ABI_AVX 1
#else
#define NEURON_KERNELS_ABI_AVX 0
#endif
#if defined(__AVX2__)
#define NEURON_KERNELS_ABI_AVX2 1
#else
#define NEURON_KERNELS_ABI_AVX2 0
#endif
#if defined(__FMA__)
#define NEURON_KERNELS_ABI_FMA 1
#else
#define NEURON_KERNELS_ABI_FMA 0
#endif
#if defined(__BMI__) || defined(__BMI2__) || defined(__LZCNT__) || defined(__MOVBE__)
#define NEURON_KERNELS_ABI_BMI 1
#else
#define NEURON_KERNELS_ABI_BMI 0
#endif
#if defined(__AVX512F__)
#define NEURON_KERNELS_ABI_AVX512 1
#else
#define NEURON_KERNELS_ABI_AVX512 0
#endif
#if defined(__AVX512BF16__) || defined(__AVX512FP16__) || defined(__AVX512VNNI__) || defined(__AVXVNNI__) || \
    defined(__GFNI__) || defined(__AMX_TILE__)
#define NEURON_KERNELS_ABI_NEW 1
#else
#define NEURON_KERNELS_ABI_NEW 0
#endif

#define NEURON_KERNELS_ABI_JOIN(a, b, c, d, e, f, g) isa_##a##b##c##d##e##f##g
#define NEURON_KERNELS_ABI_NAME(a, b, c, d, e, f, g) NEURON_KERNELS_ABI_JOIN(a, b, c, d, e, f, g)
#define NEURON_KERNELS_ABI                                                                           \
  NEURON_KERNELS_ABI_NAME(NEURON_KERNELS_ABI_SSE4, NEURON_KERNELS_ABI_AVX, NEURON_KERNELS_ABI_AVX2,  \
                          NEURON_KERNELS_ABI_FMA, NEURON_KERNELS_ABI_BMI, NEURON_KERNELS_ABI_AVX512, \
                          NEURON_KERNELS_ABI_NEW)

namespace neuron_kernels::inline NEURON_KERNELS_ABI {}
