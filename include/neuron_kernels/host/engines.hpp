// Engines: the compute ops of Host (matmul, element-wise, reductions) on tiles, by the functions of one Page.
//
// core/target.hpp has the meaning of every op.
// Operands that are not f32 rows are gathered into such rows first.
#pragma once

#include <algorithm>
#include <array>

#include "neuron_kernels/core/target.hpp"
#include "neuron_kernels/host/row_loops.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

class Engines : public RowLoops {
 public:
  using K = Operand<Tile>;

  void matmul(const Tile& dst, const Tile& stationary, const Tile& moving, MatmulFlags<bool> flags = {},
              const Where& where = Where::current()) {
    tile_rules::matmul(dst, stationary, moving, where);
    const Arena::Mark mark = arena_.mark();
    multiply(dst, as_f32(stationary), as_f32(moving), flags.accumulate);
    arena_.release(mark);
  }

  /// A view with the strides exchanged: the matmuls of a CPU read any strides.
  Tile transposed(const Tile& tile, const Where& where = Where::current()) {
    tile_rules::transposed(tile, where);
    Tile t = tile;
    t.shape(tile.f(), tile.p());
    std::swap(t.p_step, t.f_step);
    t.info.read_only = true;
    return t;
  }

  void transpose(const Tile& dst, const Tile& src, EngineOptions = {},
                 const Where& where = Where::current()) {
    tile_rules::transpose(dst, src, where);
    copy(dst, transposed(src, where), {}, where);
  }

  void fill(const Tile& dst, float value, EngineOptions = {}, const Where& where = Where::current()) {
    tile_rules::writable(dst, "fill", where);
    for_rows<0>(dst, {}, [&](RowsOut d, const RowsIn*, int, int rows, int n) {
      for (int i = 0; i < rows; ++i) std::fill_n(d.data + i * d.step, n, value);
    });
  }

  void copy(const Tile& dst, const Tile& src, EngineOptions = {}, const Where& where = Where::current()) {
    tile_rules::elementwise("copy", dst, src, where);
    for_rows<1>(dst, {&src}, [&](RowsOut d, const RowsIn* s, int, int rows, int n) {
      for (int i = 0; i < rows; ++i) std::copy_n(s[0].data + i * s[0].step, n, d.data + i * d.step);
    });
  }

  void reduce(const Tile& dst, Alu op, const Tile& src, ReduceOptions options = {},
              const Where& where = Where::current()) {
    tile_rules::reduce(dst, op, src, options, where);
    if (dst.f() > 1 || dst.dtype() != DType::f32) return reduce_groups(dst, op, src, options.blocks);
    const Arena::Mark mark = arena_.mark();
    page_.reduce(op, {dst.f32_data(), dst.p_step}, f32_rows(src), src.p(), src.f());
    arena_.release(mark);
  }

  void tensor_tensor(const Tile& dst, const Tile& a, Alu op, const Tile& b, EngineOptions = {},
                     const Where& where = Where::current()) {
    tile_rules::elementwise("tensor_tensor", dst, a, b, where);
    for_rows<2>(dst, {&a, &b}, [&](RowsOut d, const RowsIn* s, int, int rows, int n) {
      page_.binary(op, d, s[0], s[1], rows, n);
    });
  }

  void tensor_scalar(const Tile& dst, const Tile& a, Alu op0, const K& k0, EngineOptions = {},
                     const Where& where = Where::current()) {
    check_scalar("tensor_scalar", dst, a, k0, where);
    if (a.f() == 1 && k0.is_tile()) return tensor_tensor(dst, a, op0, k0.tile(), {}, where);
    for_rows<1>(dst, {&a}, [&](RowsOut d, const RowsIn* s, int row, int rows, int n) {
      page_.scalar(op0, d, s[0], column(k0, row), rows, n);
    });
  }

  void tensor_scalar(const Tile& dst, const Tile& a, Alu op0, const K& k0, Alu op1, const K& k1,
                     EngineOptions = {}, const Where& where = Where::current()) {
    check_scalar("tensor_scalar", dst, a, k0, where);
    check_scalar("tensor_scalar", dst, a, k1, where);
    if (a.f() == 1 && (k0.is_tile() || k1.is_tile())) {
      const Arena::Mark mark = arena_.mark();
      const Tile t = scratch_like(a);
      tensor_scalar(t, a, op0, k0, {}, where);
      tensor_scalar(dst, t, op1, k1, {}, where);
      arena_.release(mark);
      return;
    }
    for_rows<1>(dst, {&a}, [&](RowsOut d, const RowsIn* s, int row, int rows, int n) {
      page_.scalar_scalar(op0, op1, d, s[0], column(k0, row), column(k1, row), rows, n);
    });
  }

