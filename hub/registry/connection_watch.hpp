// Ends connections whose client sends or takes too slowly.
//
// A connection is watched from its start, and from the first byte of each further request, until the
// request's header is there; then while its body comes in; then while its answer goes out. While nothing
// moves at all, libmicrohttpd's own time-out counts.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace neuron_kernels::hub::registry {

struct Deadlines {
  int header_s = 30;             // until a request's header is there; also the window of least_bytes_per_s
  int idle_s = 60;               // without a byte in either direction
  int least_bytes_per_s = 1024;  // of a body or an answer, in each window
};

class ConnectionWatch {
 public:
  using Key = const void*;  // whatever names a connection

  explicit ConnectionWatch(const Deadlines& deadlines);

  void connected(Key connection, int fd);
  void closed(Key connection);
  /// The header is there, or `bytes` of the body.
  void receiving(Key connection, std::size_t bytes);
  void working(Key connection);
  void sending(Key connection);
  void answered(Key connection);

  int count() const;
  /// Connections with a request on its way.
  int busy() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { header, body, working, answer, idle };
  struct Watched {
    Phase phase = Phase::header;
    int fd = -1;
    Clock::time_point since{};
    std::uint64_t bytes = 0;  // of the body since then, or of the socket's traffic until then
  };

  void enter(Key connection, Phase phase);
  void look();
  bool too_slow(Watched& watched) const;

  const Deadlines deadlines_;
  mutable std::mutex mutex_;
  std::condition_variable_any tick_;
  std::unordered_map<Key, Watched> watched_;
  std::jthread thread_;  // last: joined first
};

}  // namespace neuron_kernels::hub::registry
