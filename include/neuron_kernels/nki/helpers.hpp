// Python functions that stand before a kernel where it needs them: layout ops that take the chip several
// instructions. NKI's compiler inlines them (AWS Neuron SDK, nki/get-started/nki-language-guide.rst).
#pragma once

#include <array>
#include <string_view>

#include "neuron_kernels/core/abi.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace nki {

enum class Helper {
  tile_list,
  placed_list,
  part_of_bank,
  part_list,
  column,
  transpose,
  load_transposed,
  store_transposed,
  in_sbuf,
  select_to_psum,
  row_statistics
};
inline constexpr int helper_count = 11;

/// Which helpers a kernel calls.
class Helpers {
 public:
  void use(Helper h) { used_[static_cast<std::size_t>(h)] = true; }
  bool uses(Helper h) const { return used_[static_cast<std::size_t>(h)]; }

 private:
  std::array<bool, helper_count> used_{};
};

constexpr std::string_view source_of(Helper h) {
  switch (h) {
    case Helper::tile_list:
      return R"py(def tile_list(count, shape, dtype, buffer):
    """`count` fresh tiles of one shape."""
    tiles = []
    for _ in range(count):
        tiles.append(nl.ndarray(shape, dtype=dtype, buffer=buffer))
    return tiles
)py";
    case Helper::placed_list:
      return R"py(def placed_list(count, shape, dtype, buffer, address, stride, buffers, first):
    """`count` tiles of one shape in a ring of `buffers`, `stride` bytes apart from `address` on."""
    tiles = []
    for i in range(count):
        where = (0, address + (first + i) % buffers * stride)
        tiles.append(nl.ndarray(shape, dtype=dtype, buffer=buffer, address=where))
    return tiles
)py";
    case Helper::part_of_bank:
      return R"py(def part_of_bank(shape, dtype, bank_elements, address):
    """A tile within a bank of PSUM; tensors themselves begin where banks do."""
    bank_bytes = nl.tile_size.psum_bank_fmax_bytes
    bank = nl.ndarray(
        (shape[0], bank_elements),
        dtype=dtype,
        buffer=nl.psum,
        address=(0, address // bank_bytes * bank_bytes),
    )
    return bank[:, nl.ds(address % bank_bytes * bank_elements // bank_bytes, shape[1])]
)py";
    case Helper::part_list:
      return R"py(def part_list(count, shape, dtype, bank_elements, address, stride, buffers, first):
    """`count` tiles within banks of PSUM, in a ring of `buffers`, `stride` bytes apart from `address` on."""
    tiles = []
    for i in range(count):
        tiles.append(part_of_bank(shape, dtype, bank_elements, address + (first + i) % buffers * stride))
    return tiles
)py";
    case Helper::column:
      return R"py(def column(p, value):
    """[p, 1], the same number in each partition: NeuronCore-v2 adds no other bias."""
    tile = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=value, engine=nisa.engine.gpsimd)
    return tile
)py";
    case Helper::transpose:
      return R"py(def transpose(dst, src):
    """dst [f, p] = src^T, both in SBUF: the tensor engine writes PSUM."""
    psum = nl.ndarray(dst.shape, dtype=src.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=psum, data=src, engine=nisa.engine.tensor)
    nisa.tensor_copy(dst=dst, src=psum, engine=nisa.engine.vector)
)py";
    case Helper::load_transposed:
      return R"py(def load_transposed(dst, src, dge_mode=nisa.dge_mode.unknown):
    """dst [c, r] in SBUF = src^T, src [r, c] in HBM: in blocks of 128 rows, by the tensor engine through PSUM."""
    r, c = src.shape
    for begin in range(0, r, 128):
        rows = min(128, r - begin)
        block = nl.ndarray((rows, c), dtype=src.dtype, buffer=nl.sbuf)
        turned = nl.ndarray((c, rows), dtype=src.dtype, buffer=nl.psum)
        nisa.dma_copy(dst=block, src=src[nl.ds(begin, rows), :], dge_mode=dge_mode)
        nisa.nc_transpose(dst=turned, data=block, engine=nisa.engine.tensor)
        nisa.tensor_copy(dst=dst[:, nl.ds(begin, rows)], src=turned, engine=nisa.engine.vector)
)py";
    case Helper::store_transposed:
      return R"py(def store_transposed(dst, src, dge_mode=nisa.dge_mode.unknown):
    """dst [f, p] in HBM = src^T, src [p, f] in SBUF: in blocks of 128 columns, by the tensor engine through PSUM."""
    p, f = src.shape
    for begin in range(0, f, 128):
        rows = min(128, f - begin)
        turned = nl.ndarray((rows, p), dtype=src.dtype, buffer=nl.psum)
        block = nl.ndarray((rows, p), dtype=dst.dtype, buffer=nl.sbuf)
        nisa.nc_transpose(dst=turned, data=src[:, nl.ds(begin, rows)], engine=nisa.engine.tensor)
        nisa.tensor_copy(dst=block, src=turned, engine=nisa.engine.vector)
        nisa.dma_copy(dst=dst[nl.ds(begin, rows), :], src=block, dge_mode=dge_mode)
)py";
    case Helper::in_sbuf:
      return R"py(def in_sbuf(src):
    """A copy of a tile in PSUM, where neither DMA nor the tensor engine reads."""
    tile = nl.ndarray(src.shape, dtype=src.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=src, engine=nisa.engine.vector)
    return tile
)py";
    case Helper::select_to_psum:
      return R"py(def select_to_psum(dst, src, step, offset, channel_multiplier, value):
    """dst in PSUM = src where offset + channel_multiplier * row + step * column >= 0, else value; through SBUF."""
    block = nl.ndarray(src.shape, dtype=dst.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=block, src=src, engine=nisa.engine.vector)
    nisa.affine_select(
        dst=block,
        pattern=[[step, src.shape[1]]],
        offset=offset,
        channel_multiplier=channel_multiplier,
        on_true_tile=block,
        on_false_value=value,
        cmp_op=nl.greater_equal,
    )
    nisa.tensor_copy(dst=dst, src=block, engine=nisa.engine.vector)
)py";
    default:
      return R"py(def row_statistics(dst, src):
    """dst [p, 2] = mean and variance of each row of src [p, n]."""
    p, n = src.shape
    most = nl.tile_size.bn_stats_fmax
    parts = (n + most - 1) // most
    stats = nl.ndarray((p, 6 * parts), dtype=nl.float32, buffer=nl.sbuf)
    for i in range(parts):
        columns = min(most, n - i * most)
        nisa.bn_stats(dst=stats[:, 6 * i : 6 * i + 6], data=src[:, nl.ds(i * most, columns)])
    nisa.bn_aggr(dst=dst, data=stats)
)py";
  }
}

}  // namespace nki
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
