// The simulator: costs by hand, what waits for what, buffers, reports.
#include "neuron_kernels/sim/svg.hpp"
#include "neuron_kernels/sim/trace.hpp"

#include <map>
#include <sstream>

#include "neuron_kernels/kernels/flash_attention.hpp"
#include "neuron_kernels/record/schedule.hpp"
#include "recording.hpp"

namespace test {
namespace {

using nk::Dge;
using nk::Engine;
using nk::Space;
namespace sim = nk::sim;

/// The events of a program for `chip`.
std::vector<sim::Event> events(const Program& program, const sim::Parameters& p) {
  std::vector<sim::Event> all;
  sim::simulate(program, p, {.observe = [&](const sim::Event& e) { all.push_back(e); }});
  return all;
}

/// Busy time of the last op that `body` records.
template <class Body>
double busy_of_last(const nk::Limits& limits, const Body& body) {
  Recorder nc(limits);
  body(nc);
  return events(nc.program(), sim::parameters_for(limits.chip)).back().busy_ns;
}

TEST_CASE("sim: costs of instructions, as documented") {
  const auto near = [](double ns) { return Approx(ns).epsilon(1e-9); };
  const auto sbuf = [](Recorder& nc, DType d, int f = 512) { return nc.sbuf("t", 128, f, d); };
  const DType f32 = DType::f32, bf16 = DType::bf16;
  // Vector, 0.96 GHz on trn2: cycles + 20.
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) { nc.copy(sbuf(nc, f32), sbuf(nc, f32)); }) ==
        near((512 + 20) / 0.96));
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) { nc.copy(sbuf(nc, bf16), sbuf(nc, bf16)); }) ==
        near((128 + 20) / 0.96));
  CHECK(busy_of_last(nk::trn1, [&](Recorder& nc) { nc.copy(sbuf(nc, bf16), sbuf(nc, bf16)); }) ==
        near((512 + 20) / 1.12));
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) { nc.copy(sbuf(nc, bf16, 8), sbuf(nc, bf16, 8)); }) ==
        near((64 + 20) / 0.96));
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) {
          nc.tensor_tensor(sbuf(nc, f32), sbuf(nc, f32), Alu::add, sbuf(nc, f32));
        }) == near((1024 + 20) / 0.96));
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) {
          nc.tensor_tensor(sbuf(nc, f32), sbuf(nc, f32), Alu::add, nc.psum("p", 128, 512));
        }) == near((512 + 20) / 0.96));
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) {
          nc.scan(sbuf(nc, f32), sbuf(nc, f32), Alu::multiply, 0.f, Alu::add, sbuf(nc, f32));
        }) == near((1024 + 20) / 0.96));
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) {
          nc.reduce(sbuf(nc, f32, 1), Alu::max, nc.psum("p", 128, 512));
        }) == near((512 + 20) / 0.96));
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) {
          nc.reduce(sbuf(nc, bf16, 64), Alu::add, sbuf(nc, bf16));
        }) == near((256 + 20) / 0.96));
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) {
          nc.copy(sbuf(nc, f32, 64), sbuf(nc, f32).every(8, 0));
        }) == near((128 + 20) / 0.96));
  // Scalar, 1.2 GHz: cycles + 60, + 64 for a sum.
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) { nc.activate(sbuf(nc, f32), Act::exp, sbuf(nc, f32)); }) ==
        near((512 + 60) / 1.2));
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) {
          nc.activate(sbuf(nc, f32), Act::exp, sbuf(nc, f32), {.row_sum = sbuf(nc, f32, 1)});
        }) == near((576 + 60) / 1.2));
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) {
          nc.copy(sbuf(nc, f32), sbuf(nc, f32), {.engine = Engine::scalar});
        }) == near((512 + 60) / 1.2));
  // GpSimd: 150 + n.
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) {
          nc.causal_select(sbuf(nc, f32), sbuf(nc, f32), 0, 0, 0.f);
        }) == near((512 + 150) / 1.2));
  // Tensor: passes of at least 64 columns; half the clock until warm.
  const auto product = [&](DType d, int m, int n) {
    return [=](Recorder& nc) {
      nc.matmul(nc.psum("p", m, n), nc.sbuf("a", 128, m, d), nc.sbuf("b", 128, n, d));
    };
  };
  CHECK(busy_of_last(nk::trn1, product(bf16, 128, 512)) == near((512 + 66) / 2.8));
  CHECK(busy_of_last(nk::trn1, product(f32, 128, 512)) == near(4 * (512 + 66) / 2.8));
  CHECK(busy_of_last(nk::trn1, product(bf16, 128, 1)) == near((64 + 66) / 2.8));
  CHECK(busy_of_last(nk::trn2, product(bf16, 128, 512)) == near(2 * (512 + 7) / 2.4));
  CHECK(busy_of_last(nk::trn2, product(f32, 128, 512)) == near(2 * (4 * 512 + 2 * 7) / 2.4));
  // A transfer: 128 rows of 2 KiB and 150 bytes each on 16 engines of 23 bytes per ns.
  CHECK(busy_of_last(nk::trn2, [&](Recorder& nc) {
          (void)nc.load("x", nc.hbm("h", f32, {128, 512}));
        }) == near(8 * (2048 + 150) / 23.0));
  CHECK(busy_of_last(nk::trn1, [&](Recorder& nc) {
          (void)nc.load("x", nc.hbm("h", bf16, {128, 512}));
        }) == near(128 * 1024 / 104.5));
}

