// Limits: what one target's tiles may be, and what its engines and memories do per second.
// All hardware numbers of the library stand here, each with its source.
//
// Pages named below are of the AWS Neuron SDK documentation (github.com/aws-neuron/aws-neuron-sdk). Where its
// pages disagree, the smaller number is taken. GB = 10^9 bytes, TFLOPS = 10^12 operations per second, dense.
#pragma once

#include <cstdint>

#include "neuron_kernels/core/abi.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

inline constexpr int no_limit = 1 << 30;

/// Clock of an engine, and the elements that it takes in per cycle: `elements` of f32, `elements_16bit` of
/// bf16 or f16. Zero where nothing is said of the target.
struct EngineRate {
  double ghz = 0;
  int elements = 0, elements_16bit = 0;
};

struct Limits {
  const char* chip;          // "trn1" (also inf2), "trn2", "trn3" or "host"
  int partitions;            // rows of a tile: pmax
  int gemm_stationary_fmax;  // free size of matmul's stationary operand
  int gemm_moving_fmax;      // free size of matmul's moving operand
  int psum_bank_bytes;       // of one PSUM bank, per partition
  int psum_banks;            // banks per partition
  int sbuf_partition_bytes;  // SBUF per partition
  int bn_stats_fmax;         // free size of one bn_stats

  // Access to tiles.
  int sbuf_usable_bytes = no_limit;     // of sbuf_partition_bytes, what kernels may allocate
  int psum_bank_bf16 = 0;               // bf16 elements of a bank, where matmul may write bf16;
                                        // 0: it writes f32 only
  int access_dims = no_limit;           // free dimensions of one access pattern;
                                        // most instructions take one less
  int sbuf_access_elements = no_limit;  // free elements of one access
  int psum_access_elements = no_limit;
  int fast_stride_bytes = no_limit;  // an innermost free stride above this halves the port's bandwidth

  // Engines of one core. tensor.elements counts both operands' columns of 128.
  EngineRate tensor{}, vector{}, scalar{}, gpsimd{};
  int f32_passes = 0;  // times that the tensor engine runs for one f32 matmul
  double core_tflops_16bit = 0, core_tflops_f32 = 0, core_tflops_fp8 = 0;

  // DMA of one core.
  int dma_engines = 0;
  double dma_engine_peak_gb_per_s = 0;  // of one engine, in theory
  double dma_engine_gb_per_s = 0;       // of one engine, in practice

  // The chip.
  int cores = 0;
  int hbm_stacks = 0;
  std::int64_t hbm_bytes = 0;
  double hbm_gb_per_s = 0;       // all stacks
  double chip_dma_gb_per_s = 0;  // all DMA engines
  double chip_tflops_16bit = 0, chip_tflops_f32 = 0, chip_tflops_fp8 = 0;
  double neuronlink_gb_per_s = 0;  // to other chips, all links

  constexpr bool is_host() const { return partitions > 128; }
  constexpr int psum_bank_f32() const { return psum_bank_bytes / 4; }
  constexpr std::int64_t sbuf_bytes() const { return std::int64_t{partitions} * sbuf_partition_bytes; }
  constexpr std::int64_t psum_bytes() const {
    return std::int64_t{partitions} * psum_banks * psum_bank_bytes;
  }
  constexpr double dma_gb_per_s() const { return dma_engines * dma_engine_gb_per_s; }

  /// Whether an access to `count` partitions may start at `first`:
  /// more than 64 at 0, more than 32 at 0 or 64, else at 0, 32, 64 or 96. Host: anywhere.
  /// source: nki/guides/architecture/trainium_inferentia2_arch.rst, "Accessing SBUF/PSUM tensors"
  constexpr bool start_partition_ok(int first, int count) const {
    if (is_host()) return true;
    const int unit = count > 64 ? 128 : count > 32 ? 64 : 32;
    return first >= 0 && first % unit == 0 && first + count <= partitions;
  }
};

// Sources of each chip's block:
// - sizes of SBUF and PSUM, clocks, elements per cycle, TFLOPS per core, HBM, cores, DMA engines:
//   nki/guides/architecture/{trainium_inferentia2,trainium2,trainium3}_arch.rst
// - pmax, psum_bank_fmax, gemm_*_fmax, bn_stats_fmax: nki/api/nki.language.tile_size.rst; but trn3's
//   gemm_moving_fmax (all eight banks, f32 dst): nki.isa.nc_matmul
// - free dimensions of an access: nki/deep-dives/nki-aps.rst;
//   its 64 Ki and 4 Ki elements ("Layout & Tile Size") and the stride of 16 bytes ("Access pattern"):
//   nki/guides/architecture/trainium_inferentia2_arch.rst
// - f32 at a quarter of the rate of bf16: nki.isa.nc_matmul
// - DMA rates of one engine: nki/deep-dives/nki-dma-bandwidth-guide.rst
// - chip totals, NeuronLink: about-neuron/arch/neuron-hardware/{trainium,trainium2,trainium3}.rst
// - sbuf_usable_bytes: the query is nl.tile_size.sbuf_fmax_bytes, whose value is published for trn2 only, by
//   github.com/aws-neuron/nki-library, core/mlp/mlp_cte/mlp_cte_constants.py: 16384 bytes are scratch of
//   dynamic DMA, 8 + 256 constants (identity for transposes). The same
//   reserve is taken off trn3; trn1 has no dynamic DMA, and keeps the constants only.
inline constexpr int sbuf_reserved_bytes = 16384 + 8 + 256;

