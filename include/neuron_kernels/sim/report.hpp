// A Report in words and as JSON: latency, shares, what each engine waits for, memory, roofline, and what to try.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "neuron_kernels/sim/simulate.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace sim {

inline constexpr std::array<Engine, 5> all_engines{Engine::tensor, Engine::vector, Engine::scalar,
                                                   Engine::gpsimd, Engine::dma};

/// x by a printf format for one double.
inline std::string number(double x, const char* format = "%.1f") {
  char s[64];
  std::snprintf(s, sizeof s, format, x);
  return s;
}

/// 12.3 us, 4.56 ms
inline std::string duration(double ns) {
  if (ns < 1e3) return number(ns, "%.0f ns");
  return ns < 1e6 ? number(ns / 1e3, "%.1f us") : number(ns / 1e6, "%.3f ms");
}

/// The most that lies in SBUF and PSUM at once, per partition. Tiles that have no place (record/allocate.hpp) count as
/// if all of them were there at once.
struct MemoryUse {
  std::int64_t sbuf_bytes = 0, psum_bytes = 0;
};
inline MemoryUse memory_use(const Program& program) {
  MemoryUse use;
  for (const record::TileDecl& t : program.tiles) {
    std::int64_t& most = t.space == Space::psum ? use.psum_bytes : use.sbuf_bytes;
    most = std::max(most, t.placed.offset + std::int64_t{t.placed.stride} * t.placed.buffers);
  }
  for (const record::TileDecl& t : program.tiles) {
    if (t.placed.buffers > 0 && t.placed.stride > 0) continue;
    const std::int64_t tiles = std::max<std::int64_t>({t.count, t.placed.buffers, 1});
    (t.space == Space::psum ? use.psum_bytes : use.sbuf_bytes) += tiles * t.f * size_of(t.dtype);
  }
  return use;
}

/// FLOPs per byte of HBM traffic; the rate that the roofline allows there, in FLOPs per ns.
inline double intensity(const Report& r) {
  return r.hbm_bytes() > 0 ? r.useful_flops / static_cast<double>(r.hbm_bytes()) : 0;
}
inline double roofline(const Report& r, const Limits& limits) {
  return std::min(r.peak_flops_per_ns, intensity(r) * limits.dma_gb_per_s());
}

/// A line of a kernel, and what it costs an engine.
struct Place {
  std::string where, op;
  double ns = 0;
};
inline std::vector<Place> costliest(const Report& r, const Program& program, Engine engine) {
  std::map<std::pair<std::string, std::string>, double> sums;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const record::Op& op = program.ops[i];
    const double ns = r.op_busy_ns[i][static_cast<std::size_t>(engine)];
    if (ns <= 0) continue;
    sums[{record::place_of(program, op.where), record::name_of(op.code)}] += ns;
  }
  std::vector<Place> places;
  for (const auto& [key, ns] : sums) places.push_back({key.first, key.second, ns});
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.ns > b.ns; });
  return places;
}

/// What the engine that is busiest waited for most, or that it hardly waits.
struct Bottleneck {
  Engine engine = Engine::automatic, waits_for = Engine::automatic;
  bool for_buffer = false;
  bool for_port = false, for_issue = false;
  double active = 0, waiting = 0;  // shares of the latency
};
inline Bottleneck bottleneck(const Report& r) {
  Bottleneck b;
  b.engine = r.busiest();
  b.active = r.active(b.engine);
  const Waits& waits = r.waits[static_cast<std::size_t>(b.engine)];
  double most = waits.buffer;
  b.for_buffer = most > 0;
  if (waits.port > most) most = waits.port, b.for_port = true, b.for_buffer = false;
  for (const Engine e : all_engines) {
    const double ns = waits.data[static_cast<std::size_t>(e)];
    if (ns > most) most = ns, b.waits_for = e, b.for_buffer = b.for_port = false;
  }
  b.for_issue = r.issue_ns > r.busy(b.engine);
  b.waiting = r.latency_ns > 0 ? most / r.latency_ns : 0;
  return b;
}

