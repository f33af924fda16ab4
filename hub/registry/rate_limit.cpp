#include "hub/registry/rate_limit.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/registry/secrets.hpp"

namespace neuron_kernels::hub::registry {

Rate rate_of(const std::string& text) {
  Rate rate;
  const char* const end = text.data() + text.size();
  const auto requests = std::from_chars(text.data(), end, rate.requests);
  if (requests.ec == std::errc() && requests.ptr != end && *requests.ptr == '/') {
    const auto seconds = std::from_chars(requests.ptr + 1, end, rate.seconds);
    constexpr int day_s = 24 * 3600;
    if (seconds.ec == std::errc() && seconds.ptr == end && rate.requests > 0 && rate.seconds > 0 &&
        rate.seconds <= day_s) {
      return rate;
    }
  }
  throw HubError(ErrorKind::usage,
                 "--rate-limit is '" + text + "'; expected REQUESTS/SECONDS, of 1 to 86400 seconds",
                 "for example --rate-limit 500/300");
}

std::string network_of(const std::string& address) {
  in6_addr parts{};
  if (::inet_pton(AF_INET6, address.c_str(), &parts) != 1) return address;
  std::fill(std::begin(parts.s6_addr) + 8, std::end(parts.s6_addr), 0);
  char text[INET6_ADDRSTRLEN];
  return ::inet_ntop(AF_INET6, &parts, text, sizeof text);
}

RateLimiter::RateLimiter(Rate rate, Clock::time_point now)
    : rate_(rate), end_(now + std::chrono::seconds(rate.seconds)) {
  if (rate_.requests == 0) return;
  secret_ = random_bytes(16);
  counts_.resize(rows);
}

int RateLimiter::take(std::string_view who, Clock::time_point now) {
  if (rate_.requests == 0) return 0;
  const std::string digest = sha256_hex(secret_ + std::string(who));
  std::array<std::uint32_t*, rows> cells{};
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t column = 0;
    std::from_chars(&digest[row * 4], &digest[row * 4 + 4], column, 16);
    cells[row] = &counts_[row][column % columns];
  }
  const std::scoped_lock lock(mutex_);
  if (now >= end_) {
    for (auto& row : counts_) row.fill(0);
    end_ = now + std::chrono::seconds(rate_.seconds);
  }
  const std::uint32_t taken =
      **std::min_element(cells.begin(), cells.end(), [](auto a, auto b) { return *a < *b; });
  if (taken >= rate_.requests) {
    return static_cast<int>(std::chrono::ceil<std::chrono::seconds>(end_ - now).count());
  }
  for (std::uint32_t* cell : cells) *cell = std::max(*cell, taken + 1);
  return 0;
}

}  // namespace neuron_kernels::hub::registry