  void tensor_scalar_reduce(const Tile& dst, const Tile& a, Alu op0, const K& k0, Alu op1, const Tile& column,
                            const Where& where = Where::current()) {
    check_scalar("tensor_scalar_reduce", dst, a, k0, where);
    tile_rules::writable(column, "tensor_scalar_reduce", where);
    tile_rules::column_of(column, a, "tensor_scalar_reduce", where);
    tile_rules::reducing("tensor_scalar_reduce", op1, where);
    const Arena::Mark mark = arena_.mark();
    const Tile wide = scratch_like(a);  // dst may round
    tensor_scalar(wide, a, op0, k0, {}, where);
    reduce(column, op1, wide, {}, where);
    copy(dst, wide, {}, where);
    arena_.release(mark);
  }

  void scalar_tensor_tensor(const Tile& dst, const Tile& a, Alu op0, const K& k, Alu op1, const Tile& b,
                            const Where& where = Where::current()) {
    check_scalar("scalar_tensor_tensor", dst, a, k, where);
    tile_rules::elementwise("scalar_tensor_tensor", dst, a, b, where);
    if (a.f() == 1 && k.is_tile()) {
      const Arena::Mark mark = arena_.mark();
      const Tile t = scratch_like(a);
      tensor_tensor(t, a, op0, k.tile(), {}, where);
      tensor_tensor(dst, t, op1, b, {}, where);
      arena_.release(mark);
      return;
    }
    for_rows<2>(dst, {&a, &b}, [&](RowsOut d, const RowsIn* s, int row, int rows, int n) {
      page_.scalar_tensor(op0, op1, d, s[0], column(k, row), s[1], rows, n);
    });
  }

  void activate(const Tile& dst, Act f, const Tile& src, const ActivateOptions<Tile>& o = {},
                const Where& where = Where::current()) {
    check_scalar("activate", dst, src, o.scale, where);
    check_scalar("activate", dst, src, o.bias, where);
    if (o.row_sum) tile_rules::column_of(o.row_sum, src, "activate", where);
    tile_rules::interleave(src, o.interleave, static_cast<bool>(o.row_sum), where);
    if (o.interleave > 1) {
      const int n = src.f() / o.interleave;
      for (int b = 0; b < o.interleave; ++b)
        activate(dst.every(o.interleave, b), f, src.free(b * n, n), {.scale = o.scale, .bias = o.bias},
                 where);
      return;
    }
    if (src.f() == 1 && !o.row_sum && (o.scale.is_tile() || o.bias.is_tile())) {
      const Arena::Mark mark = arena_.mark();
      const Tile t = scratch_like(src);
      tensor_scalar(t, src, Alu::multiply, o.scale, Alu::add, o.bias, {}, where);
      activate(dst, f, t, {}, where);
      arena_.release(mark);
      return;
    }
    const bool flat = !o.row_sum;
    for_rows<1>(
        dst, {&src},
        [&](RowsOut d, const RowsIn* s, int row, int rows, int n) {
          const ColumnOut sum{o.row_sum ? o.row_sum.f32_data() + row * o.row_sum.p_step : nullptr,
                              o.row_sum.p_step};
          page_.activate(f, d, s[0], column(o.scale, row), column(o.bias, row), sum, rows, n);
        },
        flat);
  }

