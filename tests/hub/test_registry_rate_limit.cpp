// The rate limit: what its option takes, who is counted, and what a window is.
#include <string>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/registry/rate_limit.hpp"

using namespace neuron_kernels::hub::registry;
using neuron_kernels::hub::HubError;
using std::chrono::seconds;

TEST_CASE("a rate is requests, a slash, and seconds") {
  CHECK(rate_of("500/300").requests == 500);
  CHECK(rate_of("500/300").seconds == 300);
  for (const char* wrong :
       {"", "5", "5/", "/5", "0/5", "5/0", "-5/5", "5/-5", "5/5s", "5 / 5", "5/86401", "9999999999/5"}) {
    CHECK_THROWS_AS(rate_of(wrong), HubError);
  }
}

TEST_CASE("an IPv6 client is counted by its /64, an IPv4 client by its address") {
  CHECK(network_of("2001:db8::1") == network_of("2001:db8::ffff:1:2:3"));
  CHECK(network_of("2001:db8::1") != network_of("2001:db8:0:1::1"));
  CHECK(network_of("10.0.0.1") == "10.0.0.1");
  CHECK(network_of("not an address") == "not an address");
}

TEST_CASE("each asker has the whole limit in each window") {
  const RateLimiter::Clock::time_point start{};
  RateLimiter limiter({3, 10}, start);
  for (const char* who : {"alice", "bob"}) {
    for (int i = 0; i < 3; ++i) CHECK(limiter.take(who, start + seconds(i)) == 0);
    CHECK(limiter.take(who, start + seconds(4)) == 6);
    CHECK(limiter.take(who, start + std::chrono::milliseconds(9999)) == 1);
  }
  CHECK(limiter.take("alice", start + seconds(10)) == 0);
  CHECK(limiter.take("alice", start + seconds(19)) == 0);
  CHECK(limiter.take("alice", start + seconds(19)) == 0);
  CHECK(limiter.take("alice", start + seconds(19)) == 1);
}

TEST_CASE("without a rate nobody is refused") {
  RateLimiter limiter({});
  for (int i = 0; i < 1000; ++i) REQUIRE(limiter.take("alice") == 0);
}

TEST_CASE("a thousand askers at their limit leave the others theirs") {
  const RateLimiter::Clock::time_point now{};
  RateLimiter limiter({2, 10}, now);
  for (int i = 0; i < 1000; ++i) {
    for (int n = 0; n < 3; ++n) limiter.take("attacker " + std::to_string(i), now);
  }
  int refused = 0;
  for (int i = 0; i < 1000; ++i) refused += limiter.take("other " + std::to_string(i), now) > 0 ? 1 : 0;
  CHECK(refused <= 2);  // 0.014 are to be expected
}
