// How often each asker may ask: so many requests in a window of time, counted in memory of a fixed size.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace neuron_kernels::hub::registry {

struct Rate {
  std::uint32_t requests = 0;  // 0: without limit
  int seconds = 0;
};

/// "500/300": 500 requests in each 300 seconds. Errors: HubError usage.
Rate rate_of(const std::string& text);

/// The address by which a client is counted: an IPv6 client has a whole /64 to choose from.
std::string network_of(const std::string& address);

/// A count-min sketch with conservative update: an asker is never counted too low. It is counted too high
/// when others fill all its cells, whose places depend on a secret: with 1000 askers at their limit that
/// happens to one in 70,000.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;
  explicit RateLimiter(Rate rate, Clock::time_point now = Clock::now());

  const Rate& rate() const { return rate_; }
  /// Counts a request. Seconds until `who` may ask again if it has asked too often, else 0.
  int take(std::string_view who, Clock::time_point now = Clock::now());

 private:
  static constexpr std::size_t rows = 4, columns = 1 << 14;  // 256 KiB

  Rate rate_;
  std::string secret_;
  std::mutex mutex_;
  Clock::time_point end_;
  std::vector<std::array<std::uint32_t, columns>> counts_;
};

}  // namespace neuron_kernels::hub::registry
