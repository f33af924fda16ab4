// Moves rectangles between any dtype and any strides: what load, store and odd operands come down to.
//
// Fast where one of the strides is 1, right everywhere.
// f32 in the middle; rounding to 16 bits as in dtype.hpp.
#pragma once

#include <cstring>

#include "neuron_kernels/host/arena.hpp"
#include "neuron_kernels/host/page.hpp"
#include "neuron_kernels/host/tile.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

/// Elements from one row to the next: an odd number of cache lines, so that a column spreads over all sets of
/// the cache (74 % -> 85 % of peak for matmul at 1024 rows). A column is packed without gaps.
constexpr std::int64_t padded_row(std::int64_t n, DType dtype) {
  if (n == 1) return 1;
  const std::int64_t per_line = 64 / size_of(dtype);
  return per_line * (((n + per_line - 1) / per_line) | 1);
}

/// Elements (i, j), i < rows, j < cols, of dtype at data + i * row + j * col (in elements).
struct Rect {
  char* data;
  DType dtype;
  std::int64_t row, col;
  int rows, cols;

  char* at(std::int64_t i, std::int64_t j) const { return data + (i * row + j * col) * size_of(dtype); }
  Rect transposed() const { return {data, dtype, col, row, cols, rows}; }
};

inline Rect rect(const Tile& t) { return {t.data, t.storage, t.p_step, t.f_step, t.p(), t.f()}; }
inline Rect rect(const Hbm& h) {
  return {
      h.data(), h.dtype(), h.stride(0), h.stride(1), static_cast<int>(h.dim(0)), static_cast<int>(h.dim(1))};
}

inline void widen(const Page& page, float* dst, const char* src, DType dtype, std::int64_t n) {
  if (dtype == DType::f32) {
    std::memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(float));
  } else if (dtype == DType::bf16) {
    page.widen_bf16(dst, reinterpret_cast<const std::uint16_t*>(src), n);
  } else {
    page.widen_f16(dst, reinterpret_cast<const std::uint16_t*>(src), n);
  }
}

inline void narrow(const Page& page, char* dst, DType dtype, const float* src, std::int64_t n) {
  if (dtype == DType::f32) {
    std::memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(float));
  } else if (dtype == DType::bf16) {
    page.narrow_bf16(reinterpret_cast<std::uint16_t*>(dst), src, n);
  } else {
    page.narrow_f16(reinterpret_cast<std::uint16_t*>(dst), src, n);
  }
}

inline float read_element(const char* p, DType dtype) {
  if (dtype == DType::f32) return *reinterpret_cast<const float*>(p);
  const std::uint16_t bits = *reinterpret_cast<const std::uint16_t*>(p);
  return dtype == DType::bf16 ? to_f32(bf16{bits}) : to_f32(f16{bits});
}

inline void write_element(char* p, DType dtype, float x) {
  if (dtype == DType::f32) {
    *reinterpret_cast<float*>(p) = x;
  } else {
    *reinterpret_cast<std::uint16_t*>(p) = dtype == DType::bf16 ? to_bf16(x).bits : to_f16(x).bits;
  }
}

/// dst(i, j) at dst[i * dst_step + j] = src(i, j) as f32.
inline void gather(const Page& page, Arena& arena, float* dst, std::int64_t dst_step, const Rect& src) {
  if (src.col == 1 || src.cols == 1) {
    if (src.cols == 1 && src.row == 1 && dst_step == 1)
      return widen(page, dst, src.data, src.dtype, src.rows);
    for (int i = 0; i < src.rows; ++i) widen(page, dst + i * dst_step, src.at(i, 0), src.dtype, src.cols);
  } else if (src.row == 1 && src.dtype == DType::f32) {
    page.transpose(dst, dst_step, reinterpret_cast<const float*>(src.data), src.col, src.cols, src.rows);
  } else if (src.row == 1) {
    const Arena::Mark mark = arena.mark();
    float* const wide = arena.take(static_cast<std::size_t>(src.rows) * static_cast<std::size_t>(src.cols));
    for (int j = 0; j < src.cols; ++j)
      widen(page, wide + std::int64_t{j} * src.rows, src.at(0, j), src.dtype, src.rows);
    page.transpose(dst, dst_step, wide, src.rows, src.cols, src.rows);
    arena.release(mark);
  } else {
    for (int i = 0; i < src.rows; ++i) {
      for (int j = 0; j < src.cols; ++j) dst[i * dst_step + j] = read_element(src.at(i, j), src.dtype);
    }
  }
}

/// dst(i, j) = src(i, j) rounded to dst's dtype; src(i, j) at src[i * src_step + j].
inline void scatter(const Page& page, Arena& arena, const Rect& dst, const float* src,
                    std::int64_t src_step) {
  if (dst.col == 1 || dst.cols == 1) {
    if (dst.cols == 1 && dst.row == 1 && src_step == 1)
      return narrow(page, dst.data, dst.dtype, src, dst.rows);
    for (int i = 0; i < dst.rows; ++i) narrow(page, dst.at(i, 0), dst.dtype, src + i * src_step, dst.cols);
  } else if (dst.row == 1 && dst.dtype == DType::f32) {
    page.transpose(reinterpret_cast<float*>(dst.data), dst.col, src, src_step, dst.rows, dst.cols);
  } else if (dst.row == 1) {
    const Arena::Mark mark = arena.mark();
    float* const wide = arena.take(static_cast<std::size_t>(dst.rows) * static_cast<std::size_t>(dst.cols));
    page.transpose(wide, dst.rows, src, src_step, dst.rows, dst.cols);
    for (int j = 0; j < dst.cols; ++j)
      narrow(page, dst.at(0, j), dst.dtype, wide + std::int64_t{j} * dst.rows, dst.rows);
    arena.release(mark);
  } else {
    for (int i = 0; i < dst.rows; ++i) {
      for (int j = 0; j < dst.cols; ++j) write_element(dst.at(i, j), dst.dtype, src[i * src_step + j]);
    }
  }
}

/// dst = src, element by element, rounded to dst's dtype.
inline void copy_rect(const Page& page, Arena& arena, const Rect& dst, const Rect& src) {
  const Arena::Mark mark = arena.mark();
  float* const rows = arena.take(static_cast<std::size_t>(src.rows) * static_cast<std::size_t>(src.cols));
  gather(page, arena, rows, src.cols, src);
  scatter(page, arena, dst, rows, src.cols);
  arena.release(mark);
}

}  // namespace host
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
