// What the client takes from metadata.json, and the devices that code runs on.
#include <fstream>
#include <string>

#include "catch.hpp"
#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/variant_metadata.hpp"
#include "temporary_folder.hpp"

namespace hub = neuron_kernels::hub;

namespace {

std::string document(const std::string& more = "") {
  return R"({"name":"relu","id":"_relu_1","version":1,"license":"Apache-2.0","python-depends":["einops"],)"
         R"("backend":{"type":"cuda","archs":["8.0","9.0a"]})" +
         more + "}";
}

hub::VariantMetadata parse(const std::string& text) {
  return hub::parse_variant_metadata(text, "metadata.json");
}

}  // namespace

TEST_CASE("fields of metadata.json") {
  const auto metadata = parse(
      document(R"(,"kernel-depends":[{"repo-id":"o/a","version":2},{"repo-id":"o/b","revision":"main"},)"
               R"({"repo-id":"o/c","version":1}],"dependencies":{"o/c":"^1.2"},)"
               R"("kernels-minver":"0.17","unknown":{"x":1},"provenance":{"kernel":{"commit":"abc"}})"));
  CHECK(metadata.name == "relu");
  CHECK(metadata.archs.size() == 2);
  REQUIRE(metadata.kernel_depends.size() == 3);
  CHECK(metadata.kernel_depends[0].revision == "^1.2");  // the range, not the version that repeats it
  CHECK(metadata.kernel_depends[1].revision == "2");
  CHECK(metadata.kernel_depends[2].revision == "main");
  CHECK(metadata.commit == "abc");
}

TEST_CASE("malformed metadata names what is wrong") {
  CHECK_THROWS_WITH(parse("{}"), contains_text("'name'"));
  CHECK_THROWS_AS(parse("["), hub::HubError);
  CHECK_THROWS_AS(parse(R"({"name":1})"), hub::HubError);
  CHECK_THROWS_AS(parse(document(R"(,"digest":{"algorithm":"sha256","files":{"../x":"AAAA"}})")),
                  hub::HubError);
  CHECK_THROWS_AS(parse(document(R"(,"digest":{"algorithm":"sha256","files":{"x":"?"}})")), hub::HubError);
}

TEST_CASE("devices that an architecture runs on") {
  CHECK(hub::arch_suits("8.0", "8.6", "cuda"));
  CHECK_FALSE(hub::arch_suits("8.6", "8.0", "cuda"));
  CHECK_FALSE(hub::arch_suits("8.0", "9.0", "cuda"));
  CHECK(hub::arch_suits("8.0+PTX", "9.0", "cuda"));
  CHECK_FALSE(hub::arch_suits("8.0+PTX", "7.5", "cuda"));
  CHECK(hub::arch_suits("9.0a", "9.0", "cuda"));
  CHECK_FALSE(hub::arch_suits("10.0a", "10.3", "cuda"));
  CHECK(hub::arch_suits("10.0f", "10.3", "cuda"));
  CHECK_FALSE(hub::arch_suits("10.0f", "12.0", "cuda"));
  CHECK(hub::arch_suits("gfx942", "gfx942", "rocm"));
  CHECK_FALSE(hub::arch_suits("gfx942", "gfx90a", "rocm"));
}

TEST_CASE("what does not suit is refused") {
  hub::Platform platform{.arch = "x86_64", .os = "linux", .backend = *hub::Backend::parse("cu130")};
  const auto metadata = parse(document());
  CHECK_NOTHROW(hub::require_suitable(metadata, platform, "it"));  // no device is known
  platform.device_archs = {"8.6"};
  CHECK_NOTHROW(hub::require_suitable(metadata, platform, "it"));
  platform.device_archs = {"7.5"};
  CHECK_THROWS_WITH(hub::require_suitable(metadata, platform, "it"),
                    contains_text("8.0, 9.0a; this machine has 7.5"));
  const auto newer = parse(document(R"(,"kernels-minver":"0.99")"));
  CHECK_THROWS_WITH(hub::require_suitable(newer, platform, "it"), contains_text("0.99"));
}

TEST_CASE("digests of the files are compared") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "a.py") << "text";
  const auto with = [&](const std::string& content) {
    const std::string raw = hub::Hasher::sha256().add(content).finish();
    return parse(
        document(R"(,"digest":{"algorithm":"sha256","files":{"a.py":")" + hub::to_base64(raw) + "\"}}"));
  };
  CHECK_NOTHROW(hub::require_digests(with("text"), folder.path(), "it"));
  CHECK_THROWS_WITH(hub::require_digests(with("other"), folder.path(), "it"),
                    contains_text("checksum mismatch"));
  std::filesystem::remove(folder.path() / "a.py");
  CHECK_THROWS_WITH(hub::require_digests(with("text"), folder.path(), "it"), contains_text("a.py"));
}
