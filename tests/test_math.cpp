// The elementary functions of every page against long double:
// bounds in ULP, special values, whole range of f32.
//
// The usual run takes a stride over all bit patterns with the neighbourhood of every special point;
// `test_math "[.exhaustive]"` walks all 2^32, which is where the bounds in docs/math.md come from.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "neuron_kernels/host/pages.hpp"

namespace nk = neuron_kernels;
using nk::Act;
using nk::host::Page;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Twice the argument of gelu_tanh's tanh: 2 sqrt(2 / pi) (x + 0.044715 x^3).
template <class Real>
Real gelu_tanh_argument(Real x) {
  return Real(1.595769121605730711759542105L) * (x + Real(0.044715L) * x * x * x);
}

/// e^x, without the C library's slow paths:
/// beyond these limits it is Inf or 0 by f32's measure whatever it is multiplied with here.
template <class Real>
Real exp_of(Real x) {
  return x > 100 ? Real(inf) : x < -200 ? Real(0) : std::exp(x);
}

template <class Real>
Real sigmoid(Real x) {
  const Real e = exp_of(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

/// The function's meaning in the arithmetic of Real.
template <class Real>
Real meaning(Act f, Real x) {
  switch (f) {
    case Act::identity:
      return x;
    case Act::exp:
      return exp_of(x);
    case Act::log:
      return std::log(x);
    case Act::tanh:
      return std::tanh(x);
    case Act::erf:
      return std::erf(x);
    case Act::sigmoid:
      return sigmoid(x);
    case Act::rsqrt:
      return 1 / std::sqrt(x);
    case Act::square:
      return x * x;
    case Act::relu:
      return x < 0 ? 0 : x;
    case Act::silu:
      return x < -1000 ? Real(-0.0) : x * sigmoid(x);
    case Act::gelu:
      return x < -100 ? Real(-0.0) : x * std::erfc(-x * Real(0.707106781186547524400844362L)) / 2;
    case Act::gelu_tanh:
      return x < -100 ? Real(-0.0) : x * sigmoid(gelu_tanh_argument(x));
  }
  return 0;
}

/// The last place of an f32 near want: 2^-23 of its power of two, and 2^-149 among the denormals.
double unit_of(double want) {
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(want) >> 52 & 0x7ffu;
  constexpr std::uint64_t lowest = 1023 - 149;
  return std::bit_cast<double>((exponent < lowest + 23 ? lowest : exponent - 23) << 52);
}

/// Distance of got from want in ULP;
/// infinite unless both are NaN or the same infinity, if either is not finite.
template <class Real>
double ulps(float got, Real want) {
  const auto rounded = static_cast<float>(want);
  if (std::isfinite(rounded) && std::isfinite(got)) {
    return static_cast<double>(std::fabs(static_cast<Real>(got) - want)) / unit_of(static_cast<double>(want));
  }
  const bool same = std::isnan(want) ? std::isnan(got) : got == rounded;
  return same ? 0 : std::numeric_limits<double>::infinity();
}

/// Stated bounds (docs/math.md): with FMA, and on the portable page, where a product and a sum round apart.
struct Bound {
  Act f;
  double fma, portable;
};
constexpr Bound bounds[] = {
    {Act::identity, 0, 0},  {Act::exp, 1, 1.25},    {Act::log, 1, 1},       {Act::tanh, 2.75, 2.75},
    {Act::erf, 1.75, 1.75}, {Act::sigmoid, 2.5, 3}, {Act::rsqrt, 1.5, 1.5}, {Act::square, 0.5, 0.5},
    {Act::relu, 0, 0},      {Act::silu, 3.5, 3.75}, {Act::gelu, 6.5, 7},    {Act::gelu_tanh, 4.25, 5},
};

/// How far the bound of f is stretched at x:
/// gelu_tanh's grows with its argument on the negative side, where e^-|z| magnifies the rounding of z.
double stretch(Act f, float x) {
  if (f != Act::gelu_tanh || !(x < 0) || x < -20) return 0;
  return 3 * std::fabs(gelu_tanh_argument(static_cast<double>(x)));
}

struct Worst {
  double ulps = 0;  // beyond stretch()
  float x = 0, got = 0;
};

/// Widens worst by the page's f over the given arguments.
/// Judged in double first and in long double where it counts.
void measure(const Page& page, Act f, const std::vector<float>& x, Worst& worst) {
  static std::vector<float> got;
  got.assign(x.size(), quiet_nan);
  const float one = 1, none = -0.0f;  // x * 1 + -0 is x for both zeros
  const auto n = static_cast<int>(x.size());
  page.activate(f, {got.data(), 0}, {x.data(), 0}, {&one, 0}, {&none, 0}, {nullptr, 0}, 1, n);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double allowed = worst.ulps + stretch(f, x[i]);
    if (ulps(got[i], meaning<double>(f, x[i])) < allowed - 1e-4) continue;
    const double exact = ulps(got[i], meaning<long double>(f, x[i]));
    if (exact > allowed) worst = {exact - stretch(f, x[i]), x[i], got[i]};
  }
}

void check(const Page& page, const Bound& bound, const Worst& worst) {
  const double allowed = std::string(page.name) == "portable" ? bound.portable : bound.fma;
  INFO("page " << page.name << ", " << nk::name_of(bound.f) << "(" << std::hexfloat << worst.x << ") = "
               << worst.got << std::defaultfloat << ", off by " << worst.ulps << " ULP, allowed " << allowed);
  CHECK(worst.ulps <= allowed);
}

/// Every 1021st pattern, and 400 patterns on both sides of each power of two
/// and of each threshold of the functions.
std::vector<float> sampled() {
  std::vector<float> x;
  for (std::uint64_t u = 0; u <= 0xffffffffu; u += 1021)
    x.push_back(from_bits(static_cast<std::uint32_t>(u)));
  std::vector<float> centers = {88.72284f, 88.37626f, 87.33654f, 103.27893f, 103.97208f, 104.f,
                                108.7f,    110.f,     128.f,     89.f,       0.34657f,   1.03972f,
                                9.0109f,   10.f,      3.9192f,   8.f,        15.f,       14.25f,
                                13.2f,     0.70711f,  1.41421f,  1.f,        10.2f,      inf};
  for (int e = -149; e < 128; ++e) centers.push_back(std::ldexp(1.0f, e));
  for (const float c : centers) {
    for (std::uint32_t d = 0; d <= 800; ++d) {
      const std::uint32_t u = bits_of(c) - 400 + d;
      x.push_back(from_bits(u & 0x7fffffffu));
      x.push_back(from_bits(u | 0x80000000u));
    }
  }
  return x;
}

float value(const Page& page, Act f, float x) {
  float y = quiet_nan;
  const float one = 1, none = -0.0f;
  page.activate(f, {&y, 0}, {&x, 0}, {&one, 0}, {&none, 0}, {nullptr, 0}, 1, 1);
  return y;
}

}  // namespace

