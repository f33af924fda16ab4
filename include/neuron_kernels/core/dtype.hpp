// Element types: f32, bf16, f16, and the exact conversions between them.
//
// Not arithmetic: sums are always f32, as on the chip (SDK nki/api/nki.api.shared.rst, "maths in fp32").
// Rounding to 16 bits is to nearest, ties to even; NaN stays NaN (quiet, sign kept), overflow goes to Inf.
#pragma once

#include <bit>
#include <cstdint>

#include "neuron_kernels/core/abi.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

enum class DType : std::uint8_t { f32, bf16, f16 };
inline constexpr DType f32 = DType::f32;

/// A bfloat16 number: the upper half of an f32 (1 sign, 8 exponent, 7 fraction bits).
struct bf16 {
  std::uint16_t bits = 0;
};

/// An IEEE binary16 number (1 sign, 5 exponent, 10 fraction bits).
struct f16 {
  std::uint16_t bits = 0;
};

/// Bytes of one element.
constexpr int size_of(DType t) { return t == DType::f32 ? 4 : 2; }

/// Name as printed in errors: "f32", "bf16", "f16".
constexpr const char* name_of(DType t) { return t == DType::f32 ? "f32" : t == DType::bf16 ? "bf16" : "f16"; }

/// Relative rounding error of one store, 2^-p: f32 2^-24, bf16 2^-8, f16 2^-11.
constexpr double unit_roundoff(DType t) {
  return t == DType::f32 ? 0x1p-24 : t == DType::bf16 ? 0x1p-8 : 0x1p-11;
}

constexpr float to_f32(float x) { return x; }
constexpr float to_f32(bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

/// Exact: every f16 (denormals included) is an f32.
constexpr float to_f32(f16 x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (x.bits >> 10) & 0x1fu;
  const std::uint32_t fraction = x.bits & 0x3ffu;
  if (exponent == 0x1fu) {  // Inf, NaN (made quiet)
    const std::uint32_t quiet = fraction != 0 ? 0x00400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (fraction << 13));
  }
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // zero and denormals
  return sign != 0 ? -magnitude : magnitude;
}

/// Rounds to nearest even; NaN stays a quiet NaN.
constexpr bf16 to_bf16(float x) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((u >> 16) | 0x0040u)};
  return {static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

/// Rounds to nearest even; magnitudes from 65520 on become Inf, NaN stays a quiet NaN.
constexpr f16 to_f16(float x) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000u);
  const std::uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return {static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x01ffu))};
  }
  if (magnitude >= 0x477ff000u) return {static_cast<std::uint16_t>(sign | 0x7c00u)};  // >= 65520
  if (magnitude < 0x38800000u) {  // below 2^-14: denormal, one unit is 2^-24; adding 0.5 rounds to it
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u))};
  }
  const std::uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
  return {static_cast<std::uint16_t>(sign | (rounded >> 13))};
}

/// The DType of a C++ element type: `dtype_of<float>` is DType::f32.
template <class E>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(E) == 0,
                "neuron_kernels: element types are float, neuron_kernels::bf16 and neuron_kernels::f16");
  return DType::f32;
}();
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<bf16> = DType::bf16;
template <>
inline constexpr DType dtype_of<f16> = DType::f16;

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
