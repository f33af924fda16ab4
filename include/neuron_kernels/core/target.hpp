// The page a kernel author reads: what a kernel may ask of a NeuronCore, whichever Target stands in for it.
//
// A kernel is a template over Target. Host executes each op at once; Recorder appends it to a Program.
// One op is one NKI instruction (layout ops two or three);
// semantics are NKI's: AWS Neuron SDK, nki/api/nki/isa.
#pragma once

#include <concepts>
#include <cstdint>

#include "neuron_kernels/core/dtype.hpp"
#include "neuron_kernels/core/error.hpp"
#include "neuron_kernels/core/limits.hpp"
#include "neuron_kernels/core/ops.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// Where a tile lives. Matmul reads SBUF and writes PSUM; the other ops read and write both.
enum class Space : std::uint8_t { sbuf, psum };

/// A scalar operand: one number for every partition, or a tile [p, 1] f32 with one number for each, to which
/// it refers: make it in the call.
template <class Tile>
class Operand {
 public:
  Operand(float v) : value_(v) {}  // implicit, so that ops read as in NKI: op0=nl.multiply, operand0=2.0
  Operand(const Tile& t) : tile_(t ? &t : nullptr) {}

  bool is_tile() const { return tile_ != nullptr; }
  const Tile& tile() const { return *tile_; }
  const float& value() const { return value_; }

 private:
  float value_ = 0.f;
  const Tile* tile_ = nullptr;
};

/// reads: how many rows of other operands will meet each element of the tile.
/// Host copies a tile that is read often into rows that its matmul likes, and aliases the source of one that
/// is read once; the chip always copies.
struct LoadOptions {
  int reads = 1;
  Dge dge = Dge::automatic;
};

struct StoreOptions {
  Dge dge = Dge::automatic;
};

/// reduce: how many blocks of src, one after another along the free dimension, meet in dst.
struct ReduceOptions {
  int blocks = 1;
};

/// Along which dimension of a tile of scores its keys run; queries run along the other.
enum class KeyAxis : std::uint8_t { free, partition };

struct SelectOptions {
  KeyAxis keys = KeyAxis::free;
};

/// For ops that more than one engine can do.
struct EngineOptions {
  Engine engine = Engine::automatic;
};

template <class Cond>
struct MatmulFlags {
  Cond accumulate = false;
};

template <class Tile>
struct ActivateOptions {
  Operand<Tile> scale = 1.f;
  Operand<Tile> bias = 0.f;
  Tile row_sum{};      // [p, 1] f32, written; none if not given
  int interleave = 1;  // blocks of src, one after another, whose elements take turns in dst
};

