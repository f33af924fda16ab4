// Vec of the portable page: 4 f32 lanes in the compilers' vector extension,
// which becomes SSE2, NEON or scalar code.
//
// Text included by page_portable.hpp inside its namespace.
// No intrinsics: correct on any CPU. fma rounds twice here.

using LanesF32 = float __attribute__((vector_size(16)));
using LanesI32 = std::int32_t __attribute__((vector_size(16)));
using LanesU32 = std::uint32_t __attribute__((vector_size(16)));
using LanesU16 = std::uint16_t __attribute__((vector_size(8)));

/// 4 lanes of f32.
struct Vec {
  static constexpr int len = 4;
  LanesF32 reg;
};

/// One truth value per lane: all bits set, or none.
struct Mask {
  LanesI32 reg;
};

inline LanesU32 bits_of(Vec x) { return reinterpret_cast<LanesU32>(x.reg); }
inline Vec from_bits(LanesU32 x) { return {reinterpret_cast<LanesF32>(x)}; }
inline LanesU32 choose(LanesI32 mask, LanesU32 yes, LanesU32 no) {
  const LanesU32 m = reinterpret_cast<LanesU32>(mask);
  return (yes & m) | (no & ~m);
}

inline Vec vec_zero() { return {LanesF32{0, 0, 0, 0}}; }
inline Vec vec_set(float x) { return {LanesF32{x, x, x, x}}; }

inline Vec vec_load(const float* src) {
  Vec x;
  __builtin_memcpy(&x.reg, src, sizeof x.reg);
  return x;
}
/// Lanes from n on are 0; reads n floats only, 0 <= n <= len.
inline Vec vec_load_part(const float* src, int n) {
  if (n >= Vec::len) return vec_load(src);
  return {LanesF32{n > 0 ? src[0] : 0.0f, n > 1 ? src[1] : 0.0f, n > 2 ? src[2] : 0.0f, 0.0f}};
}
inline void vec_store(float* dst, Vec x) { __builtin_memcpy(dst, &x.reg, sizeof x.reg); }
inline constexpr bool stores_past_caches = false;
inline void vec_store_past(float* dst, Vec x) { vec_store(dst, x); }
inline void finish_stores() {}
inline void vec_store_part(float* dst, Vec x, int n) {
  float lanes[Vec::len];
  vec_store(lanes, x);
  for (int i = 0; i < n; ++i) dst[i] = lanes[i];
}

/// A hint that x is used more than once; see the pages of x86.
inline void load_once(Vec&) {}

inline Vec operator+(Vec a, Vec b) { return {a.reg + b.reg}; }
inline Vec operator-(Vec a, Vec b) { return {a.reg - b.reg}; }
inline Vec operator*(Vec a, Vec b) { return {a.reg * b.reg}; }
inline Vec operator/(Vec a, Vec b) { return {a.reg / b.reg}; }
inline Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
inline Vec fnma(Vec a, Vec b, Vec c) { return c - a * b; }

inline Mask less(Vec a, Vec b) { return {a.reg < b.reg}; }
inline Mask less_equal(Vec a, Vec b) { return {a.reg <= b.reg}; }
inline Mask greater(Vec a, Vec b) { return {a.reg > b.reg}; }
inline Mask is_nan(Vec a) { return {a.reg != a.reg}; }
inline Vec select(Mask mask, Vec yes, Vec no) {
  return from_bits(choose(mask.reg, bits_of(yes), bits_of(no)));
}

/// The second operand where either is NaN, as on x86.
inline Vec max(Vec a, Vec b) { return select(greater(a, b), a, b); }
inline Vec min(Vec a, Vec b) { return select(less(a, b), a, b); }

