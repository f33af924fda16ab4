// A digest over a stream that is hashed on a thread of its own, so that hashing hides behind receiving and
// writing.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hub/digest.hpp"

namespace neuron_kernels::hub {

class StreamHasher {
 public:
  using Buffer = std::vector<std::byte>;

  explicit StreamHasher(Hasher hasher);
  StreamHasher(const StreamHasher&) = delete;
  StreamHasher& operator=(const StreamHasher&) = delete;
  ~StreamHasher();

  /// An empty buffer, one that was used before if there is any.
  Buffer spare();
  /// Takes the buffer; waits while `most_waiting` others are not hashed yet.
  void add(Buffer filled);
  /// Waits for what was added. The hasher is spent.
  std::string finish_hex();

 private:
  static constexpr std::size_t most_waiting = 4;
  void work();
  void stop();

  Hasher hasher_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Buffer> waiting_;
  std::vector<Buffer> spare_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace neuron_kernels::hub
