// Host's data: Hbm (a strided part of the caller's memory),
// Tile (rows in the arena, or an alias of an Hbm), TileArray.
#pragma once

#include <array>
#include <cstdint>

#include "neuron_kernels/core/tile_rules.hpp"
#include "neuron_kernels/core/view.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

using Index = std::int64_t;

/// Tensor in device memory: for Host, the caller's own.
class Hbm {
 public:
  Hbm() = default;
  Hbm(const ConstView& v)
      : data_(static_cast<char*>(const_cast<void*>(v.data))), dtype_(v.dtype), layout_(v.layout) {}
  Hbm(const View& v) : Hbm(static_cast<const ConstView&>(v)) { read_only_ = false; }

  explicit operator bool() const { return layout_.rank != 0; }
  int rank() const { return layout_.rank; }
  std::int64_t dim(int i) const { return layout_.shape[static_cast<std::size_t>(i)]; }
  std::int64_t stride(int i) const { return layout_.stride[static_cast<std::size_t>(i)]; }
  DType dtype() const { return dtype_; }
  bool read_only() const { return read_only_; }
  char* data() const { return data_; }

  /// Of a call that reads or writes each element once, and so many that they only push other data out of the
  /// caches: stores go past these where the page can, and loads are fetched ahead, in order of rows.
  Hbm streamed() const {
    Hbm h = *this;
    h.is_streamed_ = dtype_ == DType::f32 && reinterpret_cast<std::uintptr_t>(data_) % sizeof(float) == 0;
    return h;
  }
  bool is_streamed() const { return is_streamed_; }

  /// Drops the first dimension.
  Hbm at(Index i) const {
    Hbm h = moved(0, i);
    for (std::size_t d = 1; d < static_cast<std::size_t>(max_rank); ++d) {
      h.layout_.shape[d - 1] = layout_.shape[d];
      h.layout_.stride[d - 1] = layout_.stride[d];
    }
    --h.layout_.rank;
    return h;
  }
  Hbm rows(Index begin, int n) const { return part(0, begin, n); }
  Hbm cols(Index begin, int n) const { return part(1, begin, n); }
  Hbm transposed() const {
    Hbm h = *this;
    std::swap(h.layout_.shape[0], h.layout_.shape[1]);
    std::swap(h.layout_.stride[0], h.layout_.stride[1]);
    return h;
  }

 private:
  Hbm moved(int d, Index begin) const {
    Hbm h = *this;
    h.data_ = data_ + begin * stride(d) * size_of(dtype_);
    return h;
  }
  Hbm part(int d, Index begin, int n) const {
    Hbm h = moved(d, begin);
    h.layout_.shape[static_cast<std::size_t>(d)] = n;
    return h;
  }

  char* data_ = nullptr;
  DType dtype_ = DType::f32;
  bool read_only_ = true, is_streamed_ = false;
  Layout layout_{};
};

/// [p, f] elements at data + i * p_step + j * f_step. Tiles in the arena store f32, whatever their dtype: a
/// write rounds to dtype, so that matmul need not convert at each use. Only an alias of HBM stores 16 bits.
class Tile {
 public:
  Tile() = default;
  Tile(const Tile& t)
      : data(alone(t.data)),
        p_step(alone(t.p_step)),
        f_step(alone(t.f_step)),
        storage(alone(t.storage)),
        is_streamed(alone(t.is_streamed)),
        info{alone(t.info.name),  alone(t.info.p),     alone(t.info.f),
             alone(t.info.dtype), alone(t.info.space), alone(t.info.read_only)} {}
  Tile& operator=(const Tile&) = default;

  explicit operator bool() const { return data != nullptr; }
  int p() const { return info.p; }
  int f() const { return info.f; }
  DType dtype() const { return info.dtype; }
  operator const TileInfo&() const { return info; }  // implicit, for tile_rules

  Tile free(Index begin, int n) const {
    Tile t = *this;
    t.data = data + begin * f_step * size_of(storage);
    t.info.f = n;
    return t;
  }
  Tile partitions(Index begin, int n) const {
    Tile t = *this;
    t.data = data + begin * p_step * size_of(storage);
    t.info.p = n;
    return t;
  }

  Tile every(int n, Index begin, const Where& where = Where::current()) const {
    Tile t = free(begin, tile_rules::every(info, n, begin == 0, where));
    t.f_step *= n;
    return t;
  }

  float* f32_data() const { return reinterpret_cast<float*>(data); }
  bool is_f32_rows() const { return storage == DType::f32 && (f_step == 1 || f() == 1); }

  // For Host.
  explicit Tile(const TileInfo& of) : info(of) {}
  void shape(int p, int f) {
    info.p = p;
    info.f = f;
  }
  char* data = nullptr;
  std::int64_t p_step = 0, f_step = 1;  // elements of `storage`
  DType storage = DType::f32;
  bool is_streamed = false;  // staged for an Hbm that is streamed
  TileInfo info{"", 0, 0, DType::f32, Space::sbuf, false};

 private:
  // A member copied by itself. Compilers would load several at once, wide, just after each was stored, narrow:
  // the store buffer cannot forward that, so the load waits until all stores before it, perhaps a tile of
  // results bound for memory, are done (layernorm of 64 x 768: 7.0 -> 6.3 us).
  template <class Member>
  static Member alone(Member x) {
    asm("" : "+r"(x));
    return x;
  }
};

/// n tiles; those of an input_array are filled one by one and may each alias another place.
class TileArray {
 public:
  Tile operator[](Index i) const { return tiles[i]; }

  Tile slot;              // shape and dtype that each may have at most
  Tile* tiles = nullptr;  // in the arena
};

struct Span {
  Index index, begin;
  int size;
};

}  // namespace host
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
