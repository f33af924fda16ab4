// What a worker is given comes back, in order, also as an error.
#include "hub/worker.hpp"

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

namespace hub = neuron_kernels::hub;

TEST_CASE("each result comes by its own future, in the order of the work") {
  hub::Worker worker;
  std::string order;  // only the worker's thread writes to it
  std::vector<std::future<std::string>> results;
  for (const char letter : std::string("abcdefgh")) {
    results.push_back(worker.add([&order, letter] { return order += letter; }));
  }
  CHECK(results.back().get() == "abcdefgh");
  for (std::size_t i = 0; i + 1 < results.size(); ++i)
    CHECK(results[i].get() == std::string("abcdefgh", i + 1));
}

TEST_CASE("what the work throws is thrown where its result is taken, and the next work is done") {
  hub::Worker worker;
  auto failing = worker.add([]() -> std::string { throw std::runtime_error("disk"); });
  auto next = worker.add([] { return std::string("done"); });
  CHECK_THROWS_WITH(failing.get(), "disk");
  CHECK(next.get() == "done");
}

TEST_CASE("a worker that goes away ends the work at hand and begins no other") {
  std::promise<void> begun, may_end;
  std::atomic<int> done = 0;
  std::future<std::string> first, second;
  std::thread helper;
  {
    hub::Worker worker;
    first = worker.add([&] {
      begun.set_value();
      may_end.get_future().wait();
      ++done;
      return std::string("first");
    });
    second = worker.add([&] {
      ++done;
      return std::string("second");
    });
    begun.get_future().wait();
    helper = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      may_end.set_value();
    });
  }
  helper.join();
  CHECK(done == 1);
  CHECK(first.get() == "first");
  CHECK_THROWS_AS(second.get(), std::future_error);
}