/// One or two sentences: what bounds the kernel, where, and what to try.
inline std::string critical_path(const Report& r, const Program& program) {
  const Bottleneck b = bottleneck(r);
  if (b.engine == Engine::automatic || r.instructions == 0) return "Nothing is executed.";
  if (b.for_issue)
    return text("Bound by the issue of transfers: descriptors are written ",
                number(100 * r.issue_ns / r.latency_ns), " % of the time, the busiest engine, ",
                name_of(b.engine), ", is active ", number(100 * b.active),
                " %. Move more bytes with each transfer, or have descriptors ready in HBM (Dge::none).");
  std::string s = text(name_of(b.engine), "-bound: the ", name_of(b.engine), " engine is active ",
                       number(100 * b.active), " % of the time");
  const std::vector<Place> places = costliest(r, program, b.engine);
  if (!places.empty())
    s += text(", most of it (", number(100 * places[0].ns / r.busy(b.engine)), " %) in ", places[0].where,
              places[0].where.empty() ? "" : " ", places[0].op);
  s += ". ";
  if (b.active > 0.9) {
    switch (b.engine) {
      case Engine::tensor:
        return s + "It is near its limit: use 16-bit operands if they are f32, or fewer products.";
      case Engine::dma:
        return s +
               "It is near its limit: keep more in SBUF between uses, and make rows of transfers 2 KiB and "
               "longer.";
      default:
        return s +
               "It is near its limit: move copies and scalings to another engine, or fuse ops that read the "
               "same tile.";
    }
  }
  if (b.waiting == 0)
    return s + "It does not wait: it is idle before its first and after its last instruction.";
  if (b.for_port)
    return s + text("It waits for another engine at the same port of SBUF or PSUM ", number(100 * b.waiting),
                    " % of the time: move work between the vector, scalar and gpsimd engines.");
  if (b.for_buffer)
    return s + text("It waits for a buffer to be free ", number(100 * b.waiting),
                    " % of the time: smaller tiles leave room for more buffers.");
  if (b.engine == Engine::dma && b.waits_for == Engine::dma)
    return s + text("Transfers wait for their issue and start ", number(100 * b.waiting),
                    " % of the time: issue them earlier (more buffers), and make them larger.");
  if (b.waits_for == Engine::dma)
    return s + text("It waits for transfers ", number(100 * b.waiting),
                    " % of the time: load earlier (more buffers), in longer rows, or less often.");
  return s + text("It waits for the ", name_of(b.waits_for), " engine ", number(100 * b.waiting),
                  " % of the time: let it work on another tile meanwhile (software pipelining).");
}

/// For people, about twenty lines.
inline std::string to_text(const Report& r, const Program& program, const Limits& limits) {
  const MemoryUse memory = memory_use(program);
  std::string s = text("latency     ", duration(r.latency_ns), " on one core of ", r.chip, ", ",
                       r.instructions, " instructions\n");
  s += text("MFU         ", number(100 * r.mfu()), " % of ", number(r.peak_flops_per_ns / 1e3),
            " TFLOPS (bf16, dense), ", number(r.useful_flops / 1e9, "%.3f"), " GFLOP\n");
  s += text("HBM         ", number(static_cast<double>(r.bytes_read) / 1e6), " MB read, ",
            number(static_cast<double>(r.bytes_written) / 1e6), " MB written, ",
            number(r.latency_ns > 0 ? static_cast<double>(r.hbm_bytes()) / r.latency_ns : 0), " GB/s\n");
  s += text("roofline    ", number(intensity(r)), " FLOP/byte: at most ", number(roofline(r, limits) / 1e3),
            " TFLOPS; reached ", number(r.latency_ns > 0 ? r.useful_flops / r.latency_ns / 1e3 : 0), "\n");
  s += text("memory      SBUF ", memory.sbuf_bytes, " of ", limits.sbuf_usable_bytes,
            " bytes per partition, PSUM ", memory.psum_bytes, " of ",
            limits.psum_banks * limits.psum_bank_bytes, "\n\n");
  s += "engine   active %   waits for data of                               for a buffer %  a port %   done "
       "%\n";
  for (const Engine e : all_engines) {
    const Waits& waits = r.waits[static_cast<std::size_t>(e)];
    std::string data;
    for (const Engine of : all_engines) {
      const double share =
          r.latency_ns > 0 ? 100 * waits.data[static_cast<std::size_t>(of)] / r.latency_ns : 0;
      const char* name = e == Engine::dma && of == Engine::dma ? "issue" : name_of(of);
      if (share >= 0.05) data += text(data.empty() ? "" : ", ", name, " ", number(share), " %");
    }
    const double percent = r.latency_ns > 0 ? 100 / r.latency_ns : 0;
    char line[160];
    std::snprintf(line, sizeof line, "%-8s %8.1f   %-48s %14.1f %9.1f %8.1f\n", name_of(e), 100 * r.active(e),
                  data.empty() ? "-" : data.c_str(), percent * waits.buffer, percent * waits.port,
                  percent * r.done_ns(e));
    s += line;
  }
  return s + "\n" + critical_path(r, program) + "\n";
}

