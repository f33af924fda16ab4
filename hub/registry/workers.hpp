// Threads that work out answers, so that one that waits for the disk holds up no connection.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace neuron_kernels::hub::registry {

class Workers {
 public:
  explicit Workers(int count);
  /// Finishes the jobs that were posted.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void post(std::function<void()> job);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;  // last: joined first
};

}  // namespace neuron_kernels::hub::registry
