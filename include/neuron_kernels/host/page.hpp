// What one instruction set provides to the Host: a table of functions on f32 rows and matrices.
//
// A page is chosen once at run time (pages.hpp). It knows nothing of tiles, dtypes of operands or chips; Host
// converts 16-bit operands to f32 rows before it calls a page. One more instruction set is one more Page.
#pragma once

#include <cstdint>

#include "neuron_kernels/core/abi.hpp"
#include "neuron_kernels/core/ops.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

/// f32 rows: element (i, j) at data[i * step + j]. step 0 repeats one row. Steps are in elements.
struct RowsIn {
  const float* data;
  std::int64_t step;
};
/// With `ahead`, the rows are large and not read soon: scalar, scalar_scalar and scalar_tensor may store them
/// past the caches, and meanwhile fetch as many elements from `ahead` on, the memory that is read next.
struct RowsOut {
  float* data;
  std::int64_t step;
  const float* ahead = nullptr;
};

/// One f32 per row: row i has data[i * step]; step 0 gives every row the same value.
struct ColumnIn {
  const float* data;
  std::int64_t step;
};
struct ColumnOut {
  float* data;  // nullptr where the result is not wanted
  std::int64_t step;
};

struct Page {
  const char* name;  // as in NEURON_KERNELS_ISA: "portable", "avx2", "avx512"
  int vector_len;    // f32 lanes of one register
  int tile_rows;     // MR of the register tile: block m in multiples of it
  int tile_cols;     // NR of the register tile: block n in multiples of it

  /// c(m, n) = (accumulate ? c(m, n) : 0) + sum_k a(k, m) b(k, n),
  /// each c summed over k in rising order by FMA.
  /// a(k, m) at a[k * a_k + m * a_m], any strides; b(k, n) at b[k * b_k + n]; c(m, n) at c[m * c_m + n].
  /// Reads nothing past the named elements. m, n, k >= 0; k = 0 writes zeros unless accumulating.
  void (*gemm)(int m, int n, int k, const float* a, std::int64_t a_k, std::int64_t a_m, const float* b,
               std::int64_t b_k, float* c, std::int64_t c_m, bool accumulate);

  /// The same sum for operands that both run along k, for few rows (m <= about 8):
  /// a(k, m) at a[m * a_m + k], b(k, n) at b[n * b_n + k], c(m, n) at c[m * c_m + n * c_n].
  /// The order of the sum over k depends on k alone.
  void (*gemm_dot)(int m, int n, int k, const float* a, std::int64_t a_m, const float* b, std::int64_t b_n,
                   float* c, std::int64_t c_m, std::int64_t c_n, bool accumulate);

  /// dst(j, i) = src(i, j):
  /// src(i, j) at src[i * src_step + j], dst(j, i) at dst[j * dst_step + i]; i < rows, j < cols.
  void (*transpose)(float* dst, std::int64_t dst_step, const float* src, std::int64_t src_step, int rows,
                    int cols);

  /// n elements of bf16 or f16 to f32, exactly.
  void (*widen_bf16)(float* dst, const std::uint16_t* src, std::int64_t n);
  void (*widen_f16)(float* dst, const std::uint16_t* src, std::int64_t n);
  /// n elements of f32 to bf16 or f16, to nearest even (dtype.hpp has the exact rules).
  void (*narrow_bf16)(std::uint16_t* dst, const float* src, std::int64_t n);
  void (*narrow_f16)(std::uint16_t* dst, const float* src, std::int64_t n);

  // Row ops over [rows, n].
  // dst may be the same memory as an input at the same steps, never partly overlapping.

  /// dst = a op b
  void (*binary)(Alu op, RowsOut dst, RowsIn a, RowsIn b, int rows, int n);
  /// dst = a op s, s one value per row
  void (*scalar)(Alu op, RowsOut dst, RowsIn a, ColumnIn s, int rows, int n);
  /// dst = (a op0 s0) op1 s1
  void (*scalar_scalar)(Alu op0, Alu op1, RowsOut dst, RowsIn a, ColumnIn s0, ColumnIn s1, int rows, int n);
  /// dst = (a op0 s) op1 b; (multiply, add) is one FMA
  void (*scalar_tensor)(Alu op0, Alu op1, RowsOut dst, RowsIn a, ColumnIn s, RowsIn b, int rows, int n);
  /// dst(row) = a(row, 0) op ... op a(row, n - 1), op add, max or min; n >= 1. The order depends on n alone.
  void (*reduce)(Alu op, ColumnOut dst, RowsIn a, int rows, int n);
  /// dst = f(a * scale + bias); row_sum(row) = sum of dst over the row, if wanted.
  /// a * scale + bias is one FMA.
  void (*activate)(Act f, RowsOut dst, RowsIn a, ColumnIn scale, ColumnIn bias, ColumnOut row_sum, int rows,
                   int n);
  /// mean and variance (divided by n) of each row;
  /// stable for a mean far from 0 and for equal elements; n >= 1.
  void (*stats)(ColumnOut mean, ColumnOut variance, RowsIn a, int rows, int n);

  /// Orders all stores past the caches before every later store.
  void (*finish_stores)();
};

}  // namespace host
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
