// The lock of the store: sharers together, one alone, and no sharer keeps him out by coming again.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/registry/store_lock.hpp"
#include "temporary_folder.hpp"

namespace hub = neuron_kernels::hub;
using hub::registry::StoreLock;
using namespace std::chrono_literals;

TEST_CASE("sharers hold the store together; who waits to have it alone comes before later sharers") {
  const test::TemporaryFolder root;
  std::mutex mutex;
  std::vector<std::string> events;
  const auto happened = [&](const char* event) {
    const std::scoped_lock held(mutex);
    events.emplace_back(event);
  };
  std::vector<std::jthread> threads;
  {
    const StoreLock first = StoreLock::shared(root.path());
    const StoreLock second = StoreLock::shared(root.path());  // comes at once
    threads.emplace_back([&] {
      StoreLock lock = StoreLock::exclusive(root.path());
      happened("alone");
      std::this_thread::sleep_for(50ms);
      happened("shares");
      lock.share();
    });
    std::this_thread::sleep_for(50ms);
    threads.emplace_back([&] {
      const StoreLock lock = StoreLock::shared(root.path());
      happened("later sharer");
    });
    std::this_thread::sleep_for(50ms);
    happened("released");
  }
  threads.clear();
  CHECK(events == std::vector<std::string>{"released", "alone", "shares", "later sharer"});
}

TEST_CASE("sharing lets others in while the lock is still held") {
  const test::TemporaryFolder root;
  StoreLock lock = StoreLock::exclusive(root.path());
  lock.share();
  const StoreLock other = StoreLock::shared(root.path());
  CHECK(std::filesystem::exists(root.path() / "store.lock"));
}

TEST_CASE("sharers that follow each other without a gap keep nobody out") {
  const test::TemporaryFolder root;
  std::atomic<bool> stop = false;
  std::vector<std::jthread> sharers;
  sharers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    sharers.emplace_back([&] {
      while (!stop) {
        const StoreLock lock = StoreLock::shared(root.path());
        std::this_thread::sleep_for(2ms);
      }
    });
  }
  for (int i = 0; i < 20; ++i) const StoreLock lock = StoreLock::exclusive(root.path());
  stop = true;
}

TEST_CASE("a lock for one process alone says who has it") {
  const test::TemporaryFolder root;
  const auto lock = [&] { return hub::registry::lock_or_conflict(root.path() / "x", "taken", "wait"); };
  {
    const hub::Descriptor held = lock();
    CHECK_THROWS_WITH(lock(), "taken");
  }
  CHECK(lock());
}
