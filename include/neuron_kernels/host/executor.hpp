// Executor: how a call's workers come to run at the same time. The default is a pool of std::jthread.
//
// Pass your own to run on a framework's threads (two pools in one process fight for cores). Results never
// depend on the executor or its number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "neuron_kernels/core/abi.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// Runs n independent workers, maybe at the same time. Implementations must be callable from any thread.
class Executor {
 public:
  /// One worker: work(context, i). It never throws.
  using Work = void (*)(void* context, int i);

  virtual ~Executor() = default;
  /// How many workers can run at the same time; >= 1.
  virtual int concurrency() const = 0;
  /// Calls work(context, i) once for each i in [0, n) and returns when all are done.
  virtual void run(int n, Work work, void* context) = 0;
};

/// Runs all workers on the calling thread.
class SerialExecutor final : public Executor {
 public:
  int concurrency() const override { return 1; }
  void run(int n, Work work, void* context) override {
    for (int i = 0; i < n; ++i) work(context, i);
  }
};

/// A pool of std::jthread. One run at a time uses the pool; a run that finds it busy works on its own thread
/// alone. A thread without work looks out for more for 50 microseconds before it sleeps: waking one up takes
/// about as long as a norm of 512 rows.
class ThreadPool final : public Executor {
 public:
  /// threads counts the calling thread; 0 = one per processor.
  explicit ThreadPool(int threads = 0) {
    const int n = threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (int i = 1; i < n; ++i) {
      workers_.emplace_back([this] { serve(); });
    }
  }

  ~ThreadPool() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
  }

  int concurrency() const override { return static_cast<int>(workers_.size()) + 1; }

  void run(int n, Work work, void* context) override {
    const std::unique_lock busy(one_run_, std::try_to_lock);
    if (n <= 1 || workers_.empty() || !busy.owns_lock()) {
      for (int i = 0; i < n; ++i) work(context, i);
      return;
    }
    {
      const std::scoped_lock lock(mutex_);
      work_ = work;
      context_ = context;
      count_ = n;
      next_ = 0;
      unfinished_ = n;
      waiting_ = true;
    }
    wake_.notify_all();
    take_all();
    look_out([&] { return unfinished_ == 0; });
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return unfinished_ == 0; });
  }

 private:
  void serve() {
    while (true) {
      look_out([&] { return waiting_.load(); });
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || next_ < count_; });
        if (stopping_) return;
      }
      take_all();
    }
  }

  template <class Condition>
  static void look_out(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
    while (!condition() && std::chrono::steady_clock::now() < end) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
  }

  // Takes workers of the current run until none is left. The lock is held only to take and to finish one.
  void take_all() {
    std::unique_lock lock(mutex_);
    while (next_ < count_) {
      const int i = next_++;
      if (next_ == count_) waiting_ = false;
      const Work work = work_;
      void* const context = context_;
      lock.unlock();
      work(context, i);
      lock.lock();
      if (--unfinished_ == 0) done_.notify_all();
    }
  }

  std::mutex one_run_;  // held by the thread whose run uses the pool
  std::mutex mutex_;    // guards all below but the workers
  std::condition_variable wake_, done_;
  bool stopping_ = false;
  Work work_ = nullptr;
  void* context_ = nullptr;
  int count_ = 0, next_ = 0;
  std::atomic<int> unfinished_ = 0;    // written under mutex_
  std::atomic<bool> waiting_ = false;  // next_ < count_; written under mutex_
  std::vector<std::jthread> workers_;  // last: joined before the rest goes away
};

/// The pool used where a call is given none: one per program, one thread per processor.
inline Executor& default_executor() {
  static ThreadPool pool;
  return pool;
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