TEST_CASE("sim: ops that are several instructions") {
  const auto engines = [](const nk::Limits& limits, const auto& body) {
    Recorder nc(limits);
    body(nc);
    std::string s;
    for (const sim::Event& e : events(nc.program(), sim::parameters_for(limits.chip)))
      s += std::string(s.empty() ? "" : " ") + name_of(e.engine);
    return s;
  };
  const auto t = [](Recorder& nc, int f) { return nc.sbuf("t", 128, f, DType::f32); };
  CHECK(engines(nk::trn2, [&](Recorder& nc) { (void)nc.transposed(t(nc, 128)); }) == "tensor vector");
  CHECK(engines(nk::trn2, [&](Recorder& nc) { (void)nc.causal_mask(nc.psum("p", 128, 128), 0, 0, 0.f); }) ==
        "vector gpsimd");
  CHECK(engines(nk::trn2, [&](Recorder& nc) { (void)nc.causal_mask(t(nc, 128), 0, 0, 0.f); }) == "gpsimd");
  CHECK(engines(nk::trn2, [&](Recorder& nc) { nc.norm_stats(t(nc, 2), t(nc, 1200)); }) ==
        "vector vector vector vector");
  CHECK(engines(nk::trn2, [&](Recorder& nc) {
          (void)nc.load_transposed("x", nc.hbm("h", DType::bf16, {128, 128}));
        }) == "dma");
  CHECK(engines(nk::trn2, [&](Recorder& nc) {
          (void)nc.load_transposed("x", nc.hbm("h", DType::f32, {128, 128}));
        }) == "dma tensor vector");
  CHECK(engines(nk::trn2, [&](Recorder& nc) {
          nc.store_transposed(nc.hbm("h", DType::f32, {256, 128}), t(nc, 256));
        }) == "tensor vector tensor vector dma");
  CHECK(engines(nk::trn2, [&](Recorder& nc) {
          (void)nc.load_transposed("x", nc.hbm("h", DType::f32, {128, 128}).transposed());
        }) == "dma");
}

/// n rounds of load, compute (two ops on one tile), store.
Program stream(int n, DType dtype = DType::f32) {
  Recorder nc(nk::trn2);
  const auto x = nc.hbm("x", dtype, {std::int64_t{n} * 128, 512}),
             y = nc.hbm("y", dtype, {std::int64_t{n} * 128, 512});
  for (auto i : nc.range(n)) {
    const auto in = nc.load("in", x.rows(i * 128, 128), {.dge = Dge::none});
    auto out = nc.sbuf("out", 128, 512, dtype);
    nc.activate(out, Act::exp, in);
    nc.tensor_scalar(out, out, Alu::multiply, 2.f);
    nc.store(y.rows(i * 128, 128), out, {.dge = Dge::none});
  }
  return nc.program();
}

