// Trace: the instructions of a simulation as a file for Perfetto (ui.perfetto.dev) or chrome://tracing.
//
// source: Trace Event Format, "complete events" (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU)
#pragma once

#include <ostream>

#include "neuron_kernels/sim/report.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace sim {

/// Usage:
///     Trace trace(file, program);
///     simulate(program, parameters, {.observe = [&](const Event& e) { trace.add(e); }});
///     trace.end();
class Trace {
 public:
  /// The first `most` instructions are written; what comes after them is counted.
  Trace(std::ostream& out, const Program& program, std::int64_t most = 200000)
      : out_(out), program_(program), most_(most) {
    out_ << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
         << R"({"name": "process_name", "ph": "M", "pid": 1, "args": {"name": )"
         << quoted(program.chip + " core") << "}}";
    for (const Engine e : all_engines) {
      if (e != Engine::dma) track(static_cast<int>(e), name_of(e));
    }
    for (std::size_t i = 0; i < program.tensors.size(); ++i) {
      const record::Tensor& t = program.tensors[i];
      const int queue = first_queue + 2 * static_cast<int>(i);
      if (t.read) track(queue, "dma load " + t.name);
      if (t.written) track(queue + 1, "dma store " + t.name);
    }
    track(first_queue + 2 * static_cast<int>(program.tensors.size()), "dma within SBUF");
  }

  void add(const Event& e) {
    if (written_ == most_) {
      ++left_out_;
      return;
    }
    ++written_;
    // Whole ns of both ends, so that what follows one another does not overlap once it is rounded.
    const double begin = std::floor(e.start_ns), end = std::floor(e.end_ns);
    const record::Op& op = record::nth(program_.ops, e.op);
    out_ << ",\n{\"name\": " << quoted(name(op)) << ", \"ph\": \"X\", \"pid\": 1, \"tid\": "
         << (e.engine == Engine::dma ? first_queue + e.queue : static_cast<int>(e.engine))
         << ", \"ts\": " << number(begin / 1e3, "%.3f")
         << ", \"dur\": " << number((end - begin) / 1e3, "%.3f")
         << ", \"args\": {\"where\": " << quoted(record::place_of(program_, op.where))
         << ", \"waited_ns\": " << number(std::max(e.waited_ns, 0.0)) << "}}";
  }

  /// Closes the file. Returns how many instructions were left out.
  std::int64_t end() {
    out_ << "\n], \"otherData\": {\"left_out\": " << left_out_ << "}}\n";
    return left_out_;
  }

 private:
  static constexpr int first_queue = engine_count;  // tracks of DMA queues come after those of engines

  void track(int id, const std::string& name) {
    out_ << ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": " << id
         << ", \"args\": {\"name\": " << quoted(name) << "}}";
  }
  std::string name(const record::Op& op) const {
    const int tile = op.dst.given() ? op.dst.tile : op.a.tile;
    return tile == record::none ? record::name_of(op.code)
                                : text(record::name_of(op.code), " ", record::nth(program_.tiles, tile).name);
  }

  std::ostream& out_;
  const Program& program_;
  std::int64_t most_, written_ = 0, left_out_ = 0;
};

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