  void reciprocal(const Tile& dst, const Tile& src, const Where& where = Where::current()) {
    tile_rules::elementwise("reciprocal", dst, src, where);
    for_rows<1>(dst, {&src}, [&](RowsOut d, const RowsIn* s, int, int rows, int n) {
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < n; ++j) d.data[i * d.step + j] = 1.f / s[0].data[i * s[0].step + j];
      }
    });
  }

  void scan(const Tile& dst, const Tile& a, Alu op0, const K& initial, Alu op1, const Tile& b,
            const Where& where = Where::current()) {
    check_scalar("scan", dst, a, initial, where);
    tile_rules::elementwise("scan", dst, a, b, where);
    const auto apply = [](Alu op, float x, float y) {
      switch (op) {
        case Alu::add:
          return x + y;
        case Alu::subtract:
          return x - y;
        case Alu::multiply:
          return x * y;
        case Alu::max:
          return x > y ? x : y;
        default:
          return x < y ? x : y;
      }
    };
    for_rows<2>(
        dst, {&a, &b},
        [&](RowsOut d, const RowsIn* s, int row, int rows, int n) {
          for (int i = 0; i < rows; ++i) {
            const ColumnIn first = column(initial, row + i);
            float last = *first.data;
            for (int j = 0; j < n; ++j) {
              last = apply(op1, apply(op0, s[0].data[i * s[0].step + j], last), s[1].data[i * s[1].step + j]);
              d.data[i * d.step + j] = last;
            }
          }
        },
        false);
  }

  void norm_stats(const Tile& dst, const Tile& src, const Where& where = Where::current()) {
    tile_rules::norm_stats(dst, src, where);
    const Arena::Mark mark = arena_.mark();
    page_.stats({dst.f32_data(), dst.p_step}, {dst.f32_data() + dst.f_step, dst.p_step}, f32_rows(src),
                src.p(), src.f());
    arena_.release(mark);
  }

  Tile causal_mask(const Tile& tile, Index q, Index k, float value, const Where& where = Where::current()) {
    causal_select(tile, tile, q, k, value, {}, where);
    return tile;
  }

  void causal_select(const Tile& dst, const Tile& src, Index q, Index k, float value,
                     SelectOptions options = {}, const Where& where = Where::current()) {
    tile_rules::elementwise("causal_select", dst, src, where);
    // Hidden are the elements before (keys on partitions) or after (keys along the row) one that moves on by
    // one with each row.
    const bool before = options.keys == KeyAxis::partition;
    for_rows<1>(
        dst, {&src},
        [&](RowsOut d, const RowsIn* s, int row, int rows, int n) {
          for (int i = 0; i < rows; ++i) {
            const Index cut = before ? k + row + i - q : q + row + i - k + 1;
            const Index at = std::clamp<Index>(cut, 0, n);
            float* const to = d.data + i * d.step;
            const float* const from = s[0].data + i * s[0].step;
            const Index first = before ? at : 0, last = before ? n : at;
            if (to != from) std::copy(from + first, from + last, to + first);
            std::fill(to, to + first, value);
            std::fill(to + last, to + n, value);
          }
        },
        false);
  }

 protected:
  using RowLoops::RowLoops;

 private:
  static constexpr int dot_rows = 8;  // up to so many rows, matmul by dot products along k

  static void check_scalar(const char* op, const TileInfo& dst, const TileInfo& a, const K& k,
                           const Where& where) {
    tile_rules::elementwise(op, dst, a, where);
    if (k.is_tile()) tile_rules::column_of(k.tile(), a, op, where);
  }
  static ColumnIn column(const K& k, int row) {
    if (!k.is_tile()) return {&k.value(), 0};
    return {k.tile().f32_data() + row * k.tile().p_step, k.tile().p_step};
  }

  // The tile as f32 in any strides; a 16-bit alias is widened along the dimension that is contiguous.
  Tile as_f32(const Tile& t) {
    if (t.storage == DType::f32) return t;
    Tile s = scratch_like(t);
    if (t.f_step != 1 && t.p_step == 1) {
      s.p_step = 1;
      s.f_step = t.p();
      gather(page_, arena_, s.f32_data(), s.f_step, rect(t).transposed());
    } else {
      gather(page_, arena_, s.f32_data(), s.p_step, rect(t));
    }
    return s;
  }

  // Adds up, or takes the extremum of, one of each group after the other, from the first block on.
  void reduce_groups(const Tile& dst, Alu op, const Tile& src, int blocks) {
    const Arena::Mark mark = arena_.mark();
    const Tile total = scratch_like(dst);
    const int block = src.f() / blocks, group = block / dst.f();
    for (int b = 0; b < blocks; ++b) {
      for (int e = 0; e < group; ++e) {
        const Tile part = src.free(b * block, block).every(group, e);
        if (b == 0 && e == 0) {
          copy(total, part);
        } else {
          tensor_tensor(total, total, op, part);
        }
      }
    }
    copy(dst, total);
    arena_.release(mark);
  }

  // dst [m, n] (+)= a[k, m]^T b[k, n], f32 in any strides:
  // picks the page's function that reads them as they lie.
  void multiply(const Tile& dst, const Tile& a, const Tile& b, bool accumulate) {
    if (dst.f_step != 1 && dst.f() > 1) {
      const Tile rows = scratch_like(dst);
      if (accumulate) copy(rows, dst);
      multiply(rows, a, b, accumulate);
      return copy(dst, rows);
    }
    const int m = a.f(), n = b.f(), k = a.p();
    float* const c = dst.f32_data();
    const bool along_k = (a.p_step == 1 || k == 1) && (b.p_step == 1 || k == 1);
    if (along_k && std::min(m, n) <= dot_rows) {
      if (m <= n)
        return page_.gemm_dot(m, n, k, a.f32_data(), a.f_step, b.f32_data(), b.f_step, c, dst.p_step,
                              dst.f_step, accumulate);
      return page_.gemm_dot(n, m, k, b.f32_data(), b.f_step, a.f32_data(), a.f_step, c, dst.f_step,
                            dst.p_step, accumulate);
    }
    if (n == 1 && dst.p_step == 1 && a.f_step == 1) {  // a column of results: exchange the operands
      return page_.gemm(1, m, k, b.f32_data(), b.p_step, 0, a.f32_data(), a.p_step, c, 0, accumulate);
    }
    // Rows of `a` a multiple of 4 KiB apart fall into one set of L1 and cost 2 to 7 %;
    // copying them costs as much.
    const RowsIn moving = f32_rows(b);
    page_.gemm(m, n, k, a.f32_data(), a.p_step, a.f_step, moving.data, moving.step, c, dst.p_step,
               accumulate);
  }
};

}  // namespace host
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
