// Objects by digest: whole or absent, owned by repositories, new again when an upload names them.
#include <chrono>
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

/// A root with two repositories that may own objects.
struct Fixture {
  Fixture() : objects(root.path()), one(root.path() / "one"), two(root.path() / "two") {
    fs::create_directories(one);
    fs::create_directories(two);
  }
  std::string add(const std::string& content, const fs::path& folder) const {
    Objects::Incoming incoming(objects);
    incoming.write(hub::bytes_of(content));
    incoming.keep_for(folder);
    return incoming.finish();
  }
  test::TemporaryFolder root;
  Objects objects;
  fs::path one, two;
};

const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1000);

}  // namespace

TEST_CASE_METHOD(Fixture, "an object is there under its digest once it is kept, and not before") {
  {
    Objects::Incoming dropped(objects);
    dropped.write(hub::bytes_of("half"));
  }
  CHECK(fs::is_empty(root.path() / "tmp"));
  const std::string digest = add("content", one);
  CHECK(digest == hub::sha256_hex("content"));
  CHECK(objects.size(digest) == 7);
  CHECK(hub::read_file(objects.path(digest)) == "content");
  CHECK_FALSE(objects.size(hub::sha256_hex("other")));
  CHECK_THROWS_AS(objects.path("../../etc/passwd"), hub::HubError);
}

TEST_CASE_METHOD(Fixture, "a repository owns what it was sent; the bytes are there once for all owners") {
  const std::string digest = add("shared", one);
  CHECK(objects.owned_size(digest, one) == 6);
  CHECK_FALSE(objects.owned_size(digest, two));
  CHECK_FALSE(objects.owned_by("not a digest", one));
  add("shared", one);
  add("shared", two);
  CHECK(objects.owned_size(digest, two) == 6);
  CHECK(fs::hard_link_count(objects.path(digest)) == 3);
  CHECK(fs::is_empty(root.path() / "tmp"));
}

TEST_CASE_METHOD(Fixture, "an upload that finds a damaged object puts a whole one in its place") {
  const std::string digest = add("whole", one);
  hub::write_file(objects.path(digest), "hal");
  add("whole", two);
  CHECK(hub::read_file(objects.path(digest)) == "whole");
}

TEST_CASE_METHOD(Fixture, "who claims an object or sends it again makes it count as new") {
  const std::string digest = add("old", one);
  const auto age = [&] {
    return fs::file_time_type::clock::now() - fs::last_write_time(objects.path(digest));
  };
  fs::last_write_time(objects.path(digest), long_ago);
  CHECK_FALSE(objects.claim(digest, two));
  CHECK(age() > std::chrono::hours(999));
  CHECK(objects.claim(digest, one) == 3);
  CHECK(age() < std::chrono::hours(1));
  fs::last_write_time(objects.path(digest), long_ago);
  add("old", two);
  CHECK(age() < std::chrono::hours(1));
}

TEST_CASE_METHOD(Fixture, "an upload to a repository that is gone makes no object and no folder") {
  fs::remove_all(one);
  CHECK_THROWS_WITH(add("late", one), contains_text("deleted or moved"));
  CHECK_FALSE(fs::exists(one));
  CHECK_FALSE(objects.size(hub::sha256_hex("late")));
}
