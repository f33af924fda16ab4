// Matrix products and the transpose of a page: gemm (outer products), gemm_dot (dot products).
//
// Included by each page in its namespace and region, after Vec and the constants tile_rows and tile_vecs.

/// Operands of gemm as one register tile sees them; strides of a in elements.
struct GemmOperands {
  int k;
  const float* a;
  std::int64_t a_k, a_m;
  const float* b;
  std::int64_t b_k;
  float* c;
  std::int64_t c_m;
  bool accumulate;
};

/// rows x (vecs vectors) of c, each one FMA chain over k. part: the last vector has `lanes` columns only.
template <int rows, int vecs, bool part>
[[gnu::noinline]] inline void gemm_tile(const GemmOperands& x, int m, int n, int lanes) {
  // Rows 5 g + 0 .. 4 of a are base[g] + {0, 1, 2, 3, 4} strides, so 14 rows need 7 registers. Addressed by
  // their row numbers they spill: 82 % of peak instead of 96. The empty asm keeps g++ from undoing it.
  constexpr int bases = (rows + 4) / 5;
  const std::int64_t stride = x.a_m * 4;
  std::int64_t stride_3 = stride * 3;
  const char* base[bases];
#pragma GCC unroll 4
  for (int g = 0; g < bases; ++g) {
    base[g] = reinterpret_cast<const char*>(x.a + (m + 5 * g) * x.a_m);
    asm("" : "+r"(base[g]));
  }
  asm("" : "+r"(stride_3));
  const float* b = x.b + n;
  Vec acc[rows][vecs];
  float* c = x.c + m * x.c_m + n;
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < vecs; ++j) {
      const float* src = c + i * x.c_m + j * Vec::len;
      acc[i][j] = !x.accumulate           ? vec_zero()
                  : part && j + 1 == vecs ? vec_load_part(src, lanes)
                                          : vec_load(src);
    }
  }
  for (int k = x.k; k > 0; --k) {
    Vec row[vecs];
#pragma GCC unroll 8
    for (int j = 0; j < vecs; ++j) {
      const float* src = b + j * Vec::len;
      row[j] = part && j + 1 == vecs ? vec_load_part(src, lanes) : vec_load(src);
      if constexpr (rows > 1) load_once(row[j]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const char* src = base[i / 5] + (i % 5 == 3 ? stride_3 : stride * (i % 5));
      const Vec scale = vec_set(*reinterpret_cast<const float*>(src));
#pragma GCC unroll 8
      for (int j = 0; j < vecs; ++j) acc[i][j] = fma(scale, row[j], acc[i][j]);
    }
#pragma GCC unroll 4
    for (int g = 0; g < bases; ++g) base[g] += x.a_k * 4;
    b += x.b_k;
  }
  c = x.c + m * x.c_m + n;
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < vecs; ++j) {
      float* dst = c + j * Vec::len;
      if (part && j + 1 == vecs) {
        vec_store_part(dst, acc[i][j], lanes);
      } else {
        vec_store(dst, acc[i][j]);
      }
    }
    c += x.c_m;
  }
}

/// Rows [m, m + rows), columns [n, end): tiles of `vecs` vectors, then single vectors, the last one part.
template <int rows, int vecs>
inline void gemm_rows(const GemmOperands& x, int m, int n, int end) {
  for (; n + vecs * Vec::len <= end; n += vecs * Vec::len) gemm_tile<rows, vecs, false>(x, m, n, 0);
  for (; n < end; n += Vec::len) gemm_tile<rows, 1, true>(x, m, n, end - n < Vec::len ? end - n : Vec::len);
}

/// Rows of the next tile when `left` rows are left; 0: fewer than 4 are left.
inline int next_tile_rows(int left) {
  if (tile_rows == 14 && left == 16) return 8;  // 8 + 8, not 14 + 2
  return left >= tile_rows ? tile_rows : left >= 8 ? 8 : left >= 4 ? 4 : 0;
}

/// All rows and columns over the k of x. A panel of b (k x tile columns) stays in L1 while the rows pass it.
/// The last 1 to 3 rows take wider tiles:
/// a tile needs 8 chains to hide the latency of FMA (4 cycles, 2 per cycle).
inline void gemm_panels(const GemmOperands& x, int m, int n) {
  constexpr int cols = tile_vecs * Vec::len;
  int i = 0;
  for (int j = 0; j < n; j += cols) {
    const int end = n - j < cols ? n : j + cols;
    i = 0;
    for (int rows = next_tile_rows(m); rows > 0; rows = next_tile_rows(m - i)) {
      if (rows == tile_rows) {
        gemm_rows<tile_rows, tile_vecs>(x, i, j, end);
      } else if (rows == 4) {
        gemm_rows<4, tile_vecs>(x, i, j, end);
      } else {
        if constexpr (tile_rows > 8) gemm_rows<8, tile_vecs>(x, i, j, end);
      }
      i += rows;
    }
  }
  if (m - i >= 2) {
    gemm_rows<2, 4>(x, i, 0, n);
    i += 2;
  }
  if (m - i == 1) {
    const int wide = n - n % (8 * Vec::len);
    gemm_rows<1, 8>(x, i, 0, wide);
    gemm_rows<1, 4>(x, i, wide, n);
  }
}