/// text as a JSON string.
inline std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// One object; times in ns, shares of the latency from 0 to 1.
inline std::string to_json(const Report& r, const Program& program, const Limits& limits) {
  const MemoryUse memory = memory_use(program);
  const auto exact = [](double x) { return number(x, "%.9g"); };
  std::string s = text(
      "{\"chip\": ", quoted(r.chip), ", \"latency_ns\": ", exact(r.latency_ns), ", \"mfu\": ", exact(r.mfu()),
      ", \"flops\": ", exact(r.flops), ", \"useful_flops\": ", exact(r.useful_flops),
      ", \"peak_tflops\": ", exact(r.peak_flops_per_ns / 1e3), ", \"instructions\": ", r.instructions,
      ",\n \"hbm_bytes_read\": ", r.bytes_read, ", \"hbm_bytes_written\": ", r.bytes_written,
      ", \"sbuf_bytes_moved\": ", r.bytes_in_sbuf, ", \"intensity\": ", exact(intensity(r)),
      ", \"roofline_tflops\": ", exact(roofline(r, limits) / 1e3),
      ",\n \"sbuf_bytes_per_partition\": ", memory.sbuf_bytes,
      ", \"psum_bytes_per_partition\": ", memory.psum_bytes, ",\n \"engines\": {");
  for (const Engine e : all_engines) {
    const auto at = static_cast<std::size_t>(e);
    s += text(e == Engine::tensor ? "" : ", ", "\n  ", quoted(name_of(e)),
              ": {\"active\": ", exact(r.active(e)), ", \"busy_ns\": ", exact(r.busy(e)),
              ", \"instructions\": ", r.instructions_of[at],
              ", \"waits_for_buffer_ns\": ", exact(r.waits[at].buffer),
              ", \"waits_for_port_ns\": ", exact(r.waits[at].port), ", \"done_ns\": ", exact(r.done_ns(e)),
              ", \"waits_for_data_ns\": {");
    for (const Engine of : all_engines)
      s += text(of == Engine::tensor ? "" : ", ", quoted(name_of(of)), ": ",
                exact(r.waits[at].data[static_cast<std::size_t>(of)]));
    s += "}}";
  }
  s += "\n },\n \"costliest\": [";
  const std::vector<Place> places = costliest(r, program, r.busiest());
  for (std::size_t i = 0; i < std::min<std::size_t>(places.size(), 5); ++i)
    s += text(i == 0 ? "" : ", ", "{\"where\": ", quoted(places[i].where), ", \"op\": ", quoted(places[i].op),
              ", \"busy_ns\": ", exact(places[i].ns), "}");
  return s + text("],\n \"critical_path\": ", quoted(critical_path(r, program)), "}\n");
}

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
