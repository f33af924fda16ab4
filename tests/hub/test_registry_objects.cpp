// Objects by digest: whole or absent, owned by repositories, dropped when nobody owns them.
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/registry/objects.hpp"
#include "temporary_folder.hpp"

namespace hub = neuron_kernels::hub;
namespace fs = std::filesystem;
using hub::registry::Objects;

namespace {
std::string add(const Objects& objects, const std::string& content) {
  Objects::Incoming incoming(objects);
  incoming.write(hub::bytes_of(content));
  const std::string digest = incoming.finish();
  incoming.keep();
  return digest;
}
}  // namespace

TEST_CASE("an object is there under its digest once it is kept, and not before") {
  const test::TemporaryFolder root;
  const Objects objects(root.path());
  {
    Objects::Incoming dropped(objects);
    dropped.write(hub::bytes_of("half"));
  }
  CHECK(fs::is_empty(root.path() / "tmp"));
  const std::string digest = add(objects, "content");
  CHECK(digest == hub::sha256_hex("content"));
  CHECK(objects.size(digest) == 7);
  CHECK(hub::read_file(objects.path(digest)) == "content");
  CHECK_FALSE(objects.size(hub::sha256_hex("other")));
  CHECK_THROWS_AS(objects.path("../../etc/passwd"), hub::HubError);
}

TEST_CASE("a repository owns what it was given; what nobody owns is collected when it is old") {
  const test::TemporaryFolder root;
  const Objects objects(root.path());
  const fs::path one = root.path() / "one", two = root.path() / "two";
  fs::create_directories(one);
  fs::create_directories(two);
  const std::string digest = add(objects, "shared"), alone = add(objects, "alone");
  objects.give(digest, one);
  objects.give(digest, one);
  objects.give(digest, two);
  CHECK(objects.owned_by(digest, one));
  CHECK_FALSE(objects.owned_by(alone, one));
  CHECK_FALSE(objects.owned_by("not a digest", one));
  CHECK(objects.collect(3600) == 0);  // an upload may still name it
  fs::remove_all(one);
  CHECK(objects.collect(0) == 5);  // "alone"
  CHECK(objects.size(digest) == 6);
  fs::remove_all(two);
  CHECK(objects.collect(0) == 6);
  CHECK_FALSE(objects.size(digest));
}
