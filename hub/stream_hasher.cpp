#include "hub/stream_hasher.hpp"

#include <utility>

namespace neuron_kernels::hub {

StreamHasher::StreamHasher(Hasher hasher) : hasher_(std::move(hasher)), thread_([this] { work(); }) {}

StreamHasher::~StreamHasher() { stop(); }

StreamHasher::Buffer StreamHasher::spare() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return {};
  Buffer buffer = std::move(spare_.back());
  spare_.pop_back();
  buffer.clear();
  return buffer;
}

void StreamHasher::add(Buffer filled) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < most_waiting; });
  waiting_.push_back(std::move(filled));
  changed_.notify_all();
}

std::string StreamHasher::finish_hex() {
  stop();
  return hasher_.finish_hex();
}

void StreamHasher::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StreamHasher::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Buffer buffer = std::move(waiting_.front());
    lock.unlock();
    hasher_.add(buffer);
    lock.lock();
    waiting_.pop_front();
    spare_.push_back(std::move(buffer));
    changed_.notify_all();
  }
}

}  // namespace neuron_kernels::hub
