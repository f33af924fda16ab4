// The rules that check() knows: one table, which docs/rules.md prints and a test compares with it.
//
// Sources are pages of the AWS Neuron SDK documentation (github.com/aws-neuron/aws-neuron-sdk) or a page of this
// library where the rule is its own.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "neuron_kernels/core/error.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// An error: the chip refuses the op or computes something else. A warning: it is legal, but slow or doubtful.
enum class Severity : std::uint8_t { error, warning };

constexpr const char* name_of(Severity s) { return s == Severity::error ? "error" : "warning"; }

enum class Rule : std::uint8_t {
  operands,
  read_only,
  in_bounds,
  read_before_write,
  partitions,
  start_partition,
  access_elements,
  access_stride,
  slow_stride,
  matmul_size,
  matmul_dtype,
  matmul_dst,
  psum_bank,
  psum_accumulate,
  psum_groups,
  engine_op,
  engine_memory,
  mask_in_psum,
  two_in_psum,
  bias_column,
  transpose_size,
  transpose_dtype,
  transpose_alias,
  dma_transpose,
  dma_descriptors,
  dma_row,
  dma_tiny_row,
  sbuf_capacity,
  psum_capacity,
  placement,
  placement_overlap,
  unused_tile,
  unused_tensor,
  hbm_overlap,
  hbm_unwritten
};
inline constexpr int rule_count = 35;

/// On which targets a rule is checked. `chips` is all of trn1 (also inf2), trn2 and trn3.
enum class CheckedOn : std::uint8_t { everywhere, chips, trn1, trn1_trn2 };

struct RuleInfo {
  Rule rule;
  const char* id;
  Severity severity;
  CheckedOn on;
  const char* title;
  const char* source;
};

inline constexpr const char* this_library = "core/target.hpp";
inline constexpr const char* arch_v2 = "nki/guides/architecture/trainium_inferentia2_arch.rst";
inline constexpr const char* arch_v3 = "nki/guides/architecture/trainium2_arch.rst";

