// Engines: the compute ops of Host (matmul, element-wise, reductions) on tiles, by the functions of one Page.
//
// core/target.hpp has the meaning of every op.
// Operands that are not f32 rows are gathered into such rows first.
#pragma once

#include <algorithm>
#include <array>

#include "neuron_kernels/core/target.hpp"
#include "neuron_kernels/host/transfer.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

class Engines {
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

  void reduce(const Tile& dst, Alu op, const Tile& src, const Where& where = Where::current()) {
    tile_rules::reduce(dst, op, src, where);
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
    reduce(column, op1, wide, where);
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
    tile_rules::writable(tile, "causal_mask", where);
    for_rows<1>(
        tile, {&tile},
        [&](RowsOut d, const RowsIn* s, int row, int rows, int n) {
          for (int i = 0; i < rows; ++i) {
            const Index visible = std::clamp<Index>(q + row + i - k + 1, 0, n);
            float* const to = d.data + i * d.step;
            if (to != s[0].data + i * s[0].step) std::copy_n(s[0].data + i * s[0].step, visible, to);
            std::fill(to + visible, to + n, value);
          }
        },
        false);
    return tile;
  }

 protected:
  Engines(const Page& page, Arena& arena) : page_(page), arena_(arena) {}

  float* take(std::int64_t n) { return arena_.take(static_cast<std::size_t>(n)); }

  const Page& page_;
  Arena& arena_;
  const float* ahead_ = nullptr;  // what follows the rows that were loaded last, if they are streamed

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
  static RowsIn rows_in(const Tile& t) { return {t.f32_data(), t.p_step}; }

  Tile scratch_like(const Tile& t) {
    Tile s({t.info.name, t.p(), t.f(), DType::f32, Space::sbuf, false});
    s.p_step = t.f();
    s.data = reinterpret_cast<char*>(take(std::int64_t{t.p()} * t.f()));
    return s;
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
  RowsIn f32_rows(const Tile& t) {
    if (t.is_f32_rows()) return rows_in(t);
    float* const rows = take(std::int64_t{t.p()} * t.f());
    gather(page_, arena_, rows, t.f(), rect(t));
    return {rows, t.f()};
  }

  // dst [m, n] (+)= a[k, m]^T b[k, n], f32 in any strides:
  // picks the page's function that reads them as they lie.
  void multiply(const Tile& dst, const Tile& a, const Tile& b, bool accumulate) {
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

  // Calls call(dst rows, source rows, first row, rows, n) until dst is written. Operands that are f32 rows
  // take part in place, in one call; others a few rows at a time. `flat`: a column of [p, 1] tiles counts as
  // one row of p. The first case is inline: small tiles are many, and everything else is for odd ones.
  template <std::size_t sources, class Call>
  void for_rows(const Tile& dst, const std::array<const Tile*, sources>& src, const Call& call,
                bool flat = true) {
    const bool column = flat && dst.f() == 1 && dst.p() > 1;
    const auto in_place = [column](const Tile& t) {
      return t.storage == DType::f32 && (column ? t.p_step : t.f() == 1 ? 1 : t.f_step) == 1;
    };
    bool all_in_place = in_place(dst) && (dst.dtype() == DType::f32 || !column);
    std::array<RowsIn, sources> in{};
    for (std::size_t i = 0; i < sources; ++i) {
      all_in_place = all_in_place && in_place(*src[i]);
      in[i] = rows_in(*src[i]);
    }
    if (all_in_place) {
      const int rows = column ? 1 : dst.p(), n = column ? dst.p() : dst.f();
      call({dst.f32_data(), dst.p_step, dst.is_streamed ? ahead_ : nullptr}, in.data(), 0, rows, n);
      if (dst.dtype() != DType::f32) round(dst);
      return;
    }
    rows_by({dst, src.data(), sources, flat}, &call,
            [](const void* context, RowsOut d, const RowsIn* s, int row, int rows, int n) {
              (*static_cast<const Call*>(context))(d, s, row, rows, n);
            });
  }

  struct RowOperands {
    const Tile& dst;
    const Tile* const* src;
    std::size_t sources;
    bool flat;
  };
  using RowCall = void (*)(const void* context, RowsOut d, const RowsIn* s, int row, int rows, int n);

  // The other cases of for_rows, without the type of its call, so that there is one copy of this.
  void rows_by(const RowOperands& x, const void* context, RowCall call) {
    constexpr std::size_t most_sources = 2;
    std::array<RowsIn, most_sources> in{};
    bool in_place = false;
    Tile to = x.dst;
    std::array<Tile, most_sources> from;
    for (std::size_t i = 0; i < x.sources; ++i) from[i] = *x.src[i];
    if (x.flat && to.f() == 1) {
      turn(to);
      in_place = to.is_f32_rows();
      for (std::size_t i = 0; i < x.sources; ++i) {
        turn(from[i]);
        in_place = in_place && from[i].is_f32_rows();
      }
    }
    const int n = to.f(), step = in_place ? to.p() : std::max(1, rows_elements / n);
    for (int row = 0; row < to.p(); row += step) {
      const int rows = std::min(step, to.p() - row);
      const Arena::Mark mark = arena_.mark();
      for (std::size_t i = 0; i < x.sources; ++i) in[i] = f32_rows(from[i].partitions(row, rows));
      const Tile part = to.partitions(row, rows);
      if (part.is_f32_rows()) {
        call(context, {part.f32_data(), part.p_step}, in.data(), row, rows, n);
        if (to.dtype() != DType::f32) round(part);
      } else {
        float* const wide = take(std::int64_t{rows} * n);
        call(context, {wide, n}, in.data(), row, rows, n);
        scatter(page_, arena_, rect(part), wide, n);
      }
      arena_.release(mark);
    }
  }
  static constexpr int rows_elements = 4096;  // of f32 that are gathered at a time: a third of a small L1

  static void turn(Tile& t) {
    t.shape(t.f(), t.p());
    std::swap(t.p_step, t.f_step);
  }

  // Rounds f32 rows to what the tile's 16-bit dtype can hold.
  void round(const Tile& t) {
    char* const narrowed = reinterpret_cast<char*>(take((t.f() + 1) / 2));
    for (int i = 0; i < t.p(); ++i) {
      float* const row = t.f32_data() + i * t.p_step;
      narrow(page_, narrowed, t.dtype(), row, t.f());
      widen(page_, row, narrowed, t.dtype(), t.f());
    }
  }
};

}  // namespace host
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