inline Vec abs(Vec x) { return from_bits(bits_of(x) & 0x7fffffffu); }
inline Vec copysign(Vec magnitude, Vec sign) {
  return from_bits((bits_of(magnitude) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}
inline Vec sqrt(Vec x) {
  for (int i = 0; i < Vec::len; ++i) x.reg[i] = __builtin_sqrtf(x.reg[i]);
  return x;
}
/// To the nearest integer, ties to even: adding 2^23 leaves no fraction bits.
/// From 2^23 on, x is integral already.
inline Vec round_even(Vec x) {
  const Vec magic = vec_set(0x1p23f);
  return select(less(abs(x), magic), copysign((abs(x) + magic) - magic, x), x);
}

/// 2^n for integral n in [-126, 127].
inline Vec pow2n(Vec n) {
  const LanesI32 exponent = __builtin_convertvector(n.reg, LanesI32) + 127;
  return from_bits(reinterpret_cast<LanesU32>(exponent) << 23);
}
/// x 2^n, rounded once (to denormals, 0 and Inf too), for integral n in [-252, 254] and |x| near 1:
/// by two halves of n.
inline Vec scale_pow2(Vec x, Vec n) {
  const LanesI32 whole = __builtin_convertvector(n.reg, LanesI32);
  const LanesI32 half = whole >> 1;
  const LanesU32 first = reinterpret_cast<LanesU32>(half + 127) << 23;
  const LanesU32 second = reinterpret_cast<LanesU32>(whole - half + 127) << 23;
  return x * from_bits(first) * from_bits(second);
}
/// x cut to its upper 12 significant bits: products of two such are exact.
inline Vec upper_bits(Vec x) { return from_bits(bits_of(x) & 0xfffff000u); }
/// Lanes from n on become 0, 0 <= n <= len.
inline Vec keep_first(Vec x, int n) {
  return from_bits(choose(LanesI32{0, 1, 2, 3} < n, bits_of(x), LanesU32{}));
}
/// x = mantissa(x) * 2^exponent(x), mantissa in [1, 2): for positive normal finite x.
inline Vec exponent(Vec x) {
  const LanesI32 biased = reinterpret_cast<LanesI32>(bits_of(x) >> 23);
  return {__builtin_convertvector(biased - 127, LanesF32)};
}
inline Vec mantissa(Vec x) { return from_bits((bits_of(x) & 0x007fffffu) | 0x3f800000u); }

/// (x0 + x2) + (x1 + x3): halves, then halves again, as on the other pages.
inline float reduce_add(Vec x) { return (x.reg[0] + x.reg[2]) + (x.reg[1] + x.reg[3]); }
inline float reduce_max(Vec x) {
  const float a = x.reg[0] > x.reg[2] ? x.reg[0] : x.reg[2];
  const float b = x.reg[1] > x.reg[3] ? x.reg[1] : x.reg[3];
  return a > b ? a : b;
}
inline float reduce_min(Vec x) {
  const float a = x.reg[0] < x.reg[2] ? x.reg[0] : x.reg[2];
  const float b = x.reg[1] < x.reg[3] ? x.reg[1] : x.reg[3];
  return a < b ? a : b;
}
/// Four reduce_add at once, bit for bit the same, to dst[0..3].
inline void reduce_add_four(float* dst, Vec a, Vec b, Vec c, Vec d) {
  dst[0] = reduce_add(a);
  dst[1] = reduce_add(b);
  dst[2] = reduce_add(c);
  dst[3] = reduce_add(d);
}

inline LanesU32 load_u16(const std::uint16_t* src) {
  LanesU16 x;
  __builtin_memcpy(&x, src, sizeof x);
  return __builtin_convertvector(x, LanesU32);
}
inline void store_u16(std::uint16_t* dst, LanesU32 x) {
  const LanesU16 narrow = __builtin_convertvector(x, LanesU16);
  __builtin_memcpy(dst, &narrow, sizeof narrow);
}

inline Vec vec_load_bf16(const std::uint16_t* src) { return from_bits(load_u16(src) << 16); }

inline Vec vec_load_f16(const std::uint16_t* src) {
  const LanesU32 half = load_u16(src);
  const LanesU32 sign = (half & 0x8000u) << 16;
  const LanesU32 magnitude = half & 0x7fffu;
  const LanesU32 normal = (magnitude << 13) + 0x38000000u;
  const LanesF32 scaled = __builtin_convertvector(reinterpret_cast<LanesI32>(magnitude), LanesF32) * 0x1p-24f;
  const LanesU32 special =
      ((magnitude << 13) | 0x7f800000u) | choose(magnitude > 0x7c00u, LanesU32{} + 0x00400000u, LanesU32{});
  LanesU32 result = choose(magnitude < 0x0400u, reinterpret_cast<LanesU32>(scaled), normal);
  result = choose(magnitude >= 0x7c00u, special, result);
  return from_bits(result | sign);
}

/// To nearest even; NaN keeps its upper bits and becomes quiet (to_bf16 of dtype.hpp).
inline void vec_store_bf16(std::uint16_t* dst, Vec x) {
  const LanesU32 u = bits_of(x);
  const LanesU32 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  store_u16(dst, choose(is_nan(x).reg, (u >> 16) | 0x0040u, rounded));
}

/// To nearest even (to_f16 of dtype.hpp, with its branches as selections).
inline void vec_store_f16(std::uint16_t* dst, Vec x) {
  const LanesU32 u = bits_of(x);
  const LanesU32 sign = (u >> 16) & 0x8000u;
  const LanesU32 magnitude = u & 0x7fffffffu;
  const LanesU32 normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const LanesU32 denormal = bits_of(abs(x) + vec_set(0.5f)) - 0x3f000000u;
  LanesU32 result = choose(magnitude < 0x38800000u, denormal, normal);
  result = choose(magnitude >= 0x477ff000u, LanesU32{} + 0x7c00u, result);
  result = choose(magnitude > 0x7f800000u, 0x7e00u | ((magnitude >> 13) & 0x01ffu), result);
  store_u16(dst, result | sign);
}

inline Vec vec_load_bf16_part(const std::uint16_t* src, int n) {
  std::uint16_t lanes[Vec::len] = {};
  for (int i = 0; i < n; ++i) lanes[i] = src[i];
  return vec_load_bf16(lanes);
}
inline Vec vec_load_f16_part(const std::uint16_t* src, int n) {
  std::uint16_t lanes[Vec::len] = {};
  for (int i = 0; i < n; ++i) lanes[i] = src[i];
  return vec_load_f16(lanes);
}
inline void vec_store_bf16_part(std::uint16_t* dst, Vec x, int n) {
  std::uint16_t lanes[Vec::len];
  vec_store_bf16(lanes, x);
  for (int i = 0; i < n; ++i) dst[i] = lanes[i];
}
inline void vec_store_f16_part(std::uint16_t* dst, Vec x, int n) {
  std::uint16_t lanes[Vec::len];
  vec_store_f16(lanes, x);
  for (int i = 0; i < n; ++i) dst[i] = lanes[i];
}

/// dst(j, i) = src(i, j) for i, j < len.
inline void transpose_block(float* dst, std::int64_t dst_step, const float* src, std::int64_t src_step) {
  for (int j = 0; j < Vec::len; ++j) {
    vec_store(dst + j * dst_step,
              {LanesF32{src[j], src[src_step + j], src[2 * src_step + j], src[3 * src_step + j]}});
  }
}
