// What every Target checks of an op before it takes it:
// shapes that fit, memories, dtype pairs, read-only tiles.
//
// Not the chip's limits: those differ per chip and are checked over a whole Program.
// Errors: TileError at the op.
#pragma once

#include "neuron_kernels/core/target.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// What the rules need to know of a tile; both targets' tiles convert to it.
struct TileInfo {
  const char* name;
  int p, f;
  DType dtype;
  Space space;
  bool read_only;
};

inline std::string describe(const TileInfo& t) {
  return text(t.name, " [", t.p, ", ", t.f, "] ", name_of(t.dtype),
              t.space == Space::psum ? " in PSUM" : " in SBUF");
}

namespace tile_rules {

inline void writable(const TileInfo& dst, const char* op, const Where& where) {
  if (dst.read_only) {
    tile_error(
        where, op,
        text("writes ", describe(dst), ", which was loaded and is read-only; copy it to an sbuf tile first"));
  }
}

inline void same_shape(const TileInfo& dst, const TileInfo& src, const char* op, const Where& where) {
  if (dst.p != src.p || dst.f != src.f) {
    tile_error(where, op,
               text(describe(dst), " and ", describe(src), " differ in shape; both must have the same"));
  }
}

/// dst [p, 1] f32, one number for each partition of src.
inline void column_of(const TileInfo& column, const TileInfo& src, const char* op, const Where& where) {
  if (column.p != src.p || column.f != 1 || column.dtype != DType::f32) {
    tile_error(where, op,
               text(describe(column), " goes with ", describe(src), "; it must be [", src.p, ", 1] f32"));
  }
}

/// Returns how many elements there are; from_first: begin is 0.
inline int every(const TileInfo& src, int n, bool from_first, const Where& where) {
  if (n < 1 || (src.f % n != 0 && !from_first)) {
    tile_error(where, "every",
               text(n, " of ", describe(src), "; it must divide ", src.f, ", the free size, or begin at 0"));
  }
  return (src.f + n - 1) / n;
}

inline void transposed(const TileInfo& src, const Where& where) {
  if (src.space == Space::psum) {
    tile_error(where, "transposed",
               text(describe(src), "; a transpose reads SBUF: copy it to an sbuf tile first"));
  }
}

inline void fresh(const char* name, int p, int f, const Where& where) {
  if (p < 1 || f < 1)
    tile_error(where, name, text("a tile of [", p, ", ", f, "]; both sizes must be at least 1"));
}

inline void matmul(const TileInfo& dst, const TileInfo& stationary, const TileInfo& moving,
                   const Where& where) {
  writable(dst, "matmul", where);
  if (dst.space != Space::psum)
    tile_error(where, "matmul", text("dst ", describe(dst), "; matmul writes PSUM: make it by psum()"));
  for (const TileInfo* t : {&stationary, &moving}) {
    if (t->space != Space::sbuf) {
      tile_error(where, "matmul",
                 text("operand ", describe(*t), "; matmul reads SBUF: copy it to an sbuf tile first"));
    }
  }
  if (stationary.p != moving.p) {
    tile_error(where, "matmul",
               text("stationary ", describe(stationary), " and moving ", describe(moving),
                    " differ in partitions, the contraction; both must have the same"));
  }
  if (dst.p != stationary.f || dst.f != moving.f) {
    tile_error(where, "matmul",
               text("dst ", describe(dst), "; stationary^T moving is [", stationary.f, ", ", moving.f, "]"));
  }
  if ((stationary.dtype == DType::f32) != (moving.dtype == DType::f32)) {
    tile_error(where, "matmul",
               text("stationary ", describe(stationary), " and moving ", describe(moving),
                    "; f32 pairs only with f32 (SDK nki.isa.nc_matmul): copy one to the other's dtype"));
  }
}

/// Element-wise ops and activate: sources of dst's shape.
inline void elementwise(const char* op, const TileInfo& dst, const TileInfo& a, const Where& where) {
  writable(dst, op, where);
  same_shape(dst, a, op, where);
}

inline void elementwise(const char* op, const TileInfo& dst, const TileInfo& a, const TileInfo& b,
                        const Where& where) {
  elementwise(op, dst, a, where);
  same_shape(dst, b, op, where);
}

inline void reducing(const char* op, Alu alu, const Where& where) {
  if (alu != Alu::add && alu != Alu::max && alu != Alu::min)
    tile_error(where, op, text("operator ", name_of(alu), "; allowed are add, max and min"));
}

inline void reduce(const TileInfo& dst, Alu op, const TileInfo& src, const ReduceOptions& options,
                   const Where& where) {
  writable(dst, "reduce", where);
  reducing("reduce", op, where);
  if (options.blocks < 1 || dst.p != src.p || src.f % (std::int64_t{dst.f} * options.blocks) != 0) {
    tile_error(where, "reduce",
               text("dst ", describe(dst), " for ", describe(src), " in ", options.blocks,
                    " blocks; both must have the same partitions, and src a multiple of blocks * ", dst.f,
                    " free elements"));
  }
}

/// activate: n blocks of src take turns in dst.
inline void interleave(const TileInfo& src, int n, bool sums, const Where& where) {
  if (n < 1 || src.f % n != 0 || (n > 1 && sums)) {
    tile_error(where, "activate",
               text("interleave ", n, " of ", describe(src), sums ? " with row_sum" : "", "; it must divide ",
                    src.f, ", the free size, and goes without row_sum"));
  }
}

/// dst = src^T of src's dtype.
inline void transpose(const TileInfo& dst, const TileInfo& src, const Where& where) {
  writable(dst, "transpose", where);
  transposed(src, where);
  if (dst.p != src.f || dst.f != src.p || dst.dtype != src.dtype) {
    tile_error(where, "transpose",
               text("dst ", describe(dst), " for ", describe(src), "; it must be [", src.f, ", ", src.p, "] ",
                    name_of(src.dtype)));
  }
}

inline void norm_stats(const TileInfo& dst, const TileInfo& src, const Where& where) {
  writable(dst, "norm_stats", where);
  if (dst.p != src.p || dst.f != 2 || dst.dtype != DType::f32) {
    tile_error(where, "norm_stats",
               text("dst ", describe(dst), " for ", describe(src), "; it must be [", src.p, ", 2] f32"));
  }
}

/// A transfer between HBM [rows, cols] and a tile [p, f].
inline void transfer(const char* op, const TileInfo& tile, std::int64_t rows, std::int64_t cols,
                     const Where& where) {
  if (tile.p != rows || tile.f != cols) {
    tile_error(where, op,
               text("HBM [", rows, ", ", cols, "] and ", describe(tile),
                    " differ in shape; both must have the same"));
  }
}

/// Filling an element of an input_array declared as `slot`.
inline void fits(const char* op, const TileInfo& slot, std::int64_t rows, std::int64_t cols, DType dtype,
                 const Where& where) {
  if (rows > slot.p || cols > slot.f || dtype != slot.dtype) {
    tile_error(where, op,
               text("[", rows, ", ", cols, "] ", name_of(dtype), " into ", describe(slot),
                    "; the array's tiles take at most that shape, of that dtype"));
  }
}

}  // namespace tile_rules
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
