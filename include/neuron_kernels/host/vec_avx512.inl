// Vec of the AVX-512 page: 16 f32 lanes of a zmm register.
// Text included by page_avx512.hpp inside its region.

/// 16 lanes of f32.
struct Vec {
  static constexpr int len = 16;
  __m512 reg;
};

/// One bit per lane.
struct Mask {
  __mmask16 bits;
};

inline Vec vec_zero() { return {_mm512_setzero_ps()}; }
inline Vec vec_set(float x) { return {_mm512_set1_ps(x)}; }

/// Bits set for lanes below n.
inline __mmask16 lanes_below(int n) { return static_cast<__mmask16>((1u << n) - 1u); }

inline Vec vec_load(const float* src) { return {_mm512_loadu_ps(src)}; }
/// Lanes from n on are 0; reads n floats only, 0 <= n <= len.
inline Vec vec_load_part(const float* src, int n) { return {_mm512_maskz_loadu_ps(lanes_below(n), src)}; }
inline void vec_store(float* dst, Vec x) { _mm512_storeu_ps(dst, x.reg); }
inline constexpr bool stores_past_caches = true;
/// Past the caches, to an address that is a multiple of Vec's size.
inline void vec_store_past(float* dst, Vec x) { _mm512_stream_ps(dst, x.reg); }
inline void finish_stores() { _mm_sfence(); }
inline void vec_store_part(float* dst, Vec x, int n) { _mm512_mask_storeu_ps(dst, lanes_below(n), x.reg); }

/// Keeps g++ from loading x again at each use:
/// for 2 rows it puts the load into every FMA, and loads bound the tile.
inline void load_once(Vec& x) { asm("" : "+v"(x.reg)); }

inline Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.reg, b.reg)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.reg, b.reg)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.reg, b.reg)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.reg, b.reg)}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.reg, b.reg, c.reg)}; }
inline Vec fnma(Vec a, Vec b, Vec c) { return {_mm512_fnmadd_ps(a.reg, b.reg, c.reg)}; }

inline Mask less(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.reg, b.reg, _CMP_LT_OQ)}; }
inline Mask less_equal(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.reg, b.reg, _CMP_LE_OQ)}; }
inline Mask greater(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.reg, b.reg, _CMP_GT_OQ)}; }
inline Mask is_nan(Vec a) { return {_mm512_cmp_ps_mask(a.reg, a.reg, _CMP_UNORD_Q)}; }
inline Vec select(Mask mask, Vec yes, Vec no) { return {_mm512_mask_blend_ps(mask.bits, no.reg, yes.reg)}; }

/// The second operand where either is NaN.
inline Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.reg, b.reg)}; }
inline Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.reg, b.reg)}; }

inline Vec abs(Vec x) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), x.reg)}; }
inline Vec copysign(Vec magnitude, Vec sign) {
  const __m512 sign_bit = _mm512_set1_ps(-0.0f);
  return {_mm512_or_ps(_mm512_andnot_ps(sign_bit, magnitude.reg), _mm512_and_ps(sign_bit, sign.reg))};
}
inline Vec sqrt(Vec x) { return {_mm512_sqrt_ps(x.reg)}; }
inline Vec round_even(Vec x) {
  return {_mm512_roundscale_ps(x.reg, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

/// 2^n for integral n in [-126, 127].
inline Vec pow2n(Vec n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n.reg), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
}
/// x 2^n, rounded once (to denormals, 0 and Inf too), for integral n in [-252, 254].
inline Vec scale_pow2(Vec x, Vec n) { return {_mm512_scalef_ps(x.reg, n.reg)}; }
/// x cut to its upper 12 significant bits: products of two such are exact.
inline Vec upper_bits(Vec x) {
  return {_mm512_and_ps(x.reg, _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(0xfffff000u))))};
}
/// Lanes from n on become 0, 0 <= n <= len.
inline Vec keep_first(Vec x, int n) { return {_mm512_maskz_mov_ps(lanes_below(n), x.reg)}; }
/// x = mantissa(x) * 2^exponent(x), mantissa in [1, 2): for positive normal finite x.
inline Vec exponent(Vec x) { return {_mm512_getexp_ps(x.reg)}; }
inline Vec mantissa(Vec x) { return {_mm512_getmant_ps(x.reg, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src)}; }

inline __m256 lower_half(Vec x) { return _mm512_castps512_ps256(x.reg); }
inline __m256 upper_half(Vec x) { return _mm512_extractf32x8_ps(x.reg, 1); }

