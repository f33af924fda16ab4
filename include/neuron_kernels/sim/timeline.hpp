// Timeline: when each instruction starts and ends on the engines of one core.
//
// Compute engines take instructions in the order of the Program. What each waits for is known by then, so one pass
// over the instructions is enough; transfers, which overtake each other, fill gaps that earlier ones left.
#pragma once

#include <cmath>
#include <deque>

#include "neuron_kernels/sim/buffers.hpp"
#include "neuron_kernels/sim/parameters.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace sim {

/// Something that serves one at a time. A later call may be served in a gap before an earlier one.
class Lane {
 public:
  /// Returns when it starts, at `ready` or later.
  double reserve(double ready, double duration) {
    for (Gap& gap : gaps_) {
      const double start = std::max(gap.begin, ready);
      if (start + duration > gap.end) continue;
      if (start - gap.begin > gap.end - start - duration) {
        gap.end = start;  // keep the larger of what is left
      } else {
        gap.begin = start + duration;
      }
      return start;
    }
    const double start = std::max(ready, end_);
    if (start > end_) {
      if (gaps_.size() == most_gaps) gaps_.pop_front();
      gaps_.push_back({end_, start});
    }
    end_ = start + duration;
    return start;
  }

 private:
  static constexpr std::size_t most_gaps = 16;
  struct Gap {
    double begin, end;
  };
  std::deque<Gap> gaps_;
  double end_ = 0;
};

struct Event {
  Engine engine = Engine::automatic;
  int op = 0;  // position in Program::ops
  double start_ns = 0, busy_ns = 0;
  double waited_ns = 0;  // that the engine stood still before it
  Moment for_what{};     // and for what
};

class Timeline {
 public:
  Timeline(const Program& program, const Lowered& lowered, const Parameters& p, double dma_share)
      : limits_(p.limits),
        timing_(p.timing),
        dma_ns_per_byte_(1 / (p.limits.dma_engine_gb_per_s * dma_share)),
        buffers_(program, lowered, p.timing.semaphore_ns),
        queues_(2 * program.tensors.size() + 1) {}

  void make(int tile) { buffers_.make(tile); }
  double end_ns() const { return end_; }

  /// Puts one instruction of op `op` on its engine.
  Event add(const Instruction& i, int op, const Walk& walk) {
    Moment ready;
    for (int r = 0; r < i.read_count; ++r)
      buffers_.ready_to_read(i.reads[static_cast<std::size_t>(r)], walk, i.engine, ready);
    for (int w = 0; w < i.write_count; ++w)
      buffers_.ready_to_write(i.writes[static_cast<std::size_t>(w)], walk, i.engine, ready);
    Event event = i.engine == Engine::dma ? transfer(i, ready) : compute(i, ready);
    event.op = op;
    for (int r = 0; r < i.read_count; ++r)
      buffers_.did_read(i.reads[static_cast<std::size_t>(r)], walk, i.engine, visible_);
    for (int w = 0; w < i.write_count; ++w)
      buffers_.did_write(i.writes[static_cast<std::size_t>(w)], walk, i.engine, visible_);
    return event;
  }

 private:
  Event compute(const Instruction& i, const Moment& ready) {
    double& free = free_[static_cast<std::size_t>(i.engine)];
    double busy = 0, tail = 0;
    switch (i.engine) {
      case Engine::tensor:
        busy = (i.cycles + i.passes * timing_.tensor_issue_cycles) / limits_.tensor.ghz;
        tail = timing_.tensor_tail_cycles / limits_.tensor.ghz;
        break;
      case Engine::vector:
        busy = cost(i.cycles, timing_.vector_issue_cycles, limits_.vector);
        tail = timing_.vector_tail_cycles / limits_.vector.ghz;
        break;
      case Engine::scalar:
        busy = cost(i.cycles, timing_.scalar_issue_cycles, limits_.scalar);
        tail = timing_.scalar_tail_cycles / limits_.scalar.ghz;
        break;
      default:
        busy = cost(i.cycles, timing_.gpsimd_issue_cycles, limits_.gpsimd);
        tail = timing_.gpsimd_tail_cycles / limits_.gpsimd.ghz;
    }
    double start = std::max(free, ready.ns);
    if (i.engine == Engine::tensor) busy *= warm_up(start, busy);
    if (timing_.shared_ports) start = at_port(i, start, busy);
    Event event{
        .engine = i.engine, .start_ns = start, .busy_ns = busy, .waited_ns = start - free, .for_what = ready};
    free = start + busy;
    end_ = std::max(end_, free);
    visible_ = free + tail;
    return event;
  }

  double cost(double cycles, double issue, const EngineRate& rate) const {
    return (std::max(timing_.least_cycles, cycles) + issue) / rate.ghz;
  }

  /// 2 while the tensor engine warms up, else 1.
  double warm_up(double start, double busy) {
    if (timing_.warm_up_ns <= 0) return 1;
    if (start - tensor_end_ > timing_.warm_up_ns) warm_ns_ = 0;
    const double factor = warm_ns_ < timing_.warm_up_ns ? 2 : 1;
    if (factor > 1) warm_ns_ += factor * busy;
    tensor_end_ = start + factor * busy;
    return factor;
  }

  double at_port(const Instruction& i, double start, double busy) {
    if (i.uses_sbuf && (i.engine == Engine::vector || i.engine == Engine::gpsimd))
      start = sbuf_port_.reserve(start, busy);
    if (i.uses_psum && (i.engine == Engine::vector || i.engine == Engine::scalar))
      start = psum_port_.reserve(start, busy);
    return start;
  }

  Event transfer(const Instruction& i, const Moment& ready) {
    double& queue = record::nth(queues_, i.in_sbuf ? static_cast<int>(queues_.size()) - 1 : i.queue);
    const bool software = i.dge == Dge::software || (i.dge == Dge::automatic && timing_.software_dge);
    const double issue = software                 ? timing_.software_dge_ns
                         : i.dge == Dge::hardware ? timing_.hardware_dge_ns
                                                  : timing_.dma_issue_ns;
    const double issued = triggers_.reserve(std::max(queue, ready.ns), issue);
    queue = issued + issue;
    // Rows are dealt to the engines, eight to each before the next gets any.
    const auto rows = static_cast<double>(i.rows), row_bytes = static_cast<double>(i.row_bytes);
    const double engines = std::min<double>(limits_.dma_engines, std::ceil(rows / 8));
    const double row_ns = i.two_byte && timing_.dma_16bit_gb_per_s > 0
                              ? row_bytes / timing_.dma_16bit_gb_per_s * limits_.dma_engines
                              : (row_bytes + timing_.dma_row_bytes) * dma_ns_per_byte_;
    const double busy = rows / engines * row_ns / i.rate;
    const double occupied = busy * engines / limits_.dma_engines;
    const double start = dma_.reserve(issued + timing_.dma_start_ns, occupied);
    visible_ = start + busy + timing_.dma_done_ns;
    end_ = std::max(end_, visible_);
    return {.engine = Engine::dma, .start_ns = start, .busy_ns = occupied, .for_what = ready};
  }

  const Limits limits_;
  const Timing timing_;
  double dma_ns_per_byte_;
  Buffers buffers_;
  std::array<double, engine_count> free_{};
  std::vector<double> queues_;  // per tensor and direction, and one within SBUF: when the next may be issued
  Lane triggers_, dma_, sbuf_port_, psum_port_;
  double warm_ns_ = 0, tensor_end_ = 0;
  double visible_ = 0;  // when the engine of the last instruction sees its result
  double end_ = 0;
};

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
