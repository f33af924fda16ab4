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
      out_ << ",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": " << static_cast<int>(e)
           << ", \"args\": {\"name\": " << quoted(name_of(e)) << "}}";
    }
  }

  void add(const Event& e) {
    if (written_ == most_) {
      ++left_out_;
      return;
    }
    ++written_;
    const record::Op& op = record::nth(program_.ops, e.op);
    out_ << ",\n{\"name\": " << quoted(name(op))
         << ", \"ph\": \"X\", \"pid\": 1, \"tid\": " << static_cast<int>(e.engine)
         << ", \"ts\": " << number(e.start_ns / 1e3, "%.4f")
         << ", \"dur\": " << number(e.busy_ns / 1e3, "%.4f")
         << ", \"args\": {\"where\": " << quoted(where(op))
         << ", \"waited_ns\": " << number(std::max(e.waited_ns, 0.0)) << "}}";
  }

  /// Closes the file. Returns how many instructions were left out.
  std::int64_t end() {
    out_ << "\n], \"otherData\": {\"left_out\": " << left_out_ << "}}\n";
    return left_out_;
  }

 private:
  std::string name(const record::Op& op) const {
    const int tile = op.dst.given() ? op.dst.tile : op.a.tile;
    return tile == record::none ? record::name_of(op.code)
                                : text(record::name_of(op.code), " ", record::nth(program_.tiles, tile).name);
  }
  std::string where(const record::Op& op) const {
    if (op.where.file == record::none) return "";
    const std::string& file = record::nth(program_.files, op.where.file);
    return text(file.substr(file.find_last_of('/') + 1), ":", op.where.line);
  }

  std::ostream& out_;
  const Program& program_;
  std::int64_t most_, written_ = 0, left_out_ = 0;
};

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