inline constexpr std::array<RuleInfo, rule_count> rules{{
    {Rule::operands, "operands", Severity::error, CheckedOn::everywhere,
     "The operands of an op fit together: shapes, columns [p, 1] f32, tile and part of a tensor",
     "core/tile_rules.hpp"},
    {Rule::read_only, "read-only", Severity::error, CheckedOn::everywhere,
     "Loaded tiles are only read; tile = load(...) may alias its source", this_library},
    {Rule::in_bounds, "in-bounds", Severity::error, CheckedOn::everywhere,
     "A part lies within its tile, array or tensor in every iteration", this_library},
    {Rule::read_before_write, "read-before-write", Severity::error, CheckedOn::everywhere,
     "What is read has been written: fresh tiles have no content",
     "nki/get-started/nki-language-guide.rst, ndarray"},
    {Rule::partitions, "partitions", Severity::error, CheckedOn::chips, "A tile has at most 128 partitions",
     "nki/api/nki.language.tile_size.rst, pmax"},
    {Rule::start_partition, "start-partition", Severity::error, CheckedOn::chips,
     "An access to more than 64 partitions starts at 0, to more than 32 at 0 or 64, else at 0, 32, 64 or 96",
     arch_v2},
    {Rule::access_elements, "access-elements", Severity::error, CheckedOn::chips,
     "One access takes at most 64 Ki free elements of SBUF and 4 Ki of PSUM", arch_v2},
    {Rule::access_stride, "access-stride", Severity::error, CheckedOn::chips,
     "The stride of an access, in elements, fits an int16", arch_v2},
    {Rule::slow_stride, "slow-stride", Severity::warning, CheckedOn::chips,
     "An innermost stride above 16 bytes halves the bandwidth of the engine's port", arch_v2},
    {Rule::matmul_size, "matmul-size", Severity::error, CheckedOn::chips,
     "A matmul takes K <= 128, M <= 128 and N <= 512; on trn3 N <= 4096, or 8192 where dst is bf16",
     "nki.isa.nc_matmul, Tile size"},
    {Rule::matmul_dtype, "matmul-dtype", Severity::error, CheckedOn::everywhere,
     "A matmul's f32 operand pairs only with f32", "nki.isa.nc_matmul, Data types"},
    {Rule::matmul_dst, "matmul-dst", Severity::error, CheckedOn::chips,
     "A matmul writes f32; on trn3 f32 or bf16", "nki.isa.nc_matmul, Data types"},
    {Rule::psum_bank, "psum-bank", Severity::error, CheckedOn::trn1_trn2,
     "A matmul's dst lies in one PSUM bank of 2 KiB per partition", arch_v2},
    {Rule::psum_accumulate, "psum-accumulate", Severity::error, CheckedOn::trn1_trn2,
     "A matmul accumulates only onto what a matmul has written", "nki.isa.nc_matmul, Accumulation mode"},
    {Rule::psum_groups, "psum-groups", Severity::error, CheckedOn::chips,
     "At most 8 accumulation groups are open at a time", arch_v2},
    {Rule::engine_op, "engine-op", Severity::error, CheckedOn::chips, "The engine that an op names can do it",
     "nki.isa, parameter `engine` of each instruction"},
    {Rule::engine_memory, "engine-memory", Severity::error, CheckedOn::chips,
     "Tensor reads SBUF and writes PSUM; GpSimd and DMA do not reach PSUM", arch_v2},
    {Rule::mask_in_psum, "mask-in-psum", Severity::warning, CheckedOn::chips,
     "A causal mask of a tile in PSUM costs a copy to SBUF first, which GpSimd needs",
     "nki.isa.affine_select"},
    {Rule::two_in_psum, "two-in-psum", Severity::error, CheckedOn::chips,
     "Of the two tiles that a vector op reads, at most one is in PSUM",
     "nki.isa.tensor_tensor, scalar_tensor_tensor, tensor_tensor_scan"},
    {Rule::bias_column, "bias-column", Severity::warning, CheckedOn::trn1,
     "An activation's bias is a column [p, 1]; for a number one has to be filled",
     "nki.isa.activation, Layout"},
    {Rule::transpose_size, "transpose-size", Severity::error, CheckedOn::chips,
     "A transpose takes at most [128, 128] on Tensor and [32, 32] on Vector",
     "nki.isa.nc_transpose, Tile size"},
    {Rule::transpose_dtype, "transpose-dtype", Severity::warning, CheckedOn::trn1,
     "Tensor transposes by a matmul, which writes f32: a 16-bit dst takes 4 bytes per element of PSUM",
     arch_v3},
    {Rule::transpose_alias, "transpose-alias", Severity::error, CheckedOn::everywhere,
     "A transpose does not write where it reads", this_library},
    {Rule::dma_transpose, "dma-transpose", Severity::warning, CheckedOn::trn1,
     "Trn1 has no transposing DMA: each element travels as a row of its own", arch_v3},
    {Rule::dma_descriptors, "dma-descriptors", Severity::error, CheckedOn::chips,
     "Hardware descriptors need trn2 or trn3, and transpose 2-byte types, rows a multiple of 16, at most 128 "
     "columns; software descriptors do not transpose",
     "nki.isa.dma_transpose, dge_mode"},
    {Rule::dma_row, "dma-row", Severity::warning, CheckedOn::chips,
     "Rows of a transfer below 2 KiB per partition waste DMA bandwidth",
     "nki/deep-dives/nki-dma-bandwidth-guide.rst"},
    {Rule::dma_tiny_row, "dma-tiny-row", Severity::warning, CheckedOn::chips,
     "Rows of a transfer below 512 bytes per partition waste most of it",
     "nki/deep-dives/nki-dma-bandwidth-guide.rst"},
    {Rule::sbuf_capacity, "sbuf-capacity", Severity::error, CheckedOn::chips,
     "The tiles alive at one op fit the SBUF that kernels may use",
     "nki/api/nki.language.tile_size.rst, sbuf_fmax_bytes"},
    {Rule::psum_capacity, "psum-capacity", Severity::error, CheckedOn::chips,
     "The PSUM tiles alive at one op fit 8 banks of 2 KiB per partition",
     "nki/api/nki.language.tile_size.rst, psum_num_banks"},
    {Rule::placement, "placement", Severity::error, CheckedOn::chips,
     "A placed tile lies within its memory, its copies apart", "record/program.hpp, Placement"},
    {Rule::placement_overlap, "placement-overlap", Severity::error, CheckedOn::chips,
     "Placed tiles that are alive at the same time do not overlap", "record/program.hpp, Placement"},
    {Rule::unused_tile, "unused-tile", Severity::warning, CheckedOn::everywhere,
     "A tile is read at some point", this_library},
    {Rule::unused_tensor, "unused-tensor", Severity::warning, CheckedOn::everywhere,
     "An argument of the kernel is read or written", this_library},
    {Rule::hbm_overlap, "hbm-overlap", Severity::warning, CheckedOn::everywhere,
     "No part of a tensor is both read and written: tiles order transfers, device memory does not",
     this_library},
    {Rule::hbm_unwritten, "hbm-unwritten", Severity::warning, CheckedOn::everywhere,
     "A tensor that is only written is written everywhere", this_library},
}};

constexpr const RuleInfo& info_of(Rule rule) { return rules[static_cast<std::size_t>(rule)]; }
constexpr const char* name_of(Rule rule) { return info_of(rule).id; }

constexpr const char* name_of(CheckedOn on) {
  constexpr const char* names[] = {"everywhere", "trn1, trn2, trn3", "trn1", "trn1, trn2"};
  return names[static_cast<int>(on)];
}

/// The rules as the rows of a Markdown table.
inline std::string rules_table() {
  std::string s = "| rule | | checked on | what holds | source |\n|---|---|---|---|---|\n";
  for (const RuleInfo& r : rules) {
    s += text("| `", r.id, "` | ", name_of(r.severity), " | ", name_of(r.on), " | ", r.title, " | ", r.source,
              " |\n");
  }
  return s;
}

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