inline constexpr Limits trn1{
    .chip = "trn1",
    .partitions = 128,
    .gemm_stationary_fmax = 128,
    .gemm_moving_fmax = 512,
    .psum_bank_bytes = 2048,
    .psum_banks = 8,
    .sbuf_partition_bytes = 192 * 1024,
    .bn_stats_fmax = 512,
    .sbuf_usable_bytes = 192 * 1024 - 8 - 256,
    .psum_bank_bf16 = 0,
    .access_dims = 4,
    .sbuf_access_elements = 64 * 1024,
    .psum_access_elements = 4 * 1024,
    .fast_stride_bytes = 16,
    .tensor = {2.8, 2 * 128, 2 * 128},
    .vector = {1.12, 128, 128},
    .scalar = {1.4, 128, 128},
    .gpsimd = {1.4, 128, 256},
    .f32_passes = 4,
    .core_tflops_16bit = 92,
    .core_tflops_f32 = 23,
    .core_tflops_fp8 = 92,
    .dma_engines = 16,
    .dma_engine_peak_gb_per_s = 27.2,
    .dma_engine_gb_per_s = 17,
    .cores = 2,
    .hbm_stacks = 2,
    .hbm_bytes = std::int64_t{32} << 30,
    .hbm_gb_per_s = 820,
    .chip_dma_gb_per_s = 1000,
    .chip_tflops_16bit = 190,
    .chip_tflops_f32 = 47.5,
    .chip_tflops_fp8 = 190,
    .neuronlink_gb_per_s = 384,  // inf2: 192
};

inline constexpr Limits trn2{
    .chip = "trn2",
    .partitions = 128,
    .gemm_stationary_fmax = 128,
    .gemm_moving_fmax = 512,
    .psum_bank_bytes = 2048,
    .psum_banks = 8,
    .sbuf_partition_bytes = 224 * 1024,
    .bn_stats_fmax = 512,
    .sbuf_usable_bytes = 224 * 1024 - sbuf_reserved_bytes,
    .psum_bank_bf16 = 0,
    .access_dims = 4,
    .sbuf_access_elements = 64 * 1024,
    .psum_access_elements = 4 * 1024,
    .fast_stride_bytes = 16,
    .tensor = {2.4, 2 * 128, 2 * 128},
    .vector = {0.96, 256, 512},
    .scalar = {1.2, 128, 128},
    .gpsimd = {1.2, 128, 256},
    .f32_passes = 4,
    .core_tflops_16bit = 79,
    .core_tflops_f32 = 20,
    .core_tflops_fp8 = 158,
    .dma_engines = 16,
    .dma_engine_peak_gb_per_s = 27.2,
    .dma_engine_gb_per_s = 23,
    .cores = 8,
    .hbm_stacks = 4,
    .hbm_bytes = std::int64_t{96} << 30,
    .hbm_gb_per_s = 2900,
    .chip_dma_gb_per_s = 3500,
    .chip_tflops_16bit = 667,
    .chip_tflops_f32 = 181,
    .chip_tflops_fp8 = 1299,
    .neuronlink_gb_per_s = 1280,  // 1024 within the instance, 256 to other instances of an UltraServer
};

inline constexpr Limits trn3{
    .chip = "trn3",
    .partitions = 128,
    .gemm_stationary_fmax = 128,
    .gemm_moving_fmax = 4096,
    .psum_bank_bytes = 2048,
    .psum_banks = 8,
    .sbuf_partition_bytes = 256 * 1024,
    .bn_stats_fmax = 512,
    .sbuf_usable_bytes = 256 * 1024 - sbuf_reserved_bytes,
    .psum_bank_bf16 = 1024,
    .access_dims = 4,
    .sbuf_access_elements = 64 * 1024,
    .psum_access_elements = 4 * 1024,
    .fast_stride_bytes = 16,
    .tensor = {2.4, 2 * 128, 2 * 128},
    .vector = {1.2, 256, 512},
    .scalar = {1.2, 128, 256},
    .gpsimd = {1.2, 128, 128},
    .f32_passes = 4,
    .core_tflops_16bit = 79,
    .core_tflops_f32 = 20,
    .core_tflops_fp8 = 315,  // MXFP8
    .dma_engines = 16,
    .dma_engine_peak_gb_per_s = 38.4,
    .dma_engine_gb_per_s = 33,
    .cores = 8,
    .hbm_stacks = 4,
    .hbm_bytes = std::int64_t{144} << 30,
    .hbm_gb_per_s = 4700,
    .chip_dma_gb_per_s = 4900,
    .chip_tflops_16bit = 671,
    .chip_tflops_f32 = 183,
    .chip_tflops_fp8 = 2517,
    .neuronlink_gb_per_s = 2560,
};

