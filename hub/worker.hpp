// A thread that computes what it is given, in order, beside a loop that must not wait for it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>

namespace neuron_kernels::hub {

class Worker {
 public:
  Worker();
  /// Waits for the work at hand; the rest is not begun.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// What `work` returns or throws.
  std::future<std::string> add(std::function<std::string()> work);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<std::string()>> waiting_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace neuron_kernels::hub