TEST_CASE("sim: engines are in order, results are waited for, buffers are not taken away") {
  for (const int buffers : {1, 2, 3, 8}) {
    Program p = stream(40);
    for (auto& t : p.tiles) t.placed.buffers = buffers;
    std::array<double, nk::engine_count> free{};
    double latency = 0;
    for (const sim::Event& e : events(p, sim::parameters_for("trn2"))) {
      const auto at = static_cast<std::size_t>(e.engine);
      if (e.engine != Engine::dma) CHECK(e.start_ns >= free[at] - 1e-6);
      CHECK(e.start_ns >= e.for_what.ns - 1e-6);
      free[at] = e.start_ns + e.busy_ns;
      latency = std::max(latency, free[at]);
    }
    const sim::Report r = sim::simulate(p, sim::parameters_for("trn2"));
    CHECK(r.latency_ns >= latency);
    for (const Engine e : sim::all_engines) CHECK(r.latency_ns >= r.busy(e));
    CHECK(r.instructions == 160);
    CHECK(r.bytes_read == 40 * 128 * 512 * 4);
    CHECK(r.bytes_written == r.bytes_read);
  }
}

TEST_CASE("sim: more buffers overlap more, until the busiest engine is always busy") {
  double before = 1e18;
  for (const int buffers : {1, 2, 4, 8}) {
    Program p = stream(200);
    for (auto& t : p.tiles) t.placed.buffers = buffers;
    const sim::Report r = sim::simulate(p, sim::parameters_for("trn2"));
    CHECK(r.latency_ns <= before);
    before = r.latency_ns;
    if (buffers == 8) CHECK(r.active(r.busiest()) > 0.92);
    if (buffers == 1) CHECK(r.active(r.busiest()) < 0.6);
  }
}

TEST_CASE("sim: time grows with the number of rounds, memory of places does not") {
  const auto latency = [](int n) {
    return sim::simulate(allocate(stream(n), nk::trn2), sim::parameters_for("trn2")).latency_ns;
  };
  const double one = latency(1000), two = latency(2000), four = latency(4000);
  CHECK((four - two) == Approx(2 * (two - one)).epsilon(0.01));
}

TEST_CASE("sim: a tile waits for whatever lay where it is") {
  Recorder nc(nk::trn2);
  for (auto i : nc.range(2)) {
    (void)i;
    auto a = nc.sbuf("a", 128, 512, DType::f32);
    for (auto j : nc.range(50)) (void)j, nc.activate(a, Act::exp, a);
  }
  for (auto i : nc.range(2)) {
    (void)i;
    nc.fill(nc.sbuf("b", 128, 512, DType::f32), 1.f);
  }
  Program apart = nc.program(), together = nc.program();
  for (auto& t : apart.tiles) t.placed = {1, 0, 2048};
  for (auto& t : together.tiles) t.placed = {1, 0, 2048};
  apart.tiles[1].placed.offset = 2048;
  const auto fill_starts = [](const Program& program) {
    return events(program, sim::parameters_for("trn2")).back().start_ns;
  };
  CHECK(fill_starts(apart) < 2000);
  CHECK(fill_starts(together) > 40000);
}

TEST_CASE("sim: cores share programs, and a stack of HBM its bandwidth") {
  Recorder nc(nk::trn2);
  const auto x = nc.hbm("x", DType::f32, {4096, 8192});
  for (auto i : nc.programs(4096, 128)) (void)nc.load("x", x.rows(i.begin, i.size), {.dge = Dge::none});
  Program p = nc.program();
  for (auto& t : p.tiles) t.placed.buffers = 4;
  const auto parameters = sim::parameters_for("trn2");
  const double one = sim::simulate(p, parameters).latency_ns,
               two = sim::simulate(p, parameters, {.cores = 2}).latency_ns,
               both = sim::simulate(p, parameters, {.cores = 2, .cores_per_stack = 2}).latency_ns;
  CHECK(two == Approx(one / 2).epsilon(0.03));
  CHECK(both > two);
  CHECK(sim::simulate(p, parameters, {.cores = 5}).instructions == 7);  // of 32: the first core has the most
}

TEST_CASE("sim: parameters by name") {
  CHECK(sim::parameters_for("inf2").limits.chip == std::string("trn1"));
  CHECK_THROWS_WITH(sim::parameters_for("trn9"),
                    contains_text("\"trn9\"; allowed are trn1 (also inf2), trn2 and trn3"));
  const Program p = allocate(stream(20), nk::trn2);
  const auto latency = [&](sim::Confidence c) {
    return sim::simulate(p, sim::parameters_for("trn2", c)).latency_ns;
  };
  CHECK(latency(sim::Confidence::nominal) < latency(sim::Confidence::mid));
  CHECK(latency(sim::Confidence::mid) < latency(sim::Confidence::pessimistic));
}