// Types of a Target T
//   T::Index      loop index or what is computed from one: + - * with Index and int;
//                 / and % (rounded down) by a positive int; min(i, j), max(i, j). Compares to a Cond.
//                 Never converts to bool or int: a C++ `if` on one does not compile for Recorder.
//   T::Cond       result of comparing Index values; only ops take it.
//   T::Hbm        strided tensor in device memory, rank 1-4: at(i) drops the first dimension;
//                 rank 2 also has rows(begin, n), cols(begin, n), transposed().
//                 dim(d) is its size, dtype() its type; false if not given.
//   T::Tile       [p partitions, f free elements] in SBUF or PSUM: p(), f(), dtype();
//                 free(begin, n) and partitions(begin, n) are views of a part; every(n, begin) of every n-th
//                 free element from `begin` (Index, less than n) on, where n divides f or begin is 0;
//                 false if not given.
//   T::TileArray  tiles of one shape: array[i] with an Index.
//   T::Span       what tiles() and programs() yield: index (Index, counts from 0), begin (Index), size (int).
//   Sizes of tiles and of parts (p, f; n of rows, cols, free, partitions) are int.
//   dim(d), the extents and steps of loops and the n of arrays are std::int64_t.
//
// Structure
//   for (auto i : nc.range(n)),          i from 0 (begin) up to n (end); Index or std::int64_t
//   for (auto i : nc.range(begin, end))
//   for (auto t : nc.tiles(n, step))     spans of step elements that cover [0, n), then the rest of n % step;
//                                        n, step: std::int64_t
//   for (auto t : nc.programs(n, step))  the same, but iterations may run at the same time on different
//                                        cores (SPMD grid): the outermost loop that does work;
//                                        only plain loops around it
//   A tile lives until the loop iteration that made it ends (the target rotates buffers).
//   nc.index(n) is a constant Index (n: int). nc.limits() are the target's Limits.
//
// Tiles                                                                           NKI
//   sbuf(name, p, f, dtype)              fresh tile [p, f]; content undefined     nl.ndarray, sbuf
//   psum(name, p, f, dtype = f32)        fresh tile in PSUM                       nl.ndarray, psum
//   sbuf_array(name, n, p, f, dtype)     n fresh tiles                            list of nl.ndarray
//   psum_array(name, n, p, f, dtype = f32)   the same in PSUM                     list of nl.ndarray
//   input_array(name, n, p, f, dtype)    n read-only tiles, to be filled by load*; each at most [p, f]
//   staged(name, hbm)                    fresh tile of hbm's shape and dtype, to be stored there by store:
//                                        Host may alias hbm, so read what hbm held before you write it
//
// Memory (HBM <-> SBUF)
//   load(name, src, options)             -> tile = src, read-only, may alias src  nisa.dma_copy
//   load_transposed(name, src, options)  -> tile = src^T                          nisa.dma_transpose
//   load_broadcast(name, src, p)         -> tile [p, n], each row = src [1, n]    nisa.dma_copy
//   load(array, i, src, options),        array[i] = src, src^T
//   load_transposed(array, i, src, options)
//   store(dst, tile, options)            dst = tile, rounded to dst's dtype       nisa.dma_copy
//   store_transposed(dst, tile, options) dst = tile^T                             nisa.nc_transpose, dma_copy
//
// Compute. dst first; dst may be one of the sources (transpose: not). Maths in f32, one rounding to dst's dtype.
// k is a float or [p, 1]. Ops marked * end in EngineOptions: {.engine = Engine::scalar}.
//   matmul(dst, stationary, moving, {.accumulate})                                nisa.nc_matmul
//                                        PSUM dst [m, n] (+)= stationary[k, m]^T moving[k, n];
//                                        f32 pairs only with f32, 16-bit types with each other
//   transposed(tile)                     -> tile^T in SBUF, same dtype;           nisa.nc_transpose
//                                        may be a view: do not write
//   transpose(dst, src) *                dst = src^T, of src's dtype: dst in PSUM  nisa.nc_transpose
//                                        on the tensor engine, in SBUF by DMA     nisa.dma_transpose
//   fill(dst, value) *                                                            nisa.memset
//   copy(dst, src) *                                                              nisa.tensor_copy
//   reduce(dst, op, src, {.blocks = 1})  add, max, min of src [p, blocks * n * g] nisa.tensor_reduce
//                                        into dst [p, n]: dst[i, j] = op over b < blocks, e < g
//                                        of src[i, (b n + j) g + e]; to a column: over all
//   tensor_tensor(dst, a, op, b) *       dst = a op b, element by element         nisa.tensor_tensor
//   tensor_scalar(dst, a, op0, k0) *     dst = a op0 k0                           nisa.tensor_scalar
//   tensor_scalar(dst, a, op0, k0, op1, k1) *                                     nisa.tensor_scalar
//                                        dst = (a op0 k0) op1 k1
//   tensor_scalar_reduce(dst, a, op0, k0, op1, column)                            nisa.tensor_scalar_reduce
//                                        dst = a op0 k0; column[i, 0] = op1 over j of
//                                        (a op0 k0)[i, j] before rounding; op1: add, max, min
//   scalar_tensor_tensor(dst, a, op0, k, op1, b)                                  nisa.scalar_tensor_tensor
//                                        dst = (a op0 k) op1 b
//   activate(dst, f, src, {.scale, .bias, .row_sum, .interleave})                 nisa.activation
//                                        dst = f(src * scale + bias);
//                                        row_sum[i, 0] = sum over j of f(...)[i, j] before rounding;
//                                        interleave n: f(...)[i, b * (f / n) + j] goes to dst[i, j * n + b]
//   reciprocal(dst, src)                 dst = 1 / src                            nisa.reciprocal
//   scan(dst, a, op0, initial, op1, b)   dst[i, j] = (a[i, j] op0 r) op1 b[i, j], nisa.tensor_tensor_scan
//                                        r = dst[i, j - 1] before rounding, initial for j = 0
//   norm_stats(dst, src)                 dst [p, 2] f32: mean and variance        nisa.bn_stats, bn_aggr
//                                        (divided by f) of each row
//   causal_mask(tile, q, k, value)       -> tile with value at [i, j] where       nisa.affine_select
//                                        k + j > q + i (q, k: Index);
//                                        may be the same memory as tile
//   causal_select(dst, src, q, k, value, {.keys = KeyAxis::free})                 nisa.affine_select
//                                        dst = src with value where causal_mask has it;
//                                        with keys on partitions where k + i > q + j

