// What a request says: the parts of its address, and who sent it.
#include <string>
#include <vector>

#include "catch.hpp"
#include "hub/registry/http_server.hpp"

using namespace neuron_kernels::hub::registry;

namespace {
std::vector<std::string> parts_of(const std::string& path) {
  RequestHead head;
  head.path = path;
  return head.parts();
}
}  // namespace

TEST_CASE("an address is split before it is decoded") {
  CHECK(parts_of("/a/refs%2Fheads%2Fx/caf%C3%A9") ==
        std::vector<std::string>{"a", "refs/heads/x", "caf\u00e9"});
  CHECK(parts_of("/") == std::vector<std::string>{""});
}

TEST_CASE("escapes that are none, zero bytes and wrong UTF-8 are refused") {
  for (const char* path : {"/%", "/%4", "/%zz", "/%00", "/a%00b", "/%c0%ae", "/%e0%80%ae", "/%f0%80%80%ae",
                           "/%ed%a0%80", "/%f4%90%80%80", "/%80", "/%e2%82", "/\xc0\xae"}) {
    CAPTURE(path);
    CHECK_THROWS_AS(parts_of(path), HttpError);
  }
}

TEST_CASE("X-Forwarded-For is believed as far as trusted proxies wrote it") {
  const std::vector<std::string> proxies{"10.0.0.1", "10.0.0.2"};
  CHECK(client_behind({}, "10.0.0.1", "1.2.3.4") == "10.0.0.1");
  CHECK(client_behind(proxies, "9.9.9.9", "1.2.3.4") == "9.9.9.9");
  CHECK(client_behind(proxies, "10.0.0.1", "") == "10.0.0.1");
  CHECK(client_behind(proxies, "10.0.0.1", "1.2.3.4") == "1.2.3.4");
  CHECK(client_behind(proxies, "10.0.0.1", "6.6.6.6, 1.2.3.4") == "1.2.3.4");
  CHECK(client_behind(proxies, "10.0.0.1", "6.6.6.6,1.2.3.4 , 10.0.0.2") == "1.2.3.4");
  CHECK(client_behind(proxies, "10.0.0.1", "10.0.0.2") == "10.0.0.2");
  CHECK(client_behind(proxies, "10.0.0.1", "2001:db8::1") == "2001:db8::1");
}