TEST_CASE("elementary functions stay within their bounds over a stride of all arguments") {
  const std::vector<float> x = sampled();
  for (const Page* page : nk::host::all_pages()) {
    for (const Bound& bound : bounds) {
      Worst worst;
      measure(*page, bound.f, x, worst);
      check(*page, bound, worst);
    }
  }
}

TEST_CASE("elementary functions stay within their bounds for every argument", "[.exhaustive]") {
  for (const Page* page : nk::host::all_pages()) {
    for (const Bound& bound : bounds) {
      DYNAMIC_SECTION(page->name << " " << nk::name_of(bound.f)) {
        Worst worst;
        std::vector<float> x(1 << 14);
        for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += 1 << 14) {
          for (std::uint32_t i = 0; i < 1 << 14; ++i) x[i] = from_bits(static_cast<std::uint32_t>(first) + i);
          measure(*page, bound.f, x, worst);
        }
        std::printf("%-9s %-10s %.3f ULP at %a\n", page->name, nk::name_of(bound.f), worst.ulps,
                    static_cast<double>(worst.x));
        std::fflush(stdout);
        check(*page, bound, worst);
      }
    }
  }
}

TEST_CASE("elementary functions at zeros, infinities and NaN") {
  struct Case {
    Act f;
    float x, want;
  };
  constexpr float big = std::numeric_limits<float>::max();
  constexpr float tiny = std::numeric_limits<float>::denorm_min();
  const Case cases[] = {
      {Act::exp, -inf, 0},
      {Act::exp, inf, inf},
      {Act::exp, 0, 1},
      {Act::exp, -0.0f, 1},
      {Act::exp, -big, 0},
      {Act::exp, big, inf},
      {Act::exp, 0x1.62e42ep6f, 0x1.ffff08p127f},
      {Act::exp, 0x1.62e43p6f, inf},
      {Act::exp, -0x1.9fe368p6f, tiny},
      {Act::exp, -0x1.9fe36ap6f, 0},
      {Act::log, 0, -inf},
      {Act::log, -0.0f, -inf},
      {Act::log, 1, 0},
      {Act::log, inf, inf},
      {Act::tanh, inf, 1},
      {Act::tanh, -inf, -1},
      {Act::tanh, -0.0f, -0.0f},
      {Act::tanh, tiny, tiny},
      {Act::erf, inf, 1},
      {Act::erf, -inf, -1},
      {Act::erf, -0.0f, -0.0f},
      {Act::erf, big, 1},
      {Act::sigmoid, -inf, 0},
      {Act::sigmoid, inf, 1},
      {Act::sigmoid, 0, 0.5f},
      {Act::rsqrt, 0, inf},
      {Act::rsqrt, inf, 0},
      {Act::rsqrt, 0x1p-148f, 0x1p74f},
      {Act::rsqrt, 4, 0.5f},
      {Act::square, -3, 9},
      {Act::square, -inf, inf},
      {Act::relu, -inf, 0},
      {Act::relu, inf, inf},
      {Act::relu, -2, 0},
      {Act::silu, -inf, -0.0f},
      {Act::silu, inf, inf},
      {Act::silu, big, big},
      {Act::silu, -big, -0.0f},
      {Act::silu, -0.0f, -0.0f},
      {Act::gelu, -inf, -0.0f},
      {Act::gelu, inf, inf},
      {Act::gelu, big, big},
      {Act::gelu, -big, -0.0f},
      {Act::gelu, -0.0f, -0.0f},
      {Act::gelu, 0, 0},
      {Act::gelu_tanh, -inf, -0.0f},
      {Act::gelu_tanh, inf, inf},
      {Act::gelu_tanh, big, big},
      {Act::gelu_tanh, -big, -0.0f},
      {Act::gelu_tanh, 0, 0},
  };
  for (const Page* page : nk::host::all_pages()) {
    for (const Case& c : cases) {
      const float got = value(*page, c.f, c.x);
      INFO(page->name << " " << nk::name_of(c.f) << "(" << c.x << ") = " << got << ", want " << c.want);
      CHECK(bits_of(got) == bits_of(c.want));
    }
    for (int f = 0; f < nk::act_count; ++f) {
      INFO(page->name << " " << nk::name_of(static_cast<Act>(f)));
      CHECK(std::isnan(value(*page, static_cast<Act>(f), quiet_nan)));
      CHECK(std::isnan(value(*page, static_cast<Act>(f), -quiet_nan)));
    }
    for (const float x : {-tiny, -1.0f, -big, -inf}) {
      CHECK(std::isnan(value(*page, Act::log, x)));
      CHECK(std::isnan(value(*page, Act::rsqrt, x)));
    }
  }
}
