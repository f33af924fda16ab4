// Archetype: a Target with exactly what core/target.hpp promises and nothing more.
// For compiling, never for running.
//
// A kernel that compiles against it asks nothing of a target that another target might not have.
#pragma once

#include <cstdint>

#include "neuron_kernels/core/target.hpp"

namespace archetype {

namespace nk = neuron_kernels;
using nk::Act;
using nk::Alu;
using nk::DType;

/// Only made by MatmulFlags' default and by comparing; only ops take it.
struct Cond {
  template <std::same_as<bool> B>
  Cond(B) {}
};

/// No default, no conversion from or to a number.
class Index {
 public:
  friend Index operator+(Index a, Index) { return a; }
  friend Index operator+(Index a, int) { return a; }
  friend Index operator+(int, Index a) { return a; }
  friend Index operator-(Index a, Index) { return a; }
  friend Index operator-(Index a, int) { return a; }
  friend Index operator-(int, Index a) { return a; }
  friend Index operator*(Index a, Index) { return a; }
  friend Index operator*(Index a, int) { return a; }
  friend Index operator*(int, Index a) { return a; }
  friend Index operator/(Index a, int) { return a; }
  friend Index operator%(Index a, int) { return a; }
  friend Index min(Index a, Index) { return a; }
  friend Index max(Index a, Index) { return a; }
  friend Cond operator==(Index, Index) { return false; }
  friend Cond operator!=(Index, Index) { return false; }
  friend Cond operator<(Index, Index) { return false; }
  friend Cond operator<=(Index, Index) { return false; }
  friend Cond operator>(Index, Index) { return false; }
  friend Cond operator>=(Index, Index) { return false; }
  friend Cond operator==(Index, int) { return false; }
  friend Cond operator!=(Index, int) { return false; }
  friend Cond operator<(Index, int) { return false; }
  friend Cond operator<=(Index, int) { return false; }
  friend Cond operator>(Index, int) { return false; }
  friend Cond operator>=(Index, int) { return false; }

 private:
  friend class Core;
  template <class>
  friend class Loop;
  struct Key {};
  explicit Index(Key) {}
};

class Hbm {
 public:
  Hbm() = default;
  explicit operator bool() const { return false; }
  std::int64_t dim(int) const { return 1; }
  DType dtype() const { return DType::f32; }
  Hbm at(Index) const { return {}; }
  Hbm rows(Index, int) const { return {}; }
  Hbm cols(Index, int) const { return {}; }
  Hbm transposed() const { return {}; }
};

class Tile {
 public:
  Tile() = default;
  explicit operator bool() const { return false; }
  int p() const { return 1; }
  int f() const { return 1; }
  DType dtype() const { return DType::f32; }
  Tile free(Index, int) const { return {}; }
  Tile partitions(Index, int) const { return {}; }
  Tile every(int, Index) const { return {}; }
};

class TileArray {
 public:
  Tile operator[](Index) const { return {}; }

 private:
  friend class Core;
  TileArray() = default;
};

struct Span {
  Index index, begin;
  int size;
};

/// An empty loop over Index or Span.
template <class Value>
class Loop {
 public:
  struct Iterator {
    Value operator*() const {
      if constexpr (std::same_as<Value, Index>) {
        return Index(Index::Key{});
      } else {
        return {Index(Index::Key{}), Index(Index::Key{}), 1};
      }
    }
    void operator++() {}
    bool operator!=(const Iterator&) const { return false; }
  };
  Iterator begin() const { return {}; }
  Iterator end() const { return {}; }
};

class Core {
 public:
  using Index = archetype::Index;
  using Cond = archetype::Cond;
  using Hbm = archetype::Hbm;
  using Tile = archetype::Tile;
  using TileArray = archetype::TileArray;
  using Span = archetype::Span;
  using Scalar = nk::Operand<Tile>;

  const nk::Limits& limits() const { return nk::trn2; }
  Index index(int) const { return Index(Index::Key{}); }
  Loop<Index> range(Index) { return {}; }
  Loop<Index> range(std::int64_t) { return {}; }
  Loop<Index> range(Index, Index) { return {}; }
  Loop<Index> range(Index, std::int64_t) { return {}; }
  Loop<Index> range(std::int64_t, Index) { return {}; }
  Loop<Index> range(std::int64_t, std::int64_t) { return {}; }
  Loop<Span> tiles(std::int64_t, std::int64_t) { return {}; }
  Loop<Span> programs(std::int64_t, std::int64_t) { return {}; }

  Tile sbuf(const char*, int, int, DType) { return {}; }
  Tile psum(const char*, int, int, DType = DType::f32) { return {}; }
  TileArray sbuf_array(const char*, std::int64_t, int, int, DType) { return {}; }
  TileArray psum_array(const char*, std::int64_t, int, int, DType = DType::f32) { return {}; }
  TileArray input_array(const char*, std::int64_t, int, int, DType) { return {}; }
  Tile staged(const char*, Hbm) { return {}; }

  Tile load(const char*, Hbm, nk::LoadOptions = {}) { return {}; }
  Tile load_transposed(const char*, Hbm, nk::LoadOptions = {}) { return {}; }
  Tile load_broadcast(const char*, Hbm, int) { return {}; }
  void load(TileArray, Index, Hbm, nk::LoadOptions = {}) {}
  void load_transposed(TileArray, Index, Hbm, nk::LoadOptions = {}) {}
  void store(Hbm, Tile, nk::StoreOptions = {}) {}
  void store_transposed(Hbm, Tile, nk::StoreOptions = {}) {}

  void matmul(Tile, Tile, Tile, nk::MatmulFlags<Cond> = {}) {}
  Tile transposed(Tile) { return {}; }
  void transpose(Tile, Tile, nk::EngineOptions = {}) {}
  void fill(Tile, float, nk::EngineOptions = {}) {}
  void copy(Tile, Tile, nk::EngineOptions = {}) {}
  void reduce(Tile, Alu, Tile, nk::ReduceOptions = {}) {}
  void tensor_tensor(Tile, Tile, Alu, Tile, nk::EngineOptions = {}) {}
  void tensor_scalar(Tile, Tile, Alu, Scalar, nk::EngineOptions = {}) {}
  void tensor_scalar(Tile, Tile, Alu, Scalar, Alu, Scalar, nk::EngineOptions = {}) {}
  void tensor_scalar_reduce(Tile, Tile, Alu, Scalar, Alu, Tile) {}
  void scalar_tensor_tensor(Tile, Tile, Alu, Scalar, Alu, Tile) {}
  void activate(Tile, Act, Tile, nk::ActivateOptions<Tile> = {}) {}
  void reciprocal(Tile, Tile) {}
  void scan(Tile, Tile, Alu, Scalar, Alu, Tile) {}
  void norm_stats(Tile, Tile) {}
  Tile causal_mask(Tile, Index, Index, float) { return {}; }
  void causal_select(Tile, Tile, Index, Index, float, nk::SelectOptions = {}) {}
};

static_assert(nk::Target<Core>);

}  // namespace archetype