/// A kernel is `template <Target T> void kernel(T& nc, ...)`.
/// tests/archetype.hpp has exactly this and no more.
template <class T>
concept Target = requires(T& nc, typename T::Index i, typename T::Hbm hbm, typename T::Tile tile,
                          typename T::TileArray array, const char* name, DType dtype, int n,
                          std::int64_t extent, float k) {
  typename T::Cond;
  { nc.limits() } -> std::same_as<const Limits&>;
  { nc.index(n) } -> std::same_as<typename T::Index>;
  nc.range(i).begin();
  nc.range(extent).begin();
  nc.range(i, i).begin();
  nc.tiles(extent, extent).begin();
  nc.programs(extent, extent).begin();
  { array[i] } -> std::convertible_to<typename T::Tile>;
  { nc.sbuf(name, n, n, dtype) } -> std::same_as<typename T::Tile>;
  { nc.psum(name, n, n) } -> std::same_as<typename T::Tile>;
  { nc.psum(name, n, n, dtype) } -> std::same_as<typename T::Tile>;
  { nc.sbuf_array(name, extent, n, n, dtype) } -> std::same_as<typename T::TileArray>;
  { nc.psum_array(name, extent, n, n, dtype) } -> std::same_as<typename T::TileArray>;
  { nc.input_array(name, extent, n, n, dtype) } -> std::same_as<typename T::TileArray>;
  { nc.staged(name, hbm) } -> std::same_as<typename T::Tile>;
  { nc.load(name, hbm, LoadOptions{}) } -> std::same_as<typename T::Tile>;
  { nc.load_transposed(name, hbm, LoadOptions{}) } -> std::same_as<typename T::Tile>;
  { nc.load_broadcast(name, hbm, n) } -> std::same_as<typename T::Tile>;
  nc.load(array, i, hbm, LoadOptions{});
  nc.load_transposed(array, i, hbm, LoadOptions{});
  nc.store(hbm, tile, StoreOptions{});
  nc.store_transposed(hbm, tile, StoreOptions{});
  nc.matmul(tile, tile, tile, MatmulFlags<typename T::Cond>{});
  { nc.transposed(tile) } -> std::same_as<typename T::Tile>;
  nc.transpose(tile, tile, EngineOptions{});
  nc.fill(tile, k, EngineOptions{});
  nc.copy(tile, tile, EngineOptions{});
  nc.reduce(tile, Alu::max, tile, ReduceOptions{});
  nc.tensor_tensor(tile, tile, Alu::add, tile, EngineOptions{});
  nc.tensor_scalar(tile, tile, Alu::add, k, EngineOptions{});
  nc.tensor_scalar(tile, tile, Alu::add, tile, Alu::multiply, k, EngineOptions{});
  nc.tensor_scalar_reduce(tile, tile, Alu::add, k, Alu::max, tile);
  nc.scalar_tensor_tensor(tile, tile, Alu::multiply, k, Alu::add, tile);
  nc.activate(tile, Act::exp, tile, ActivateOptions<typename T::Tile>{});
  nc.reciprocal(tile, tile);
  nc.scan(tile, tile, Alu::multiply, k, Alu::add, tile);
  nc.norm_stats(tile, tile);
  { nc.causal_mask(tile, i, i, k) } -> std::same_as<typename T::Tile>;
  nc.causal_select(tile, tile, i, i, k, SelectOptions{});
  { tile.every(n, i) } -> std::same_as<typename T::Tile>;
};

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
