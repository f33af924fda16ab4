// The simulator's engines, ports, queues and buffers, one rule at a time: what follows what, and after how long.
#include "neuron_kernels/sim/trace.hpp"

#include <functional>
#include <map>
#include <sstream>

#include "recording.hpp"

namespace test {
namespace {

using nk::Dge;
using nk::Engine;
namespace sim = nk::sim;

/// The events of what `body` records for `chip`, whose parameters `alter` may change.
template <class Body>
std::vector<sim::Event> events(
    const nk::Limits& limits, const Body& body,
    const std::function<void(sim::Parameters&)>& alter = [](auto&) {}) {
  Recorder nc(limits);
  body(nc);
  sim::Parameters p = sim::parameters_for(limits.chip);
  alter(p);
  std::vector<sim::Event> all;
  sim::simulate(nc.program(), p, {.observe = [&](const sim::Event& e) { all.push_back(e); }});
  return all;
}

double end(const sim::Event& e) { return e.start_ns + e.busy_ns; }

TEST_CASE("sim: an engine waits for its own results, not to overwrite what it has read") {
  const auto copies = [](bool dependent) {
    return events(nk::trn2, [&](Recorder& nc) {
      auto a = nc.sbuf("a", 128, 512, DType::f32), b = nc.sbuf("b", 128, 512, DType::f32),
           c = nc.sbuf("c", 128, 512, DType::f32);
      nc.copy(b, a);
      dependent ? nc.copy(c, b) : nc.copy(a, c);
    });
  };
  const auto after = copies(true), over = copies(false);
  CHECK(after[1].start_ns == Approx(end(after[0]) + 60 / 0.96));
  CHECK(over[1].start_ns == Approx(end(over[0])));
}

TEST_CASE("sim: banks of transposes rotate, so that the tensor engine does not wait for each copy") {
  const auto all = events(nk::trn2, [](Recorder& nc) {
    auto a = nc.sbuf("a", 128, 128, DType::bf16);
    for (auto i : nc.range(3)) (void)i, (void)nc.transposed(a);
  });
  CHECK(all[2].start_ns == Approx(end(all[0])));  // the second bank is free
  CHECK(all[4].start_ns > end(all[1]));           // the third transpose takes the first bank again
  CHECK(all[4].for_what.buffer);
}

/// Busy time of the first instruction on `engine`.
template <class Body>
double busy_of(Engine engine, const nk::Limits& limits, const Body& body) {
  for (const sim::Event& e : events(limits, body))
    if (e.engine == engine) return e.busy_ns;
  return 0;
}

TEST_CASE("sim: costs that differ by generation or have a floor") {
  const DType f32 = DType::f32, bf16 = DType::bf16;
  const auto sum_of = [&](int n) {
    return busy_of(Engine::scalar, nk::trn2, [=](Recorder& nc) {
      auto a = nc.sbuf("a", 128, n, f32);
      nc.activate(a, Act::exp, a, {.row_sum = nc.sbuf("s", 128, 1, f32)});
    });
  };
  CHECK(sum_of(8) == Approx((64 + 64 + 60) / 1.2));
  CHECK(sum_of(512) == Approx((512 + 64 + 60) / 1.2));
  const auto turn = [](DType d) {
    return [=](Recorder& nc) { (void)nc.transposed(nc.sbuf("a", 128, 128, d)); };
  };
  CHECK(busy_of(Engine::tensor, nk::trn1, turn(f32)) == Approx(4 * (128 + 66) / 2.8));
  CHECK(busy_of(Engine::tensor, nk::trn2, turn(f32)) ==
        Approx(2 * 2 * (128 + 7) / 2.4));  // cold: half the clock
  CHECK(busy_of(Engine::vector, nk::trn1, turn(bf16)) == Approx((128 + 20) / 1.12));
  CHECK(busy_of(Engine::vector, nk::trn2, turn(bf16)) == Approx((64 + 20) / 0.96));
  const auto two = [&](Alu op) {
    return [=](Recorder& nc) {
      auto a = nc.sbuf("a", 128, 512, bf16);
      nc.tensor_tensor(a, a, op, a);
    };
  };
  CHECK(busy_of(Engine::vector, nk::trn1, two(Alu::multiply)) == Approx((512 + 20) / 1.12));
  CHECK(busy_of(Engine::vector, nk::trn1, two(Alu::max)) == Approx((1024 + 20) / 1.12));
  CHECK(busy_of(Engine::vector, nk::trn2, two(Alu::max)) == Approx((512 + 20) / 0.96));
  const auto by_scalar = [&](Recorder& nc) {
    nc.copy(nc.sbuf("a", 128, 512, bf16), nc.sbuf("b", 128, 512, bf16), {.engine = Engine::scalar});
  };
  CHECK(busy_of(Engine::scalar, nk::trn2, by_scalar) == Approx((512 + 60) / 1.2));
  CHECK(busy_of(Engine::scalar, nk::trn3, by_scalar) == Approx((256 + 60) / 1.2));
}

/// Two engines, each with work of its own on `limits`: whether they ever work at the same time.
template <class Body>
bool overlap(const nk::Limits& limits, const Body& body, bool ports = true) {
  const auto all = events(limits, body, [&](sim::Parameters& p) {
    p.timing.shared_ports = p.timing.shared_ports && ports;
    p.timing.shared_bus = p.timing.shared_bus && ports;
  });
  for (const sim::Event& a : all)
    for (const sim::Event& b : all)
      if (a.engine != b.engine && a.start_ns < b.end_ns - 1e-6 && b.start_ns < a.end_ns - 1e-6) return true;
  return false;
}

TEST_CASE("sim: engines that share a port take turns, on the chips where they do") {
  const auto copies = [](Engine other, DType d, bool from_psum) {
    return [=](Recorder& nc) {
      for (auto i : nc.range(20)) {
        (void)i;
        auto a = from_psum ? nc.psum("a", 128, 512) : nc.sbuf("a", 128, 512, d);
        auto b = from_psum ? nc.psum("b", 128, 512) : nc.sbuf("b", 128, 512, d);
        nc.copy(nc.sbuf("c", 128, 512, d), a, {.engine = Engine::vector});
        nc.copy(nc.sbuf("d", 128, 512, d), b, {.engine = other});
      }
    };
  };
  const auto gpsimd_f32 = copies(Engine::gpsimd, DType::f32, false),
             gpsimd_bf16 = copies(Engine::gpsimd, DType::bf16, false),
             scalar_sbuf = copies(Engine::scalar, DType::f32, false),
             scalar_psum = copies(Engine::scalar, DType::f32, true);
  CHECK_FALSE(overlap(nk::trn1, gpsimd_f32));
  CHECK(overlap(nk::trn1, gpsimd_f32, false));
  CHECK(overlap(nk::trn2, gpsimd_f32));
  CHECK_FALSE(overlap(nk::trn2, gpsimd_bf16));  // the vector engine's fast modes take the bus
  CHECK(overlap(nk::trn2, gpsimd_bf16, false));
  CHECK_FALSE(overlap(nk::trn1, scalar_psum));
  CHECK(overlap(nk::trn1, scalar_sbuf));
  CHECK(overlap(nk::trn2, scalar_psum));
}

/// n rounds of load, activate, store of [128, f].
Program stream(int n, int f, Dge dge, int buffers) {
  Recorder nc(nk::trn2);
  const auto x = nc.hbm("x", DType::f32, {std::int64_t{n} * 128, f}),
             y = nc.hbm("y", DType::f32, {std::int64_t{n} * 128, f});
  for (auto i : nc.range(n)) {
    const auto in = nc.load("in", x.rows(i * 128, 128), {.dge = dge});
    auto out = nc.sbuf("out", 128, f, DType::f32);
    nc.activate(out, Act::exp, in);
    nc.store(y.rows(i * 128, 128), out, {.dge = dge});
  }
  Program p = nc.program();
  for (auto& t : p.tiles) t.placed.buffers = buffers;
  return p;
}

TEST_CASE("sim: a store that waits does not keep the DMA engines from loads") {
  const sim::Report r = sim::simulate(stream(500, 512, Dge::none, 8));
  CHECK(r.busiest() == Engine::dma);
  CHECK(r.active(Engine::dma) > 0.98);
  CHECK(r.active(Engine::dma) <= 1);
}

TEST_CASE("sim: descriptors are written one after the other by software, by two units of hardware") {
  const auto per_transfer = [](Dge dge) { return sim::simulate(stream(500, 8, dge, 64)).latency_ns / 1000; };
  CHECK(per_transfer(Dge::software) == Approx(608).epsilon(0.02));
  CHECK(per_transfer(Dge::hardware) == Approx(300).epsilon(0.05));
  CHECK(per_transfer(Dge::none) < 150);
  const Program p = stream(500, 8, Dge::software, 64);
  const sim::Report r = sim::simulate(p);
  CHECK(r.issue_ns / r.latency_ns > 0.98);
  CHECK_THAT(sim::critical_path(r, p), contains_text("Bound by the issue of transfers"));
}

TEST_CASE(
    "sim: the busy time of an engine, its waits and the time after its last instruction are the latency") {
  for (const int buffers : {1, 2, 4}) {
    const sim::Report r = sim::simulate(stream(300, 256, Dge::none, buffers));
    for (const Engine e : sim::all_engines) {
      const sim::Waits& waits = r.waits[static_cast<std::size_t>(e)];
      CHECK(r.busy(e) + waits.sum() + r.done_ns(e) == Approx(r.latency_ns));
    }
    CHECK(r.waits[static_cast<std::size_t>(Engine::dma)].sum() > 0);
  }
  const Program p = stream(300, 512, Dge::none, 2);
  CHECK_THAT(sim::critical_path(sim::simulate(p), p), contains_text("dma-bound: "));
  CHECK_THAT(sim::critical_path(sim::simulate(p), p), !contains_text("automatic"));
}

TEST_CASE("sim: of several cores the slowest is timed") {
  Recorder nc(nk::trn2);
  const auto x = nc.hbm("x", DType::f32, {8 * 128, 512});
  for (auto i : nc.programs(8 * 128, 128)) {  // the work grows with i, as with a causal mask
    for (auto j : nc.range(i.begin, i.begin + i.index + 1))
      (void)j, (void)nc.load("in", x.rows(i.begin, 128));
  }
  const sim::Report one = sim::simulate(nc.program()),
                    two = sim::simulate(nc.program(), sim::parameters_for("trn2"), {.cores = 2});
  CHECK(one.instructions == 36);
  CHECK(two.instructions == 20);  // 2 + 4 + 6 + 8
}

TEST_CASE("sim: events of a trace's track do not overlap") {
  const Program p = stream(100, 333, Dge::none, 3);
  std::ostringstream out;
  sim::Trace trace(out, p);
  sim::simulate(p, sim::parameters_for("trn2"), {.observe = [&](const sim::Event& e) { trace.add(e); }});
  CHECK(trace.end() == 0);
  std::istringstream lines(out.str());
  std::map<int, double> end;  // by track
  int seen = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("\"tid\": ");
    int track = 0;
    double begin = 0, length = 0;
    if (at == std::string::npos || std::sscanf(line.c_str() + at, "\"tid\": %d, \"ts\": %lf, \"dur\": %lf",
                                               &track, &begin, &length) != 3)
      continue;
    ++seen;
    CHECK(begin >= end[track] - 1e-9);
    CHECK(length > 0);
    end[track] = begin + length;
  }
  CHECK(seen == 300);
  CHECK(end.size() == 3);  // scalar, loads, stores
}

}  // namespace
}  // namespace test
