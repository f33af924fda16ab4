// bf16 and f16: conversions against their definition in double,
// and the pages' widen and narrow against dtype.hpp.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "neuron_kernels/core/dtype.hpp"
#include "neuron_kernels/host/pages.hpp"

namespace nk = neuron_kernels;
using nk::host::Page;

namespace {

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// A 16-bit format by its numbers; `value` is the definition of a pattern, `round` that of a conversion.
struct Format {
  int fraction_bits, bias;

  std::uint32_t infinity() const { return 0x7fffu & ~((1u << fraction_bits) - 1u); }
  double value(std::uint32_t bits) const {
    const std::uint32_t magnitude = bits & 0x7fffu;
    const auto exponent = static_cast<int>(magnitude >> fraction_bits);
    const std::uint32_t fraction = magnitude & ((1u << fraction_bits) - 1u);
    const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
    if (magnitude == infinity()) return sign * std::numeric_limits<double>::infinity();
    if (magnitude > infinity()) return std::numeric_limits<double>::quiet_NaN();
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp(fraction + (1u << fraction_bits), exponent - bias - fraction_bits);
  }
  /// The pattern nearest to x, the even one of two as near, as if exponents went on: from half a unit above
  /// the largest finite number on, that is infinity. x is not NaN.
  std::uint32_t round(double x) const {
    const std::uint32_t sign = std::signbit(x) ? 0x8000u : 0u;
    const double magnitude = std::fabs(x);
    std::uint32_t low = 0, high = infinity();  // patterns are in the order of their values
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      (value(middle) <= magnitude ? low : high) = middle;
    }
    const double top = high == infinity() ? 2 * value(high - 1) - value(high - 2) : value(high);
    const double to_low = magnitude - value(low), to_high = top - magnitude;
    const bool up = std::isinf(x) || to_high < to_low || (to_high == to_low && (low & 1u) != 0);
    return sign | (up ? high : low);
  }
};
constexpr Format bf16_format{7, 127}, f16_format{10, 15};

bool is_nan(const Format& format, std::uint32_t bits) { return (bits & 0x7fffu) > format.infinity(); }

/// Every f32 pattern that rounding can trip over: each 16-bit number, the midpoints between neighbours, and
/// the f32 numbers next to both; then a stride over everything.
std::vector<float> patterns() {
  std::vector<float> x;
  for (const Format& format : {bf16_format, f16_format}) {
    for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits) {
      if (is_nan(format, bits) || (bits & 0x7fffu) == format.infinity()) continue;
      const double here = format.value(bits), next = format.value(bits + 1);
      const auto middle = static_cast<float>(std::isinf(next) ? here : here + (next - here) / 2);
      for (const float center : {static_cast<float>(here), middle}) {
        for (std::uint32_t d = 0; d <= 2; ++d) x.push_back(from_bits(bits_of(center) - 1 + d));
      }
    }
  }
  for (std::uint64_t u = 0; u <= 0xffffffffu; u += 4093)
    x.push_back(from_bits(static_cast<std::uint32_t>(u)));
  for (const std::uint32_t u :
       {0x7f800000u, 0xff800000u, 0x7f800001u, 0x7fc00000u, 0xffbfffffu, 0x7fffffffu, 0x7f80ffffu,
        0x7f810000u, 0xff801fffu, 0x7f802000u, 0x477fefffu, 0x477ff000u, 0x7f7f7fffu, 0x7f7f8000u}) {
    x.push_back(from_bits(u));
  }
  return x;
}

template <class E>
std::uint32_t narrow(float x) {
  if constexpr (std::is_same_v<E, nk::bf16>) return nk::to_bf16(x).bits;
  return nk::to_f16(x).bits;
}

template <class E>
void check_conversions(const Format& format) {
  for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits) {
    const float wide = nk::to_f32(E{static_cast<std::uint16_t>(bits)});
    INFO("pattern " << std::hex << bits << " as f32 " << bits_of(wide));
    if (is_nan(format, bits)) {
      const std::uint32_t quiet = 1u << (format.fraction_bits - 1);
      const bool good = std::isnan(wide) && narrow<E>(wide) == (bits | quiet);  // payload and sign kept
      if (!good) CHECK(good);
      continue;
    }
    const double value = format.value(bits);
    const bool good = static_cast<double>(wide) == value && std::signbit(wide) == std::signbit(value) &&
                      narrow<E>(wide) == bits;
    if (!good) CHECK(good);
  }
  int wrong = 0;
  for (const float x : patterns()) {
    const std::uint32_t got = narrow<E>(x);
    bool good = false;
    if (std::isnan(x)) {
      // quiet, sign kept, payload cut
      const std::uint32_t payload =
          bits_of(x) >> (23 - format.fraction_bits) & ((1u << format.fraction_bits) - 1u);
      const std::uint32_t want =
          (bits_of(x) >> 16 & 0x8000u) | format.infinity() | payload | 1u << (format.fraction_bits - 1);
      good = got == want;
    } else {
      good = got == format.round(static_cast<double>(x));
    }
    if (!good && wrong++ == 0)
      UNSCOPED_INFO("first wrong: f32 " << std::hex << bits_of(x) << " became " << got);
  }
  CHECK(wrong == 0);
}