/// What an instruction costs beyond its data, and what a transfer costs beyond its bytes. Cycles are those of the
/// engine in question.
struct Timing {
  double least_cycles = 64;  // minimum initiation interval of any compute engine
  double tensor_issue_cycles = 0, vector_issue_cycles = 0, scalar_issue_cycles = 0, gpsimd_issue_cycles = 0;
  double tensor_tail_cycles = 0, vector_tail_cycles = 0, scalar_tail_cycles = 0,
         gpsimd_tail_cycles = 0;  // until a result can be read by the same engine
  double semaphore_ns = 0;        // until another engine knows of it
  int f32_instructions = 0;       // that the f32_passes of a matmul are issued as
  int f32_transpose_passes = 0;
  double warm_up_ns =
      0;  // of activity until the tensor engine runs at full clock (before: half of it), and of
          // idleness until it falls back
  double dma_row_bytes = 0;  // that one row costs in addition to its own
  double dma_start_ns = 0,
         dma_done_ns = 0;  // from the trigger to the first byte, from the last to the reader
  double dma_issue_ns = 0, software_dge_ns = 0, hardware_dge_ns = 0;  // between triggers, by Dge
  bool software_dge = false;                                          // where Dge is automatic
  double dma_16bit_gb_per_s = 0;  // of all engines, for rows of 2-byte elements; 0: as others
  double dma_transpose_rate = 0;  // share of the rate from HBM; within SBUF dma_transpose_sbuf_rate; 0: none
  double dma_transpose_sbuf_rate = 0;
  bool shared_ports = false;  // vector and gpsimd exclude each other on SBUF, vector and scalar on PSUM
  bool shared_bus = false;    // vector in its 2x and 4x modes and gpsimd exclude each other
  double launch_ns = 0;       // what a latency measured from outside adds to the time on the device
};

// Sources. MIN_II of 64 cycles, GpSimd start of 150, SRAM access of about 60, f32 as two instructions of two passes
// (trn2), warm-up of about 3 us: nki_perf_guide, nki.isa (SDK 2.26), overview-summary-page. Vector issue of 20 cycles:
// profile in kernel-optimization.rst (512 elements in 553 ns); scalar issue of 60: by instruction counts of published
// profiles; scalar tail: chain of 1-element ACTIVATEs at 264 cycles (nki_perf_guide, fig. 16). DMA start and end:
// nki-dma-bandwidth-guide, example 2; row cost: its measured transfers; 608 ns per DMA of software descriptors and 8 to
// 50 ns of ready ones: kernel-optimization.rst, tiled matmul, and the guide's profile. Calibrated on published rows
// (docs/fidelity.md): the tensor engine's issue cycles, trn1's rate of 2-byte rows. Ports, f32 transposes at twice the
// rate of a matmul, and the bus, which the hardware arbitrates at a cost that is not said: {trainium_inferentia2,
// trainium2}_arch.rst. trn3: as trn2 where nothing is said.
inline constexpr Timing trn1_timing{
    .tensor_issue_cycles = 66,
    .vector_issue_cycles = 20,
    .scalar_issue_cycles = 60,
    .gpsimd_issue_cycles = 150,
    .tensor_tail_cycles = 64,
    .vector_tail_cycles = 60,
    .scalar_tail_cycles = 200,
    .gpsimd_tail_cycles = 60,
    .semaphore_ns = 50,
    .f32_instructions = 4,
    .f32_transpose_passes = 4,
    .dma_row_bytes = 150,
    .dma_start_ns = 1300,
    .dma_done_ns = 300,
    .dma_issue_ns = 50,
    .software_dge_ns = 50,
    .hardware_dge_ns = 50,
    .dma_16bit_gb_per_s = 104.5,
    .shared_ports = true,
    .launch_ns = 20000,
};

inline constexpr Timing trn2_timing{
    .tensor_issue_cycles = 7,
    .vector_issue_cycles = 20,
    .scalar_issue_cycles = 60,
    .gpsimd_issue_cycles = 150,
    .tensor_tail_cycles = 64,
    .vector_tail_cycles = 60,
    .scalar_tail_cycles = 200,
    .gpsimd_tail_cycles = 60,
    .semaphore_ns = 50,
    .f32_instructions = 2,
    .f32_transpose_passes = 2,
    .warm_up_ns = 3000,
    .dma_row_bytes = 150,
    .dma_start_ns = 1000,
    .dma_done_ns = 300,
    .dma_issue_ns = 50,
    .software_dge_ns = 608,
    .hardware_dge_ns = 600,
    .software_dge = true,
    .dma_transpose_rate = 0.9,
    .dma_transpose_sbuf_rate = 0.5,
    .shared_bus = true,
    .launch_ns = 20000,
};

inline constexpr Timing trn3_timing = trn2_timing;

/// A CPU bounds tiles by its caches only; Blocking::default_for picks sizes that fit them.
inline constexpr Limits host_limits{"host",   no_limit, no_limit, no_limit,
                                    no_limit, no_limit, no_limit, no_limit};

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
