#include "bench/measure.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <string_view>
#include <thread>

#include "neuron_kernels/host/launch.hpp"

namespace bench {
namespace {

double read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

constexpr int fma_per_pass = 12;  // independent sums; two FMA units with a latency of 4 need 8 of them

#if defined(__x86_64__)
// The compiler must neither drop the sums nor merge them, so the instruction is written out.
#define NEURON_KERNELS_FMA_PEAK(name, isa, vector)                                  \
  __attribute__((target(isa), noinline)) void name(long passes) {                   \
    typedef float Lanes __attribute__((vector_size(vector)));                       \
    Lanes sum[fma_per_pass] = {};                                                   \
    const Lanes x = {}, y = {};                                                     \
    for (long i = 0; i < passes; ++i) {                                             \
      _Pragma("GCC unroll 12") for (int j = 0; j < fma_per_pass; ++j) {             \
        __asm__ volatile("vfmadd231ps %1, %2, %0" : "+v"(sum[j]) : "v"(x), "v"(y)); \
      }                                                                             \
    }                                                                               \
  }
NEURON_KERNELS_FMA_PEAK(fma_zmm, "avx512f", 64)
NEURON_KERNELS_FMA_PEAK(fma_ymm, "avx2,fma", 32)
#undef NEURON_KERNELS_FMA_PEAK
#endif

struct FmaLoop {
  void (*run)(long passes) = nullptr;
  double flops_per_pass = 0;
};

FmaLoop fma_loop() {
#if defined(__x86_64__)
  const std::string_view page = neuron_kernels::host::best_page().name;
  if (page == "avx512") return {fma_zmm, fma_per_pass * 16 * 2.0};
  if (page == "avx2") return {fma_ymm, fma_per_pass * 8 * 2.0};
#endif
  return {};
}

/// One thread's rate, in its own CPU time.
double fma_rate(const FmaLoop& loop) {
  double best = 0;
  long passes = 1000;
  for (int slice = 0; slice < 3;) {
    const double begin = read_clock(CLOCK_THREAD_CPUTIME_ID);
    loop.run(passes);
    const double took = read_clock(CLOCK_THREAD_CPUTIME_ID) - begin;
    if (took < sample_seconds) {
      passes *= 2;
      continue;
    }
    best = std::max(best, loop.flops_per_pass * static_cast<double>(passes) / took);
    ++slice;
  }
  return best;
}

double time_calls(const std::function<void()>& call, int calls, int threads) {
  const Stopwatch watch(threads);
  for (int i = 0; i < calls; ++i) call();
  return watch.seconds() / calls;
}

/// A contestant whose answer was right, ready to be timed.
struct Started {
  std::size_t contestant;
  Tensor dst;
  std::function<void()> call;
  int calls_per_sample;
};

std::optional<Started> start(const Case& c, const OpenCase& open, std::size_t i, int threads,
                             std::string& error) {
  Started s{i, open.make_dst(), {}, 1};
  Peer& peer = *c.contestants[i].peer;
  peer.set_threads(threads);
  try {
    s.call = open.start(i, s.dst.data.get());
    s.call();
  } catch (const std::exception& e) {
    error = e.what();
  }
  if (error.empty()) error = open.check(s.dst);
  if (!error.empty()) return std::nullopt;
  const double once = std::min(time_calls(s.call, 1, threads), time_calls(s.call, 1, threads));
  s.calls_per_sample =
      static_cast<int>(std::clamp(std::ceil(sample_seconds / std::max(once, 1e-8)), 1.0, 1e5));
  peer.rest();
  return s;
}

}  // namespace

Stopwatch::Stopwatch(int threads)
    : threads_(threads), wall_(read_clock(CLOCK_MONOTONIC)), cpu_(read_clock(CLOCK_PROCESS_CPUTIME_ID)) {}

double Stopwatch::seconds() const {
  const double cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu_, wall = read_clock(CLOCK_MONOTONIC) - wall_;
  return threads_ == 1 ? std::min(wall, cpu) : wall;
}

double fma_peak(int threads) {
  const FmaLoop loop = fma_loop();
  if (loop.run == nullptr) return 0;
  if (threads == 1) return fma_rate(loop);
  std::atomic<int> waiting{threads};
  std::atomic<double> sum{0};
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
      workers.emplace_back([&] {
        --waiting;
        // All at the same time, as they share power and caches.
        while (waiting > 0) std::this_thread::yield();
        sum += fma_rate(loop);
      });
    }
  }
  return sum;
}

void bind_thread(bool bound) {
  static const cpu_set_t all = [] {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  cpu_set_t set = all;
  if (bound) {
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(std::max(0, sched_getcpu())), &set);
  }
  sched_setaffinity(0, sizeof set, &set);
}

int rounds_of(const Case& c, int threads) {
  // A guess that fixes the budget.
  const double flops_per_second = 5e10 * threads, bytes_per_second = 1e10 * threads;
  const double call = std::max(c.flops / flops_per_second, c.bytes / bytes_per_second);
  return static_cast<int>(std::clamp(1 / call, 7.0, 25.0));
}

Measured measure(const Case& c, int threads) {
  const std::size_t n = c.contestants.size();
  Measured result{std::vector<std::vector<double>>(n), {}, std::vector<std::string>(n)};
  bind_thread(threads == 1);
  const auto open = c.open();
  std::vector<Started> started;
  for (std::size_t i = 0; i < n; ++i) {
    if (auto s = start(c, *open, i, threads, result.errors[i])) started.push_back(std::move(*s));
  }
  for (int round = 0; round < rounds_of(c, threads); ++round) {
    for (std::size_t turn = 0; turn < started.size(); ++turn) {
      const Started& s = started[(turn + static_cast<std::size_t>(round)) % started.size()];
      Peer& peer = *c.contestants[s.contestant].peer;
      peer.set_threads(threads);
      s.call();
      result.seconds[s.contestant].push_back(time_calls(s.call, s.calls_per_sample, threads));
      peer.rest();
    }
    result.fma_peak.push_back(fma_peak(threads));
  }
  bind_thread(false);
  return result;
}

}  // namespace bench
