// Vec of the AVX2 page: 8 f32 lanes of a ymm register. Text included by page_avx2.hpp inside its region.

/// 8 lanes of f32.
struct Vec {
  static constexpr int len = 8;
  __m256 reg;
};

/// One truth value per lane: all bits set, or none.
struct Mask {
  __m256 reg;
};

inline Vec vec_zero() { return {_mm256_setzero_ps()}; }
inline Vec vec_set(float x) { return {_mm256_set1_ps(x)}; }

/// All bits set in lanes below n.
inline __m256i lanes_below(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline Vec vec_load(const float* src) { return {_mm256_loadu_ps(src)}; }
/// Lanes from n on are 0; reads n floats only, 0 <= n <= len.
inline Vec vec_load_part(const float* src, int n) { return {_mm256_maskload_ps(src, lanes_below(n))}; }
inline void vec_store(float* dst, Vec x) { _mm256_storeu_ps(dst, x.reg); }
inline constexpr bool stores_past_caches = true;
/// Past the caches, to an address that is a multiple of Vec's size.
inline void vec_store_past(float* dst, Vec x) { _mm256_stream_ps(dst, x.reg); }
inline void finish_stores() { _mm_sfence(); }
inline void vec_store_part(float* dst, Vec x, int n) { _mm256_maskstore_ps(dst, lanes_below(n), x.reg); }

/// Keeps g++ from loading x again at each use:
/// for 2 rows it puts the load into every FMA, and loads bound the tile.
inline void load_once(Vec& x) { asm("" : "+x"(x.reg)); }

inline Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.reg, b.reg)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.reg, b.reg)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.reg, b.reg)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.reg, b.reg)}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.reg, b.reg, c.reg)}; }
inline Vec fnma(Vec a, Vec b, Vec c) { return {_mm256_fnmadd_ps(a.reg, b.reg, c.reg)}; }

inline Mask less(Vec a, Vec b) { return {_mm256_cmp_ps(a.reg, b.reg, _CMP_LT_OQ)}; }
inline Mask less_equal(Vec a, Vec b) { return {_mm256_cmp_ps(a.reg, b.reg, _CMP_LE_OQ)}; }
inline Mask greater(Vec a, Vec b) { return {_mm256_cmp_ps(a.reg, b.reg, _CMP_GT_OQ)}; }
inline Mask is_nan(Vec a) { return {_mm256_cmp_ps(a.reg, a.reg, _CMP_UNORD_Q)}; }
inline Vec select(Mask mask, Vec yes, Vec no) { return {_mm256_blendv_ps(no.reg, yes.reg, mask.reg)}; }

/// The second operand where either is NaN.
inline Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.reg, b.reg)}; }
inline Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.reg, b.reg)}; }

inline Vec abs(Vec x) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x.reg)}; }
inline Vec copysign(Vec magnitude, Vec sign) {
  const __m256 sign_bit = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(_mm256_andnot_ps(sign_bit, magnitude.reg), _mm256_and_ps(sign_bit, sign.reg))};
}
inline Vec sqrt(Vec x) { return {_mm256_sqrt_ps(x.reg)}; }
inline Vec round_even(Vec x) {
  return {_mm256_round_ps(x.reg, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

/// 2^n for integral n in [-126, 127].
inline Vec pow2n(Vec n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n.reg), _mm256_set1_epi32(127));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(biased, 23))};
}
/// x 2^n, rounded once (to denormals, 0 and Inf too), for integral n in [-252, 254] and |x| near 1:
/// by two halves of n.
inline Vec scale_pow2(Vec x, Vec n) {
  const __m256i whole = _mm256_cvtps_epi32(n.reg);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256i second = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
  return {_mm256_mul_ps(_mm256_mul_ps(x.reg, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second))};
}
/// x cut to its upper 12 significant bits: products of two such are exact.
inline Vec upper_bits(Vec x) {
  return {_mm256_and_ps(x.reg, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xfffff000u))))};
}
/// Lanes from n on become 0, 0 <= n <= len.
inline Vec keep_first(Vec x, int n) { return {_mm256_and_ps(x.reg, _mm256_castsi256_ps(lanes_below(n)))}; }
/// x = mantissa(x) * 2^exponent(x), mantissa in [1, 2): for positive normal finite x.
inline Vec exponent(Vec x) {
  const __m256i biased = _mm256_srli_epi32(_mm256_castps_si256(x.reg), 23);
  return {_mm256_cvtepi32_ps(_mm256_sub_epi32(biased, _mm256_set1_epi32(127)))};
}
inline Vec mantissa(Vec x) {
  const __m256i fraction = _mm256_and_si256(_mm256_castps_si256(x.reg), _mm256_set1_epi32(0x007fffff));
  return {_mm256_castsi256_ps(_mm256_or_si256(fraction, _mm256_set1_epi32(0x3f800000)))};
}

