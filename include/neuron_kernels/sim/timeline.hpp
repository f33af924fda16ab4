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

struct Span {
  double begin = 0, end = 0;
};

/// Something whose time is shared out, such as the DMA engines, which take rows of their queues in turn: whoever is ready
/// gets the next time that is free, in pieces where others have parts of it. A later call may get time before an earlier
/// one.
class Lane {
 public:
  /// Takes `duration` of what is free from `ready` on. Returns from when to when.
  Span reserve(double ready, double duration) {
    Span taken{-1, ready};
    auto gap = gaps_.begin() + first_after(ready);
    if (gap != gaps_.end() && gap->begin < ready) {
      gap = gaps_.insert(gap, {gap->begin, ready}) + 1;
      gap->begin = ready;
    }
    auto used = gap;
    while (used != gaps_.end() && duration > 0) {
      if (taken.begin < 0) taken.begin = used->begin;
      const double free = used->end - used->begin;
      taken.end = used->begin + std::min(free, duration);
      duration = std::max(0.0, duration - free);
      used->begin = taken.end;
      if (used->end - used->begin > least_gap_ns) break;
      ++used;
    }
    gaps_.erase(gap, used);
    if (duration > 0) {
      const double begin = std::max(ready, end_);
      if (begin > end_ + least_gap_ns) gaps_.push_back({end_, begin});
      if (taken.begin < 0) taken.begin = begin;
      taken.end = end_ = begin + duration;
    }
    if (gaps_.size() > most_gaps) gaps_.pop_front();
    return {taken.begin < 0 ? ready : taken.begin, taken.end};
  }
  /// When it would be done with that.
  double done(double ready, double duration) const {
    for (auto gap = gaps_.begin() + first_after(ready); gap != gaps_.end(); ++gap) {
      const double begin = std::max(gap->begin, ready);
      if (gap->end - begin >= duration) return begin + duration;
      duration -= gap->end - begin;
    }
    return std::max(ready, end_) + duration;
  }
  double end() const { return end_; }

 private:
  std::ptrdiff_t first_after(double t) const {  // gap that ends later
    return std::upper_bound(gaps_.begin(), gaps_.end(), t,
                            [](double at, const Span& gap) { return at < gap.end; }) -
           gaps_.begin();
  }

  static constexpr std::size_t most_gaps = 256;
  static constexpr double least_gap_ns = 1e-3;
  std::deque<Span> gaps_;
  double end_ = 0;
};

/// The times at which an engine, whose instructions are in order, held a port; only the last are remembered.
class PortUse {
 public:
  /// When another engine may hold it for `duration`, at `ready` or later.
  double free_from(double ready, double duration) const {
    auto span = std::upper_bound(spans_.begin(), spans_.end(), ready,
                                 [](double t, const Span& s) { return t < s.end; });
    for (; span != spans_.end() && span->begin < ready + duration; ++span) ready = span->end;
    return ready;
  }
  void add(double begin, double end) {
    if (!spans_.empty() && begin <= spans_.back().end) {
      spans_.back().end = end;
      return;
    }
    if (spans_.size() == most_spans) spans_.pop_front();
    spans_.push_back({begin, end});
  }

 private:
  static constexpr std::size_t most_spans = 1024;
  std::deque<Span> spans_;
};

struct Event {
  Engine engine = Engine::automatic;
  int op = 0;  // position in Program::ops
  double start_ns = 0, end_ns = 0;
  double busy_ns = 0;    // the time between them, but of dma the share that it had of its engines
  double waited_ns = 0;  // that the engine stood still before it
  Moment for_what{};     // and for what; of dma, engine dma: the issue and start of transfers
  double port_ns = 0;    // that it stood still besides, since another engine used the same port
  int queue = 0;         // dma: transfers of one queue end before the next one starts
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
  /// How long the most used writer of descriptors was busy; the two units of the hardware count as one.
  double issue_ns() const { return *std::max_element(issue_ns_.begin(), issue_ns_.end()); }

