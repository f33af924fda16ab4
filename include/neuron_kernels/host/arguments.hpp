// Arguments: what public calls check of a caller's views before any work starts,
// with the errors of a user's mistake.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include "neuron_kernels/core/view.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

/// The checks of one call; `call` stands first in every message.
class Arguments {
 public:
  explicit Arguments(const char* call) : call_(call) {}

  [[noreturn]] void fail(const char* name, const std::string& message) const {
    shape_error(call_, name, message);
  }

  /// Given, of an allowed rank, with memory behind it if it has elements, sizes below 2^31.
  void require(const char* name, const ConstView& v, int min_rank, int max) const {
    if (!v.given()) fail(name, "not given; it is required");
    if (v.rank() < min_rank || v.rank() > max) {
      fail(name, text("rank ", v.rank(), ", shape ", shape_text(v.layout), "; allowed are ranks ", min_rank,
                      " to ", max));
    }
    if (v.data == nullptr && !v.layout.empty()) {
      fail(name, text("null data for shape ", shape_text(v.layout), "; only an empty tensor may have none"));
    }
    std::int64_t reach = 0;
    for (int i = 0; i < v.rank(); ++i) {
      if (v.dim(i) > std::numeric_limits<std::int32_t>::max()) {
        fail(name, text("size ", v.dim(i), " of dimension ", i, "; allowed are sizes below 2^31"));
      }
      std::int64_t span = 0;  // bytes from the first element of the dimension to the end of its last
      if (v.stride(i) == std::numeric_limits<std::int64_t>::min() ||
          __builtin_mul_overflow(v.dim(i) * size_of(v.dtype), std::abs(v.stride(i)), &span) ||
          __builtin_add_overflow(reach, span, &reach)) {
        fail(name, text("shape ", shape_text(v.layout), " with stride ", v.stride(i), " of dimension ", i,
                        " reaches past 2^63 bytes; allowed are views that an address can reach"));
      }
    }
  }

  void require_shape(const char* name, const ConstView& v, const Layout& want, const char* rule) const {
    require(name, v, want.rank, want.rank);
    if (v.layout.shape != want.shape) {
      fail(name, text("shape ", shape_text(v.layout), "; expected ", shape_text(want), " (", rule, ")"));
    }
  }
  void require_shape(const char* name, const ConstView& v, std::initializer_list<std::int64_t> want,
                     const char* rule) const {
    require_shape(name, v, Layout({want.begin(), want.size()}), rule);
  }

  void require_dtype(const char* name, const ConstView& v, DType want, const char* rule) const {
    if (v.dtype != want) {
      fail(name, text("dtype ", name_of(v.dtype), "; expected ", name_of(want), " (", rule, ")"));
    }
  }

  /// Two indices of a view that is written must not name the same element.
  void require_writable(const char* name, const View& v) const {
    std::array<std::pair<std::int64_t, std::int64_t>, max_rank> dims;  // |stride|, size
    std::size_t n = 0;
    for (int i = 0; i < v.rank(); ++i) {
      if (v.dim(i) == 0) return;
      if (v.dim(i) > 1) dims[n++] = {std::abs(v.stride(i)), v.dim(i)};
    }
    for (std::size_t i = 1; i < n; ++i) {  // insertion sort by stride
      for (std::size_t j = i; j > 0 && dims[j] < dims[j - 1]; --j) std::swap(dims[j], dims[j - 1]);
    }
    std::int64_t extent = 1;  // elements that the smaller strides span
    for (std::size_t i = 0; i < n; ++i) {
      if (dims[i].first < extent) {
        fail(name,
             text("strides of shape ", shape_text(v.layout), " make elements overlap (stride ", dims[i].first,
                  " inside an extent of ", extent, "); a destination needs strides without overlap"));
      }
      extent += (dims[i].second - 1) * dims[i].first;
    }
  }

  /// dst shares no memory with src; with in_place, it may be exactly src.
  void require_apart(const char* dst_name, const View& dst, const char* name, const ConstView& src,
                     bool in_place = false) const {
    if (!dst.given() || !src.given() || dst.layout.empty() || src.layout.empty() || !overlap(dst, src))
      return;
    if (in_place && dst.data == src.data && dst.dtype == src.dtype && same_layout(dst.layout, src.layout))
      return;
    fail(
        dst_name,
        text("shares memory with ", name, "; ",
             in_place ? "allowed is the same memory with the same shape, strides and dtype, or none in common"
                      : "the call reads it while it writes: use memory of its own"));
  }

 private:
  static bool same_layout(const Layout& a, const Layout& b) {
    for (int i = 0; i < a.rank; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (a.shape[at] > 1 && a.stride[at] != b.stride[at]) return false;
    }
    return a.rank == b.rank && a.shape == b.shape;
  }

