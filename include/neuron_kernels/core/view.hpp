// Views: a caller's memory with dtype, shape and strides, rank 1 to 4. They own nothing.
//
// Public calls take them; kernels see them as a Target's Hbm.
// Strides count elements and may be 0 (repeat) or negative; a ConstView is read-only, a View may be written.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "neuron_kernels/core/dtype.hpp"
#include "neuron_kernels/core/error.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

inline constexpr int max_rank = 4;

/// Shape and strides, in elements, of a tensor of rank 0 (none) to 4.
struct Layout {
  int rank = 0;
  std::array<std::int64_t, max_rank> shape{};
  std::array<std::int64_t, max_rank> stride{};

  Layout() = default;

  /// Row-major without gaps.
  explicit Layout(std::span<const std::int64_t> dims) : Layout(dims, {}) {}

  /// As given; without strides, row-major without gaps.
  /// Errors: ShapeError on a rank outside 1..4, a negative size, or a stride missing.
  Layout(std::span<const std::int64_t> dims, std::span<const std::int64_t> strides) {
    if (dims.empty() || dims.size() > static_cast<std::size_t>(max_rank)) {
      shape_error("view", "shape", text("rank ", dims.size(), "; allowed are ranks 1 to ", max_rank));
    }
    if (!strides.empty() && strides.size() != dims.size()) {
      shape_error("view", "strides", text(strides.size(), " strides for ", dims.size(), " dimensions"));
    }
    rank = static_cast<int>(dims.size());
    std::int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      if (dims[at] < 0)
        shape_error("view", "shape", text("size ", dims[at], " of dimension ", i, " is negative"));
      shape[at] = dims[at];
      stride[at] = strides.empty() ? step : strides[at];
      if (__builtin_mul_overflow(step, dims[at] == 0 ? 1 : dims[at], &step)) {
        shape_error("view", "shape", text("more than 2^63 elements at dimension ", i));
      }
    }
  }

  bool empty() const {
    for (int i = 0; i < rank; ++i) {
      if (shape[static_cast<std::size_t>(i)] == 0) return true;
    }
    return false;
  }
};

/// "[2, 8, 128, 64]"
inline std::string shape_text(const Layout& layout) {
  std::string s = "[";
  for (int i = 0; i < layout.rank; ++i) {
    s += (i != 0 ? ", " : "") + text(layout.shape[static_cast<std::size_t>(i)]);
  }
  return s + "]";
}

/// Memory that a call reads. A default-made one means "not given".
struct ConstView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  Layout layout{};

  ConstView() = default;
  template <class E>
  ConstView(const E* elements, std::initializer_list<std::int64_t> shape,
            std::initializer_list<std::int64_t> strides = {})
      : data(elements),
        dtype(dtype_of<E>),
        layout({shape.begin(), shape.size()}, {strides.begin(), strides.size()}) {}
  ConstView(const void* elements, DType type, const Layout& shape_and_strides)
      : data(elements), dtype(type), layout(shape_and_strides) {}

  /// Whether the view was given at all (a view of no elements is given).
  bool given() const { return layout.rank != 0; }
  int rank() const { return layout.rank; }
  /// Size of dimension i; negative i counts from the end.
  std::int64_t dim(int i) const {
    return layout.shape[static_cast<std::size_t>(i < 0 ? layout.rank + i : i)];
  }
  std::int64_t stride(int i) const {
    return layout.stride[static_cast<std::size_t>(i < 0 ? layout.rank + i : i)];
  }
};

/// Memory that a call writes.
struct View : ConstView {
  View() = default;
  template <class E>
  View(E* elements, std::initializer_list<std::int64_t> shape,
       std::initializer_list<std::int64_t> strides = {})
      : ConstView(elements, shape, strides) {}
  View(void* elements, DType type, const Layout& shape_and_strides)
      : ConstView(elements, type, shape_and_strides) {}

  void* writable() const { return const_cast<void*>(data); }  // made from a non-const pointer above
};

/// The same memory with dimensions i and j exchanged.
template <class V>
V transposed(V view, int i = -2, int j = -1) {
  const auto at = [&](int k) { return static_cast<std::size_t>(k < 0 ? view.rank() + k : k); };
  std::swap(view.layout.shape[at(i)], view.layout.shape[at(j)]);
  std::swap(view.layout.stride[at(i)], view.layout.stride[at(j)]);
  return view;
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