/// How many of the first rows take k in parts. A tile reads 64 to 256 bytes from each of k rows of b, which
/// leaves the prefetchers idle if b comes from memory: 2 to 4 times slower. 16 rows of b at a time, along n,
/// are long runs. They cost 5 to 15 % where b is in L2 already, so only the rows that bring it there pay.
/// A single row has runs of 512 bytes with AVX-512 and gained nothing.
inline int leading_rows(int m, int n, int k) {
  if (m < 2 || n <= 8 * Vec::len) return 0;
  if (m <= 8) return m;
  constexpr std::int64_t l2_floats = 1 << 18;  // 1 MiB
  if (static_cast<std::int64_t>(k) * n <= l2_floats) return next_tile_rows(m);
  return m <= 32 ? m : 0;
}

// Every c is the same chain of FMAs in whichever tile and part of k it falls,
// so results do not depend on m, n or a caller's blocks.
inline void gemm(int m, int n, int k, const float* a, std::int64_t a_k, std::int64_t a_m, const float* b,
                 std::int64_t b_k, float* c, std::int64_t c_m, bool accumulate) {
  constexpr int part = 16;
  const int leading = k > part ? leading_rows(m, n, k) : 0;
  for (int done = 0; done < k && leading > 0; done += part) {
    const int now = k - done < part ? k - done : part;
    gemm_panels({now, a + done * a_k, a_k, a_m, b + done * b_k, b_k, c, c_m, accumulate || done > 0}, leading,
                n);
  }
  gemm_panels({k, a + leading * a_m, a_k, a_m, b, b_k, c + leading * c_m, c_m, accumulate}, m - leading, n);
}

/// Operands of gemm_dot as one register tile sees them.
struct DotOperands {
  int k;
  const float* a;
  std::int64_t a_m;
  const float* b;
  std::int64_t b_n;
  float* c;
  std::int64_t c_m, c_n;
  bool accumulate;
};

/// rows x cols elements of c.
/// Each sum has one vector accumulator whatever the tile, so its order depends on k alone.
template <int rows, int cols>
[[gnu::noinline]] inline void dot_tile(const DotOperands& x, int m, int n) {
  const float* a = x.a + m * x.a_m;
  const float* b = x.b + n * x.b_n;
  Vec sum[rows][cols];
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < cols; ++j) sum[i][j] = vec_zero();
  }
  int k = 0;
  for (; k + Vec::len <= x.k; k += Vec::len) {
    Vec right[cols];
#pragma GCC unroll 8
    for (int j = 0; j < cols; ++j) {
      right[j] = vec_load(b + j * x.b_n + k);
      if constexpr (rows > 1) load_once(right[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
      const Vec left = vec_load(a + i * x.a_m + k);
#pragma GCC unroll 8
      for (int j = 0; j < cols; ++j) sum[i][j] = fma(left, right[j], sum[i][j]);
    }
  }
  if (const int lanes = x.k - k; lanes > 0) {
    Vec right[cols];
#pragma GCC unroll 8
    for (int j = 0; j < cols; ++j) right[j] = vec_load_part(b + j * x.b_n + k, lanes);
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
      const Vec left = vec_load_part(a + i * x.a_m + k, lanes);
#pragma GCC unroll 8
      for (int j = 0; j < cols; ++j) sum[i][j] = fma(left, right[j], sum[i][j]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
    float total[cols];
    if constexpr (cols == 1) {
      total[0] = reduce_add(sum[i][0]);
    } else {
#pragma GCC unroll 2
      for (int j = 0; j < cols; j += 4) {
        reduce_add_four(total + j, sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
      }
    }
    for (int j = 0; j < cols; ++j) {
      float* dst = x.c + (m + i) * x.c_m + (n + j) * x.c_n;
      *dst = x.accumulate ? *dst + total[j] : total[j];
    }
  }
}

inline void gemm_dot(int m, int n, int k, const float* a, std::int64_t a_m, const float* b, std::int64_t b_n,
                     float* c, std::int64_t c_m, std::int64_t c_n, bool accumulate) {
  const DotOperands x{k, a, a_m, b, b_n, c, c_m, c_n, accumulate};
  constexpr int single = 8;
  int j = 0;
  if (m == 1) {
    for (; j + single <= n; j += single) dot_tile<1, single>(x, 0, j);
  }
  for (; j + 4 <= n; j += 4) {
    int i = 0;
    if constexpr (tile_rows > 8) {
      for (; i + 4 <= m; i += 4) dot_tile<4, 4>(x, i, j);
    }
    for (; i + 2 <= m; i += 2) dot_tile<2, 4>(x, i, j);
    if (i < m) dot_tile<1, 4>(x, i, j);
  }
  for (; j < n; ++j) {
    for (int i = 0; i < m; ++i) dot_tile<1, 1>(x, i, j);
  }
}

inline void transpose(float* dst, std::int64_t dst_step, const float* src, std::int64_t src_step, int rows,
                      int cols) {
  constexpr int len = Vec::len;
  int i = 0;
  for (; i + len <= rows; i += len) {
    int j = 0;
    for (; j + len <= cols; j += len)
      transpose_block(dst + j * dst_step + i, dst_step, src + i * src_step + j, src_step);
    for (; j < cols; ++j) {
      for (int r = i; r < i + len; ++r) dst[j * dst_step + r] = src[r * src_step + j];
    }
  }
  for (; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) dst[j * dst_step + i] = src[i * src_step + j];
  }
}