/// A page's conversion of n elements, with guards around the result: it is dtype.hpp's, bit for bit.
template <class E>
void check_page(const Page& page, const std::vector<float>& x) {
  constexpr bool is_bf16 = std::is_same_v<E, nk::bf16>;
  const auto narrow_all = is_bf16 ? page.narrow_bf16 : page.narrow_f16;
  const auto widen_all = is_bf16 ? page.widen_bf16 : page.widen_f16;
  std::vector<std::uint16_t> half(x.size() + 2, 0xabcd);
  std::vector<float> wide(x.size() + 2, 123.0f);
  const auto n = static_cast<std::int64_t>(x.size());
  narrow_all(half.data() + 1, x.data(), n);
  widen_all(wide.data() + 1, half.data() + 1, n);
  int wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint16_t bits = half[i + 1];
    const float want = nk::to_f32(E{bits});
    const bool good = bits == narrow<E>(x[i]) && bits_of(wide[i + 1]) == bits_of(want);
    if (!good && wrong++ == 0) {
      UNSCOPED_INFO("first wrong: f32 " << std::hex << bits_of(x[i]) << " narrowed to " << bits << ", want "
                                        << narrow<E>(x[i]) << ", and widened to " << bits_of(wide[i + 1])
                                        << ", want " << bits_of(want));
    }
  }
  CHECK(wrong == 0);
  CHECK(half.front() == 0xabcd);
  CHECK(half.back() == 0xabcd);
  CHECK(wide.front() == 123.0f);
  CHECK(wide.back() == 123.0f);
}

template <class E>
void check_pages() {
  const std::vector<float> all = patterns();
  std::vector<float> every(65536);  // narrows to and widens from each pattern
  for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits)
    every[bits] = nk::to_f32(E{static_cast<std::uint16_t>(bits)});
  for (const Page* page : nk::host::all_pages()) {
    INFO("page " << page->name);
    check_page<E>(*page, all);
    check_page<E>(*page, every);
    const int len = page->vector_len;
    for (const int n : {0, 1, 2, 3, len - 1, len, len + 1, 31, 67}) {
      INFO("n " << n);
      check_page<E>(*page, {all.begin() + 70001, all.begin() + 70001 + n});
    }
    // Widening alone, signalling NaN included, which narrowing never makes.
    std::vector<std::uint16_t> half(65536);
    std::vector<float> wide(65536);
    for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits) half[bits] = static_cast<std::uint16_t>(bits);
    (std::is_same_v<E, nk::bf16> ? page->widen_bf16 : page->widen_f16)(wide.data(), half.data(), 65536);
    int wrong = 0;
    for (std::uint32_t bits = 0; bits <= 0xffffu; ++bits) {
      wrong += bits_of(wide[bits]) != bits_of(nk::to_f32(E{half[bits]})) ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("bf16: to and from f32 by its definition") { check_conversions<nk::bf16>(bf16_format); }
TEST_CASE("f16: to and from f32 by its definition") { check_conversions<nk::f16>(f16_format); }
TEST_CASE("bf16: pages convert as dtype.hpp does") { check_pages<nk::bf16>(); }
TEST_CASE("f16: pages convert as dtype.hpp does") { check_pages<nk::f16>(); }

TEST_CASE("dtypes have sizes, names and roundoffs") {
  CHECK(nk::size_of(nk::DType::f32) == 4);
  CHECK(nk::size_of(nk::DType::bf16) == 2);
  CHECK(nk::size_of(nk::DType::f16) == 2);
  CHECK(std::string(nk::name_of(nk::DType::bf16)) == "bf16");
  CHECK(std::string(nk::name_of(nk::DType::f16)) == "f16");
  CHECK(nk::unit_roundoff(nk::DType::bf16) == 0x1p-8);
  CHECK(nk::unit_roundoff(nk::DType::f16) == 0x1p-11);
  CHECK(nk::dtype_of<float> == nk::DType::f32);
  CHECK(nk::dtype_of<nk::bf16> == nk::DType::bf16);
  CHECK(nk::dtype_of<nk::f16> == nk::DType::f16);
  static_assert(nk::to_bf16(1.0f).bits == 0x3f80 && nk::to_f16(1.0f).bits == 0x3c00,
                "conversions work at compile time");
}
