// simulate(program): how long a Program takes on one core of a chip, and what its engines do meanwhile.
#pragma once

#include <functional>
#include <numeric>

#include "neuron_kernels/sim/timeline.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace sim {

struct Options {
  int cores = 1;                                // that share the iterations of programs() loops
  int cores_per_stack = 1;                      // that use one stack of HBM at the same time
  double useful_flops = 0;                      // for MFU; 0: of all matmuls
  std::function<void(const Event&)> observe{};  // each instruction, in the order of the Program
};

/// What an engine waited for, in ns. With its busy time and the time after its last instruction this is the latency; of
/// dma, which fills gaps later, it is at most that.
struct Waits {
  std::array<double, engine_count>
      data{};         // a result of that engine; dma for dma: issue and start of transfers
  double buffer = 0;  // a buffer to be free
  double port = 0;    // another engine at the same port of SBUF or PSUM
  double sum() const { return std::accumulate(data.begin(), data.end(), buffer + port); }
};

struct Report {
  std::string chip;
  double latency_ns = 0;
  std::int64_t instructions = 0;
  std::array<std::int64_t, engine_count> instructions_of{};
  std::array<double, engine_count> busy_ns{};  // dma: of all its engines together
  std::array<Waits, engine_count> waits{};
  double issue_ns = 0;  // that the most used writer of descriptors was busy
  std::vector<std::array<double, engine_count>> op_busy_ns{};         // per op of the Program
  std::int64_t bytes_read = 0, bytes_written = 0, bytes_in_sbuf = 0;  // by transfers
  double flops = 0, useful_flops = 0;
  double peak_flops_per_ns = 0;  // of the tensor engine, bf16

  double busy(Engine e) const { return busy_ns[static_cast<std::size_t>(e)]; }
  double active(Engine e) const { return latency_ns > 0 ? busy(e) / latency_ns : 0; }
  /// After its last instruction.
  double done_ns(Engine e) const {
    return std::max(0.0, latency_ns - busy(e) - waits[static_cast<std::size_t>(e)].sum());
  }
  double mfu() const { return latency_ns > 0 ? useful_flops / latency_ns / peak_flops_per_ns : 0; }
  std::int64_t hbm_bytes() const { return bytes_read + bytes_written; }
  Engine busiest() const {
    const auto most = std::max_element(busy_ns.begin(), busy_ns.end());
    return static_cast<Engine>(most - busy_ns.begin());
  }
};

/// Scales what transfers waited for to the time that they left idle: later ones have filled part of it.
inline void fit(Waits& waits, double idle_ns) {
  const double sum = waits.sum();
  if (sum <= idle_ns) return;
  for (double& ns : waits.data) ns *= idle_ns / sum;
  waits.buffer *= idle_ns / sum;
}

/// One core's share of the Program, from its first instruction to its last.
inline Report simulate_core(const Program& program, const Parameters& parameters, const Options& options,
                            int core) {
  const Lowered lowered = lower(program, parameters.limits, parameters.timing);
  const double stack =
      parameters.limits.hbm_gb_per_s / parameters.limits.hbm_stacks / options.cores_per_stack;
  Timeline timeline(program, lowered, parameters, std::min(1.0, stack / parameters.limits.dma_gb_per_s()));
  Report report;
  report.chip = parameters.limits.chip;
  report.peak_flops_per_ns = 2.0 * 128 * 128 * parameters.limits.tensor.ghz;
  report.op_busy_ns.resize(program.ops.size());
  Walk walk(program);
  walk.deal_to(options.cores, core);
  walk.run([&](const record::Op& op, int at) {
    const bool into_array =
        op.code == record::OpCode::load_element || op.code == record::OpCode::load_transposed_element;
    const bool makes = record::is_structure(op.code) || op.code == record::OpCode::transposed ||
                       op.code == record::OpCode::causal_mask ||
                       (record::is_transfer(op.code) && op.dst.given() && !into_array);
    if (makes && op.dst.given()) timeline.make(op.dst.tile);
    for (const Instruction& i : record::nth(lowered.ops, at)) {
      const Event event = timeline.add(i, at, walk);
      const auto e = static_cast<std::size_t>(i.engine);
      ++report.instructions;
      ++report.instructions_of[e];
      report.busy_ns[e] += event.busy_ns;
      record::nth(report.op_busy_ns, at)[e] += event.busy_ns;
      report.flops += i.flops;
      if (i.engine == Engine::dma) {
        (i.in_sbuf    ? report.bytes_in_sbuf
         : i.is_store ? report.bytes_written
                      : report.bytes_read) += i.rows * i.row_bytes;
      }
      Waits& waits = report.waits[e];
      waits.port += event.port_ns;
      if (event.waited_ns > 0) {
        (event.for_what.buffer ? waits.buffer
                               : waits.data[static_cast<std::size_t>(event.for_what.engine)]) +=
            event.waited_ns;
      }
      if (options.observe) options.observe(event);
    }
    return true;
  });
  report.latency_ns = timeline.end_ns();
  report.issue_ns = timeline.issue_ns();
  fit(report.waits[static_cast<std::size_t>(Engine::dma)], report.latency_ns - report.busy(Engine::dma));
  report.useful_flops = options.useful_flops > 0 ? options.useful_flops : report.flops;
  return report;
}

/// A core runs the Program from its first instruction to its last; of several cores the one that takes longest is
/// reported and observed.
/// cost: linear in the instructions executed, about 0.1 us each; memory in the tiles, not in the run
inline Report simulate(const Program& program, const Parameters& parameters, const Options& options = {}) {
  int slowest = 0;
  double longest = -1;
  for (int core = 0; options.cores > 1 && core < options.cores; ++core) {
    Options unseen = options;
    unseen.observe = nullptr;
    const double ns = simulate_core(program, parameters, unseen, core).latency_ns;
    if (ns > longest) longest = ns, slowest = core;
  }
  return simulate_core(program, parameters, options, slowest);
}

inline Report simulate(const Program& program) { return simulate(program, parameters_for(program.chip)); }

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