  /// Puts one instruction of op `op` on its engine.
  Event add(const Instruction& i, int op, const Walk& walk) {
    Moment ready;
    for (int w = 0; w < i.write_count; ++w) {
      const Touch& t = i.writes[static_cast<std::size_t>(w)];
      if (t.fresh) buffers_.make(t.tile);
    }
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
    const double can_start = std::max(free, ready.ns);
    if (i.engine == Engine::tensor) busy *= warm_up(can_start, busy);
    const double start = at_ports(i, can_start, busy);
    Event event{.engine = i.engine,
                .start_ns = start,
                .end_ns = start + busy,
                .busy_ns = busy,
                .waited_ns = can_start - free,
                .for_what = ready,
                .port_ns = start - can_start};
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

  /// When the ports that it needs are all free for as long as it takes.
  double at_ports(const Instruction& i, double start, double busy) {
    const bool vector = i.engine == Engine::vector, gpsimd = i.engine == Engine::gpsimd;
    const bool sbuf = timing_.shared_ports ? i.uses_sbuf && (vector || gpsimd)
                                           : timing_.shared_bus && (gpsimd || (vector && i.fast));
    const bool psum = timing_.shared_ports && i.uses_psum && (vector || i.engine == Engine::scalar);
    if (!sbuf && !psum) return start;
    for (double last = -1; last != start;) {
      last = start;
      if (sbuf) start = sbuf_use_[vector ? 1 : 0].free_from(start, busy);
      if (psum) start = psum_use_[vector ? 1 : 0].free_from(start, busy);
    }
    if (sbuf) sbuf_use_[vector ? 0 : 1].add(start, start + busy);
    if (psum) psum_use_[vector ? 0 : 1].add(start, start + busy);
    return start;
  }

  Event transfer(const Instruction& i, const Moment& ready) {
    const int queue_number = i.in_sbuf ? static_cast<int>(queues_.size()) - 1 : i.queue;
    double& queue = record::nth(queues_, queue_number);
    const Dge dge = i.dge != Dge::automatic ? i.dge : timing_.software_dge ? Dge::software : Dge::none;
    const double issue = dge == Dge::software   ? timing_.software_dge_ns
                         : dge == Dge::hardware ? timing_.hardware_dge_ns
                                                : timing_.dma_issue_ns;
    const double can_issue = std::max(queue, ready.ns);
    const Span issue_span = writer_of(dge, can_issue, issue).reserve(can_issue, issue);
    queue = issue_span.end;
    issue_ns_[static_cast<std::size_t>(dge)] += dge == Dge::hardware ? issue / 2 : issue;
    // Rows are dealt to the engines, eight to each before the next gets any.
    const auto rows = static_cast<double>(i.rows), row_bytes = static_cast<double>(i.row_bytes);
    const double engines = std::min<double>(limits_.dma_engines, std::ceil(rows / 8));
    const double row_ns = i.two_byte && timing_.dma_16bit_gb_per_s > 0
                              ? row_bytes / timing_.dma_16bit_gb_per_s * limits_.dma_engines
                              : (row_bytes + timing_.dma_row_bytes) * dma_ns_per_byte_;
    const double busy = rows > 0 ? rows / engines * row_ns / i.rate : 0;
    const double occupied = busy * engines / limits_.dma_engines;
    const double can_start = issue_span.begin + timing_.dma_start_ns, idle_since = dma_.end();
    const Span span = dma_.reserve(can_start, occupied);
    visible_ = span.end + (busy - occupied) + timing_.dma_done_ns;
    end_ = std::max(end_, visible_);
    return {.engine = Engine::dma,
            .start_ns = span.begin,
            .end_ns = span.end,
            .busy_ns = occupied,
            .waited_ns = dma_.end() > idle_since ? std::max(0.0, can_start - idle_since) : 0,
            .for_what = ready.ns >= issue_span.begin ? ready : Moment{issue_span.begin, Engine::dma},
            .queue = queue_number};
  }

  /// Who writes descriptors: GpSimd's software one transfer after the other, each of the two units of the hardware too;
  /// for descriptors that lie ready a queue only triggers.
  /// source: nki/deep-dives/nki-dge.rst
  Lane& writer_of(Dge dge, double ready, double issue) {
    if (dge != Dge::hardware) return dge == Dge::software ? software_ : triggers_;
    return hardware_[hardware_[0].done(ready, issue) <= hardware_[1].done(ready, issue) ? 0 : 1];
  }

  const Limits limits_;
  const Timing timing_;
  double dma_ns_per_byte_;
  Buffers buffers_;
  std::array<double, engine_count> free_{};
  std::vector<double> queues_;  // per tensor and direction, and one within SBUF: when the next may be issued
  Lane triggers_, software_, dma_;
  std::array<PortUse, 2> sbuf_use_{}, psum_use_{};  // vector; gpsimd of SBUF, scalar of PSUM
  std::array<Lane, 2> hardware_{};
  std::array<double, dge_count> issue_ns_{};
  double warm_ns_ = 0, tensor_end_ = 0;
  double visible_ = 0;  // when the engine of the last instruction sees its result
  double end_ = 0;
};

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