  // Bytes from the lowest to past the highest element, over all dimensions but `skip`.
  struct Reach {
    std::int64_t below, above;
  };
  static Reach reach(const ConstView& v, int skip = -1) {
    Reach r{0, size_of(v.dtype)};
    for (int i = 0; i < v.rank(); ++i) {
      const std::int64_t span = (v.dim(i) - 1) * v.stride(i) * size_of(v.dtype);
      if (i != skip) (span < 0 ? r.below : r.above) += span;
    }
    return r;
  }
  // The dimension with the largest positive stride among those with more than one element, or -1.
  static int outermost(const ConstView& v) {
    int best = -1;
    for (int i = 0; i < v.rank(); ++i) {
      if (v.dim(i) > 1 && v.stride(i) > 0 && (best < 0 || v.stride(i) > v.stride(best))) best = i;
    }
    return best;
  }

  // False only if no byte is shared:
  // ranges apart, or side by side in rows of one pitch (columns of one buffer).
  static bool overlap(const ConstView& a, const ConstView& b) {
    const auto address = [](const ConstView& v) { return reinterpret_cast<std::intptr_t>(v.data); };
    const Reach ra = reach(a), rb = reach(b);
    if (address(a) + ra.above <= address(b) + rb.below || address(b) + rb.above <= address(a) + ra.below)
      return false;
    const int oa = outermost(a), ob = outermost(b);
    if (oa < 0 || ob < 0) return true;
    const std::int64_t pitch = a.stride(oa) * size_of(a.dtype);
    const Reach ia = reach(a, oa), ib = reach(b, ob);
    if (pitch != b.stride(ob) * size_of(b.dtype)) return true;
    const std::int64_t from = (((address(b) + ib.below) - (address(a) + ia.below)) % pitch + pitch) % pitch;
    return from < ia.above - ia.below || from + (ib.above - ib.below) > pitch;
  }

  const char* call_;
};

/// The view with leading dimensions of size 1 up to rank 4.
template <class V>
V rank4(V v) {
  Layout l;
  l.rank = max_rank;
  const int extra = max_rank - v.rank();
  for (int i = 0; i < max_rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    l.shape[at] = i < extra ? 1 : v.dim(i - extra);
    l.stride[at] = i < extra ? 0 : v.stride(i - extra);
  }
  v.layout = l;
  return v;
}

/// The view's row (rank 1, [n]) as [1, n], or its column as [n, 1].
inline ConstView as_row(const ConstView& v) {
  if (!v.given()) return v;
  const std::array<std::int64_t, 2> shape{1, v.dim(0)}, stride{0, v.stride(0)};
  return {v.data, v.dtype, Layout(shape, stride)};
}
inline ConstView as_column(const ConstView& v) { return v.given() ? transposed(as_row(v), 0, 1) : v; }

/// Merges all dimensions but the last into rows: [.., n] to [rows, n], for all views at once, where the
/// strides of each allow it; otherwise splits off the first dimension and calls itself for each index.
/// Views not given stay so.
template <class Call, class... V>
void for_each_matrix(const Call& call, V... views) {
  const ConstView* const all[] = {&views...};
  const int rank = all[0]->rank();
  if (rank <= 2) {
    const auto matrix = [](auto v) {
      if (!v.given() || v.rank() == 2) return v;
      const std::array<std::int64_t, 2> shape{1, v.dim(0)}, stride{0, v.stride(0)};
      v.layout = Layout(shape, stride);
      return v;
    };
    return call(matrix(views)...);
  }
  bool mergeable = true;
  for (const ConstView* v : all) {
    if (v->given() && v->dim(0) > 1 && v->dim(1) > 1)
      mergeable = mergeable && v->stride(0) == v->dim(1) * v->stride(1);
  }
  const auto without_first = [](auto v, std::int64_t merged, std::int64_t offset) {
    if (!v.given()) return v;
    Layout l;
    l.rank = v.rank() - 1;
    for (int i = 0; i < l.rank; ++i) {
      l.shape[static_cast<std::size_t>(i)] = v.dim(i + 1);
      l.stride[static_cast<std::size_t>(i)] = v.stride(i + 1);
    }
    if (merged > 0 && v.dim(1) <= 1) l.stride[0] = v.stride(0);
    l.shape[0] *= std::max<std::int64_t>(merged, 1);
    v.data = static_cast<const char*>(v.data) + offset * v.stride(0) * size_of(v.dtype);
    v.layout = l;
    return v;
  };
  if (mergeable) return for_each_matrix(call, without_first(views, all[0]->dim(0), 0)...);
  for (std::int64_t i = 0; i < all[0]->dim(0); ++i) for_each_matrix(call, without_first(views, 0, i)...);
}

}  // namespace host
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
