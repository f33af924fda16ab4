// RowLoops: how a row op of a Page meets tiles of any strides and dtypes, which most are not.
//
// The ops are in engines.hpp.
#pragma once

#include <algorithm>
#include <array>

#include "neuron_kernels/core/target.hpp"
#include "neuron_kernels/host/transfer.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

class RowLoops {
 protected:
  RowLoops(const Page& page, Arena& arena) : page_(page), arena_(arena) {}

  float* take(std::int64_t n) { return arena_.take(static_cast<std::size_t>(n)); }

  static RowsIn rows_in(const Tile& t) { return {t.f32_data(), t.p_step}; }

  Tile scratch_like(const Tile& t) {
    Tile s({t.info.name, t.p(), t.f(), DType::f32, Space::sbuf, false});
    s.p_step = t.f();
    s.data = reinterpret_cast<char*>(take(std::int64_t{t.p()} * t.f()));
    return s;
  }

  RowsIn f32_rows(const Tile& t) {
    if (t.is_f32_rows()) return rows_in(t);
    float* const rows = take(std::int64_t{t.p()} * t.f());
    gather(page_, arena_, rows, t.f(), rect(t));
    return {rows, t.f()};
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

  const Page& page_;
  Arena& arena_;
  const float* ahead_ = nullptr;  // what follows the rows that were loaded last, if they are streamed

 private:
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
