#include "bench/google.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <optional>

#include "bench/machine.hpp"
#include "bench/measure.hpp"
#include "bench/restart.hpp"

namespace bench {
namespace {

/// One case with one number of threads; measured when the first of its benchmarks runs.
struct Runs {
  const Case* what;
  int threads;
  std::optional<Measured> measured{};
  std::vector<std::size_t> next{};  // [contestant], the round to hand out
};

bool any_wrong = false;

void hand_out(benchmark::State& state, Runs& runs, std::size_t contestant) {
  if (!runs.measured) {
    runs.measured = measure(*runs.what, runs.threads);
    runs.next.assign(runs.what->contestants.size(), 0);
  }
  const Measured& m = *runs.measured;
  if (!m.errors[contestant].empty()) {
    any_wrong = true;
    state.SkipWithError(m.errors[contestant].c_str());
    return;
  }
  const std::size_t round = runs.next[contestant]++ % m.fma_peak.size();
  const double seconds = m.seconds[contestant][round];
  for (auto _ : state) state.SetIterationTime(seconds);
  state.counters["gflops"] = runs.what->flops / seconds * 1e-9;
  state.counters["gbytes_per_second"] = runs.what->bytes / seconds * 1e-9;
  if (m.fma_peak[round] > 0) {
    state.counters["fma_peak_gflops"] = m.fma_peak[round] * 1e-9;
    state.counters["percent_of_fma_peak"] = 100 * runs.what->flops / seconds / m.fma_peak[round];
  }
  // Ours is the first contestant; a ratio within one round is less noisy than one of two medians.
  if (m.errors[0].empty()) state.counters["time_over_ours"] = seconds / m.seconds[0][round];
}

double best(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }

}  // namespace

int run(int argc, char** argv, Cases (*cases)(std::span<Peer* const> peers)) {
  restart_with_best_openblas(argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const auto& [name, value] : machine()) benchmark::AddCustomContext(name, value);
  for (const Peer* peer : all_peers()) {
    const std::string text = peer->description();
    benchmark::AddCustomContext("peer_" + text.substr(0, text.find(' ')), text);
  }

  const Cases all = cases(all_peers());
  std::vector<std::unique_ptr<Runs>> runs;
  for (const int threads : thread_counts()) {
    for (const Case& c : all) {
      Runs& r = *runs.emplace_back(std::make_unique<Runs>(Runs{&c, threads}));
      for (std::size_t i = 0; i < c.contestants.size(); ++i) {
        const std::string name = c.name + "/threads:" + std::to_string(threads) + "/" + c.contestants[i].name;
        benchmark::RegisterBenchmark(name.c_str(),
                                     [&r, i](benchmark::State& state) { hand_out(state, r, i); })
            ->UseManualTime()
            ->Iterations(1)
            ->Repetitions(rounds_of(c, threads))
            ->ReportAggregatesOnly()
            ->ComputeStatistics("best", best)
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return any_wrong ? 1 : 0;
}

}  // namespace bench