// Reductions halve the register until one lane is left: lanes i and i + 4, then i + 2, then i + 1.
inline float reduce_add(Vec x) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x.reg), _mm256_extractf128_ps(x.reg, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float reduce_max(Vec x) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(x.reg), _mm256_extractf128_ps(x.reg, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline float reduce_min(Vec x) {
  const __m128 four = _mm_min_ps(_mm256_castps256_ps128(x.reg), _mm256_extractf128_ps(x.reg, 1));
  const __m128 two = _mm_min_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_min_ss(two, _mm_movehdup_ps(two)));
}
/// Four reduce_add at once, bit for bit the same, to dst[0..3].
inline void reduce_add_four(float* dst, Vec a, Vec b, Vec c, Vec d) {
  const __m256 ab =
      _mm256_add_ps(_mm256_permute2f128_ps(a.reg, b.reg, 0x20), _mm256_permute2f128_ps(a.reg, b.reg, 0x31));
  const __m256 cd =
      _mm256_add_ps(_mm256_permute2f128_ps(c.reg, d.reg, 0x20), _mm256_permute2f128_ps(c.reg, d.reg, 0x31));
  // Lane by lane of 128 bits: [a c] and [b d], each two sums of two: a0 c0 a1 c1 | b0 d0 b1 d1.
  const __m256 two = _mm256_add_ps(_mm256_unpacklo_ps(ab, cd), _mm256_unpackhi_ps(ab, cd));
  const __m128 low = _mm256_castps256_ps128(two);
  const __m128 high = _mm256_extractf128_ps(two, 1);
  const __m128 sum_ac_bd = _mm_add_ps(_mm_movelh_ps(low, high), _mm_movehl_ps(high, low));  // a c b d
  _mm_storeu_ps(dst, _mm_shuffle_ps(sum_ac_bd, sum_ac_bd, _MM_SHUFFLE(3, 1, 2, 0)));
}

inline Vec vec_load_bf16(const std::uint16_t* src) {
  const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16))};
}
inline Vec vec_load_f16(const std::uint16_t* src) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src)))};
}
/// To nearest even; NaN keeps its upper bits and becomes quiet (to_bf16 of dtype.hpp).
inline void vec_store_bf16(std::uint16_t* dst, Vec x) {
  const __m256i u = _mm256_castps_si256(x.reg);
  const __m256i upper = _mm256_srli_epi32(u, 16);
  const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x0040));
  const __m256i result = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan(x).reg));
  const __m128i packed =
      _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), packed);
}
/// To nearest even; VCVTPS2PH treats NaN as to_f16 of dtype.hpp does.
inline void vec_store_f16(std::uint16_t* dst, Vec x) {
  const __m128i half = _mm256_cvtps_ph(x.reg, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), half);
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
/// Rows i and i + 4 share a register, so only 4 x 4 transposes within 128 bits remain.
inline void transpose_block(float* dst, std::int64_t dst_step, const float* src, std::int64_t src_step) {
  for (int j = 0; j < Vec::len; j += 4) {
    __m256 row[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m256 low = _mm256_castps128_ps256(_mm_loadu_ps(src + i * src_step + j));
      row[i] = _mm256_insertf128_ps(low, _mm_loadu_ps(src + (i + 4) * src_step + j), 1);
    }
    const __m256 low01 = _mm256_unpacklo_ps(row[0], row[1]), high01 = _mm256_unpackhi_ps(row[0], row[1]);
    const __m256 low23 = _mm256_unpacklo_ps(row[2], row[3]), high23 = _mm256_unpackhi_ps(row[2], row[3]);
    float* d = dst + j * dst_step;
    _mm256_storeu_ps(d, _mm256_shuffle_ps(low01, low23, _MM_SHUFFLE(1, 0, 1, 0)));
    _mm256_storeu_ps(d + dst_step, _mm256_shuffle_ps(low01, low23, _MM_SHUFFLE(3, 2, 3, 2)));
    _mm256_storeu_ps(d + 2 * dst_step, _mm256_shuffle_ps(high01, high23, _MM_SHUFFLE(1, 0, 1, 0)));
    _mm256_storeu_ps(d + 3 * dst_step, _mm256_shuffle_ps(high01, high23, _MM_SHUFFLE(3, 2, 3, 2)));
  }
}