// Reductions halve the register until one lane is left: lanes i and i + 8, then i + 4, i + 2, i + 1.
inline float reduce_add(Vec x) {
  const __m256 eight = _mm256_add_ps(lower_half(x), upper_half(x));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float reduce_max(Vec x) {
  const __m256 eight = _mm256_max_ps(lower_half(x), upper_half(x));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline float reduce_min(Vec x) {
  const __m256 eight = _mm256_min_ps(lower_half(x), upper_half(x));
  const __m128 four = _mm_min_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_min_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_min_ss(two, _mm_movehdup_ps(two)));
}
/// Four reduce_add at once, bit for bit the same, to dst[0..3].
inline void reduce_add_four(float* dst, Vec a, Vec b, Vec c, Vec d) {
  // 256 bits of each, then 128 bits of each in one register [a b c d], then columns of four.
  const __m512 ab =
      _mm512_add_ps(_mm512_shuffle_f32x4(a.reg, b.reg, 0x44), _mm512_shuffle_f32x4(a.reg, b.reg, 0xee));
  const __m512 cd =
      _mm512_add_ps(_mm512_shuffle_f32x4(c.reg, d.reg, 0x44), _mm512_shuffle_f32x4(c.reg, d.reg, 0xee));
  const __m512 four = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  const __m512 two = _mm512_add_ps(four, _mm512_permute_ps(four, _MM_SHUFFLE(1, 0, 3, 2)));
  const __m512 one = _mm512_add_ps(two, _mm512_permute_ps(two, _MM_SHUFFLE(2, 3, 0, 1)));
  const __m512i first_of_lane = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
  _mm_storeu_ps(dst, _mm512_castps512_ps128(_mm512_permutexvar_ps(first_of_lane, one)));
}

inline Vec widen_from_bf16(__m256i x) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16))};
}
/// To nearest even; NaN keeps its upper bits and becomes quiet (to_bf16 of dtype.hpp).
/// Not VCVTNEPS2BF16: that instruction flushes denormals.
inline __m256i narrow_to_bf16(Vec x) {
  const __m512i u = _mm512_castps_si512(x.reg);
  const __m512i upper = _mm512_srli_epi32(u, 16);
  const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
  const __m512i rounded =
      _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), odd), 16);
  return _mm512_cvtepi32_epi16(
      _mm512_mask_or_epi32(rounded, is_nan(x).bits, upper, _mm512_set1_epi32(0x0040)));
}
/// To nearest even; VCVTPS2PH treats NaN as to_f16 of dtype.hpp does.
inline __m256i narrow_to_f16(Vec x) {
  return _mm512_maskz_cvtps_ph(0xffff, x.reg, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

inline Vec vec_load_bf16(const std::uint16_t* src) {
  return widen_from_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src)));
}
inline Vec vec_load_f16(const std::uint16_t* src) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src)))};
}
inline void vec_store_bf16(std::uint16_t* dst, Vec x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), narrow_to_bf16(x));
}
inline void vec_store_f16(std::uint16_t* dst, Vec x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), narrow_to_f16(x));
}
inline Vec vec_load_bf16_part(const std::uint16_t* src, int n) {
  return widen_from_bf16(_mm256_maskz_loadu_epi16(lanes_below(n), src));
}
inline Vec vec_load_f16_part(const std::uint16_t* src, int n) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes_below(n), src))};
}
inline void vec_store_bf16_part(std::uint16_t* dst, Vec x, int n) {
  _mm256_mask_storeu_epi16(dst, lanes_below(n), narrow_to_bf16(x));
}
inline void vec_store_f16_part(std::uint16_t* dst, Vec x, int n) {
  _mm256_mask_storeu_epi16(dst, lanes_below(n), narrow_to_f16(x));
}

/// dst(j, i) = src(i, j) for i, j < len.
/// Rows i, i + 4, i + 8, i + 12 share a register, so only 4 x 4 transposes within 128 bits remain.
inline void transpose_block(float* dst, std::int64_t dst_step, const float* src, std::int64_t src_step) {
  for (int j = 0; j < Vec::len; j += 4) {
    __m512 row[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const float* s = src + i * src_step + j;
      __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(s));
      x = _mm512_insertf32x4(x, _mm_loadu_ps(s + 4 * src_step), 1);
      x = _mm512_insertf32x4(x, _mm_loadu_ps(s + 8 * src_step), 2);
      row[i] = _mm512_insertf32x4(x, _mm_loadu_ps(s + 12 * src_step), 3);
    }
    const __m512 low01 = _mm512_unpacklo_ps(row[0], row[1]), high01 = _mm512_unpackhi_ps(row[0], row[1]);
    const __m512 low23 = _mm512_unpacklo_ps(row[2], row[3]), high23 = _mm512_unpackhi_ps(row[2], row[3]);
    float* d = dst + j * dst_step;
    _mm512_storeu_ps(d, _mm512_shuffle_ps(low01, low23, _MM_SHUFFLE(1, 0, 1, 0)));
    _mm512_storeu_ps(d + dst_step, _mm512_shuffle_ps(low01, low23, _MM_SHUFFLE(3, 2, 3, 2)));
    _mm512_storeu_ps(d + 2 * dst_step, _mm512_shuffle_ps(high01, high23, _MM_SHUFFLE(1, 0, 1, 0)));
    _mm512_storeu_ps(d + 3 * dst_step, _mm512_shuffle_ps(high01, high23, _MM_SHUFFLE(3, 2, 3, 2)));
  }
}