Program attention() {
  Recorder nc(nk::trn2);
  const auto t = [&](const char* name) { return nc.hbm(name, DType::bf16, {1, 2, 1024, 128}); };
  nk::AttentionArgs<Recorder> a{.q = t("q"), .k = t("k"), .v = t("v"), .dst = t("o")};
  a.causal = true;
  attention_kernel(nc, a, nk::AttentionBlocking::default_for(nk::trn2, {1, 2, 2, 1024, 1024, 128, 128}));
  return schedule(nc.program(), nk::trn2);
}

TEST_CASE("sim: a report says what bounds the kernel, and where") {
  const Program p = attention();
  const sim::Report r = sim::simulate(p);
  const std::string s = sim::to_text(r, p, nk::trn2);
  for (const char* part : {"latency ", "MFU ", "of 78.6 TFLOPS", "roofline ", "SBUF ", "PSUM ", "tensor ",
                           "vector-bound: the vector engine is active", "flash_attention.hpp:"})
    CHECK_THAT(s, contains_text(part));
  const std::string json = sim::to_json(r, p, nk::trn2);
  for (const char* part : {"\"latency_ns\": ", "\"engines\": {", "\"waits_for_data_ns\": {",
                           "\"critical_path\": \"vector-bound"})
    CHECK_THAT(json, contains_text(part));
  CHECK(sim::quoted("a\"b\\c\n") == "\"a\\\"b\\\\c\\u000a\"");
  CHECK(sim::critical_path(sim::Report{}, Program{}) == "Nothing is executed.");
  CHECK(sim::memory_use(p).psum_bytes <= 16384);
  CHECK(sim::memory_use(p).sbuf_bytes > 0);
}

TEST_CASE("sim: a trace has every instruction, on tracks that do not overlap") {
  const Program p = attention();
  std::ostringstream out;
  sim::Trace trace(out, p, 500);
  std::map<Engine, double> end;
  std::int64_t n = 0;
  sim::simulate(p, sim::parameters_for("trn2"), {.observe = [&](const sim::Event& e) {
                  ++n;
                  trace.add(e);
                  if (e.engine != Engine::dma) CHECK(e.start_ns >= end[e.engine] - 1e-6);
                  end[e.engine] = e.start_ns + e.busy_ns;
                }});
  CHECK(trace.end() == n - 500);
  const std::string s = out.str();
  std::int64_t written = 0;
  for (std::size_t at = s.find("\"ph\": \"X\""); at != std::string::npos;
       at = s.find("\"ph\": \"X\"", at + 1))
    ++written;
  CHECK(written == 500);
  CHECK(std::count(s.begin(), s.end(), '{') == std::count(s.begin(), s.end(), '}'));
}

TEST_CASE("sim: an index that runs beyond its tile is an error") {
  Recorder nc(nk::trn2);
  auto tiles = nc.sbuf_array("tiles", 5, 4, 8, DType::f32);
  for (auto j : nc.range(9)) {
    for (auto i : nc.range(j, j + 2)) nc.fill(tiles[i], 0.f);  // bounds of i are not certain
  }
  CHECK_THROWS_WITH(sim::simulate(nc.program()), contains_text("element 5; there are 5 of 8"));
}

TEST_CASE("sim: activity over time adds up to what engines were busy") {
  const Program p = attention();
  const sim::Report r = sim::simulate(p);
  sim::Activity activity(r.latency_ns, 100);
  sim::simulate(p, sim::parameters_for("trn2"), {.observe = [&](const sim::Event& e) { activity.add(e); }});
  for (const Engine e : {Engine::tensor, Engine::vector, Engine::scalar}) {
    double sum = 0;
    for (int i = 0; i < activity.columns(); ++i) sum += activity.share(e, i) / 100;
    CHECK(sum == Approx(r.active(e)).epsilon(1e-6));
  }
  CHECK_THAT(sim::timeline_svg(r, activity), contains_text("</svg>"));
  CHECK_THAT(sim::roofline_svg(r, nk::trn2), contains_text("TFLOPS"));
}

}  // namespace
}  // namespace test
