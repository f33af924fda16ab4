#include "hub/registry/connection_watch.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

namespace neuron_kernels::hub::registry {

namespace {

/// What the kernel has of a connection. sent: bytes that the other side has acknowledged.
struct Traffic {
  std::uint64_t received = 0, sent = 0;
};

Traffic traffic(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return {info.tcpi_bytes_received, info.tcpi_bytes_acked};
}

/// Ends a connection; libmicrohttpd sees that and closes it. What was sent and not taken is thrown away: the
/// kernel would keep megabytes of it for as long as the client dawdles.
void cut(int fd) {
  const linger none{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  ::shutdown(fd, SHUT_RDWR);
}

}  // namespace

ConnectionWatch::ConnectionWatch(const Deadlines& deadlines)
    : deadlines_(deadlines), thread_([this](const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!stop.stop_requested()) {
          tick_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
          look();
        }
      }) {}

void ConnectionWatch::connected(Key connection, int fd) {
  const std::scoped_lock lock(mutex_);
  watched_[connection] = {Phase::header, fd, Clock::now(), 0};
}

void ConnectionWatch::closed(Key connection) {
  const std::scoped_lock lock(mutex_);
  watched_.erase(connection);
}

void ConnectionWatch::receiving(Key connection, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  enter(connection, Phase::body);
  if (const auto found = watched_.find(connection); found != watched_.end()) found->second.bytes += bytes;
}

void ConnectionWatch::working(Key connection) {
  const std::scoped_lock lock(mutex_);
  enter(connection, Phase::working);
}

void ConnectionWatch::sending(Key connection) {
  const std::scoped_lock lock(mutex_);
  enter(connection, Phase::answer);
}

void ConnectionWatch::answered(Key connection) {
  const std::scoped_lock lock(mutex_);
  enter(connection, Phase::idle);
}

int ConnectionWatch::count() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(watched_.size());
}

int ConnectionWatch::busy() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(std::count_if(watched_.begin(), watched_.end(), [](const auto& entry) {
    return entry.second.phase != Phase::header && entry.second.phase != Phase::idle;
  }));
}

void ConnectionWatch::enter(Key connection, Phase phase) {
  const auto found = watched_.find(connection);
  if (found == watched_.end() || found->second.phase == phase) return;
  Watched& w = found->second;
  w.phase = phase;
  w.since = Clock::now();
  w.bytes = phase == Phase::answer ? traffic(w.fd).sent : phase == Phase::idle ? traffic(w.fd).received : 0;
}

void ConnectionWatch::look() {
  for (auto& [connection, w] : watched_) {
    if (w.phase == Phase::idle && traffic(w.fd).received > w.bytes) enter(connection, Phase::header);
    if (too_slow(w)) cut(w.fd);
  }
}

/// Begins the next window of a body or an answer that is fast enough.
bool ConnectionWatch::too_slow(Watched& w) const {
  if (w.phase == Phase::working || w.phase == Phase::idle) return false;
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - w.since).count();
  if (age < deadlines_.header_s) return false;
  if (w.phase == Phase::header) return true;
  const std::uint64_t sent = w.phase == Phase::answer ? traffic(w.fd).sent : 0;
  const std::uint64_t moved = w.phase == Phase::answer ? sent - w.bytes : w.bytes;
  if (moved < static_cast<std::uint64_t>(age) * static_cast<std::uint64_t>(deadlines_.least_bytes_per_s)) {
    return true;
  }
  w.since = Clock::now();
  w.bytes = sent;
  return false;
}

}  // namespace neuron_kernels::hub::registry
