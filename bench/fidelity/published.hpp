// The published rows: what was measured, where it is published, and the Program that stands for the kernel.
//
// Splits: calibration rows fix parameters (core/limits.hpp, Timing); documented rows have a public source with its loop
// order; of guessed rows the compiler's engines or its software pipeline are not public; bounds are limits that AWS's
// tests set.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mamba.hpp"
#include "neuron_kernels/record/allocate.hpp"
#include "neuron_kernels/sim/simulate.hpp"
#include "nkibench_guessed.hpp"
#include "norms.hpp"

namespace fidelity {

struct Row {
  std::string name;
  const char* chip;
  const char* split;
  double published_ms;
  bool with_launch;  // measured from outside: the launch belongs to it
  std::function<Program(const Limits&)> program;
  const char* source;
  const char* note = "";
  int fixed_buffers = 0;                      // of every tile; 0: by the allocator
  bool fits = true;                           // false: more than SBUF holds, simulated without places
  double scalar_share = 0, vector_share = 0;  // published activity of the engines, %
};

struct Result {
  double predicted_ms = 0;
  double busiest_ms = 0;  // what a perfect pipeline would take
  neuron_kernels::Engine busiest{};
  double scalar_ms = 0, vector_ms = 0;
  double error(const Row& row) const { return predicted_ms / row.published_ms - 1; }
};

inline Result simulate(const Row& row, const neuron_kernels::sim::Parameters& p) {
  Program program = row.program(p.limits);
  if (row.fits) {
    program = allocate(program, p.limits, {.fixed_buffers = row.fixed_buffers});
  } else {
    for (auto& t : program.tiles)
      t.placed.buffers = row.fixed_buffers * static_cast<int>(std::max<std::int64_t>(t.count, 1));
  }
  const auto report = neuron_kernels::sim::simulate(program, p);
  const double launch = row.with_launch ? p.timing.launch_ns : 0;
  using neuron_kernels::Engine;
  return {(report.latency_ns + launch) * 1e-6, (report.busy(report.busiest()) + launch) * 1e-6,
          report.busiest(), report.busy(Engine::scalar) * 1e-6, report.busy(Engine::vector) * 1e-6};
}
inline Result simulate(const Row& row) {
  return simulate(row, neuron_kernels::sim::parameters_for(row.chip));
}

inline std::vector<Row> rows() {
  constexpr auto f32 = DType::f32, bf16 = DType::bf16;
  const char* const trn2_matmul = "nki/guides/tutorials/kernel-optimization.rst, profiles";
  const char* const trn1_matmul = "SDK 2.26 nki/tutorials/matrix_multiplication.rst";
  const char* const fused_mamba = "nki/guides/tutorials/fused_mamba.rst";
  const char* const bench = "AccelOpt NKIBench, trn1.32xl";
  const char* const in_order = "in the order of the source; the compiler's own order is not public";
  std::vector<Row> all = {
      {"matmul f32, tiled", "trn2", "calibration", 39.895, false,
       [](const Limits& l) { return matmul_tiled(l, f32); }, trn2_matmul,
       "fixes the cost of software descriptors"},
      {"matmul f32, loads hoisted", "trn2", "calibration", 28.198, false,
       [](const Limits& l) { return matmul_hoisted(l, f32); }, trn2_matmul,
       "fixes the tensor engine's issue"},
      {"matmul f32, blocks of m and n", "trn2", "calibration", 28.41, false,
       [](const Limits& l) { return matmul_blocked_mn(l, f32); }, trn2_matmul,
       "the strip of rhs is loaded again, as the traffic says"},
      {"matmul f32, blocks of m, n and k", "trn2", "guessed", 28.302, false,
       [](const Limits& l) { return matmul_blocked_mnk(l, f32); }, trn2_matmul,
       "does not fit SBUF as published: two buffers each, without places", 2, false},
      {"matmul bf16, tiled", "trn1", "documented", 51.80, true,
       [](const Limits& l) { return matmul_tiled(l, bf16); }, trn1_matmul},
      {"matmul bf16, loads hoisted", "trn1", "calibration", 42.96, true,
       [](const Limits& l) { return matmul_hoisted(l, bf16); }, trn1_matmul, "fixes the rate of 2-byte rows"},
      {"matmul bf16, blocks of m and n", "trn1", "documented", 22.07, true,
       [](const Limits& l) { return matmul_blocked_mn(l, bf16); }, trn1_matmul},
      {"matmul bf16, blocks of m, n and k", "trn1", "documented", 6.97, true,
       [](const Limits& l) { return matmul_blocked_mnk(l, bf16); }, trn1_matmul},
      {"mamba v1, 512 x 256, on the device", "trn1", "guessed", 0.15093, false,
       [](const Limits& l) { return mamba_v1(l, 512, 256); }, fused_mamba,
       "when delta and u are loaded again is the compiler's choice"},
      {"mamba v1, 512 x 4096", "trn1", "guessed", 2.34, true,
       [](const Limits& l) { return mamba_v1(l, 512, 4096); }, fused_mamba,
       "when delta and u are loaded again is the compiler's choice"},
      {"mamba v2, 512 x 4096", "trn1", "calibration", 1.61, true,
       [](const Limits& l) { return mamba_v3(l, 512, 4096); }, fused_mamba, "fixes the vector engine's tail"},
  };
  struct Sweep {
    int seq;
    double ms;
  };
  for (const Sweep& s : {Sweep{512, 1.6},
                         {1024, 3.3},
                         {2048, 6.6},
                         {3072, 10.1},
                         {4096, 13.3},
                         {5120, 17.3},
                         {6144, 19.6},
                         {7168, 24.2},
                         {8192, 27.8}}) {
    all.push_back({neuron_kernels::text("mamba v3, ", s.seq, " x 4096"), "trn1", "calibration", s.ms, true,
                   [s](const Limits& l) { return mamba_v3(l, s.seq, 4096); }, fused_mamba});
  }
  const char* const layernorm = "SDK 2.26 nki/tutorials/layernorm.rst; 4096 x 8192 f32";
  all.push_back({"layernorm v1", "trn1", "documented", 2.311, true,
                 [](const Limits& l) { return tutorial_layernorm(l, 1); }, layernorm});
  all.push_back({"layernorm v2", "trn1", "documented", 1.969, true,
                 [](const Limits& l) { return tutorial_layernorm(l, 2); }, layernorm});
  struct Quant {
    int rows, n;
    double ms;
  };
  for (const Quant& q :
       {Quant{2048, 8192, 0.4582}, {32768, 8192, 6.287}, {2048, 16384, 0.86681}, {32768, 16384, 13.2144}}) {
    all.push_back({neuron_kernels::text("rmsnorm_quant, ", q.rows, " x ", q.n), "trn2", "documented", q.ms,
                   true, [q](const Limits& l) { return rmsnorm_quant(l, q.rows, q.n); },
                   "nki/library/specs/design-rmsnorm-quant.rst",
                   "tiles follow one another, and the product with gamma takes 2 cycles per element: chosen "
                   "knowing the figures",
                   1});
  }
  const auto add = [&](const char* name, const char* split, double ms, double scalar, double vector,
                       std::function<Program(const Limits&)> program, const char* note = "") {
    all.push_back({name, "trn1", split, ms, true, std::move(program), bench, note, 0, true, scalar, vector});
  };
  add("transpose_matmul [best]", "calibration", 9.356, 3.8, 0, transpose_matmul,
      "fixes the tensor engine's issue");
  add("matmul 4096 x 12288 x 5120", "documented", 35.20, 6.8, 0, nkibench_matmul,
      "rhs is loaded again for each tile of rows, as the traffic says");
  add("bmm", "documented", 4.611, 37.3, 0, [](const Limits& l) { return bmm(l, false); });
  add("bmm [best]", "documented", 4.333, 0, 0, [](const Limits& l) { return bmm(l, true); });
  add("swiglu", "documented", 4.222, 9.3, 13.5, swiglu, "spills as the traffic says");
  add("bmm_softmax", "guessed", 12.00, 43.4, 46.4, bmm_softmax, "spills as the traffic says");
  add(
      "matmul_add_rmsnorm", "guessed", 2.667, 16.8, 12.4,
      [](const Limits& l) {
        return norm_matmul(l, {2048, true, true, false, false});
      },
      in_order);
  add(
      "add_rmsnorm_matmul", "guessed", 1.222, 22.5, 14.8,
      [](const Limits& l) {
        return norm_matmul(l, {1024, true, true, false, true});
      },
      in_order);
  add(
      "add_rmsnorm_matmul [best]", "guessed", 1.055, 0, 0,
      [](const Limits& l) {
        return norm_matmul(l, {1024, true, true, true, true});
      },
      in_order);
  add(
      "rmsnorm_matmul", "guessed", 1.056, 17.8, 3.9,
      [](const Limits& l) {
        return norm_matmul(l, {1024, false, false, true, true});
      },
      in_order);
  add(
      "silu", "guessed", 1.333, 31.5, 73.9, [](const Limits& l) { return silu(l, 512); }, in_order);
  add(
      "silu [best]", "guessed", 0.798, 0, 0, [](const Limits& l) { return silu(l, 1024); }, in_order);
  add("adamw", "guessed", 2.000, 61.6, 90.0, adamw, in_order);
  add(
      "rope", "guessed", 4.333, 14.1, 71.6, [](const Limits& l) { return rope(l, false); }, in_order);
  add(
      "mamba 256 x 7168", "guessed", 2.889, 18.6, 61.3,
      [](const Limits& l) { return nkibench_mamba(l, false); }, in_order);
  add(
      "mamba 256 x 7168 [best]", "guessed", 2.278, 0, 0,
      [](const Limits& l) { return nkibench_mamba(l, true); }, in_order);
  return all;
}

}  // namespace fidelity
