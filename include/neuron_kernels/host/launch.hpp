// launch: runs a kernel on the host's threads, each worker a Host of its own.
// Results do not depend on the threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "neuron_kernels/host/executor.hpp"
#include "neuron_kernels/host/host.hpp"
#include "neuron_kernels/host/pages.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

inline std::atomic<const Page*>& forced_page() {
  static std::atomic<const Page*> page{nullptr};
  return page;
}

/// The page that calls use from now on: best_page() unless a PageScope is alive.
inline const Page& current_page() {
  const Page* const forced = forced_page().load(std::memory_order_relaxed);
  return forced != nullptr ? *forced : best_page();
}

/// For tests and benchmarks: all calls of the process use this page while the scope is alive.
class PageScope {
 public:
  explicit PageScope(const Page& page) : previous_(forced_page().exchange(&page)) {}
  ~PageScope() { forced_page().store(previous_); }
  PageScope(const PageScope&) = delete;
  PageScope& operator=(const PageScope&) = delete;

 private:
  const Page* previous_;
};

/// Gives back, however a kernel ends, what it made the thread's arena hold.
struct ArenaScope {
  Arena& arena = thread_arena();
  ~ArenaScope() { arena.trim(); }
};

/// Calls kernel(nc) on as many workers as the executor offers, at most `programs`; they share the iterations
/// of the kernel's programs() loops.
/// Errors: the first exception of a worker, after all have ended.
template <class Kernel>
void launch(Executor* executor, std::int64_t programs, const Kernel& kernel) {
  const Page& page = current_page();
  Executor& threads = executor != nullptr ? *executor : default_executor();
  const int workers = static_cast<int>(std::min<std::int64_t>(threads.concurrency(), programs));
  if (workers <= 1) {
    const ArenaScope scope;
    Host nc(page, scope.arena);
    return kernel(nc);
  }
  struct Shared {
    const Kernel& kernel;
    const Page& page;
    Claims claims{};
    std::mutex mutex{};
    std::exception_ptr error{};
  } shared{kernel, page};
  threads.run(
      workers,
      [](void* context, int) {
        auto& s = *static_cast<Shared*>(context);
        try {
          const ArenaScope scope;
          Host nc(s.page, scope.arena, &s.claims);
          s.kernel(nc);
        } catch (...) {
          const std::scoped_lock lock(s.mutex);
          if (!s.error) s.error = std::current_exception();
        }
      },
      &shared);
  if (shared.error) std::rethrow_exception(shared.error);
}

}  // namespace host
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
