// kernel.lock: the same packages give the same bytes, damage is an error, and when a lock is current.
#include <filesystem>
#include <random>
#include <string>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/lock.hpp"
#include "temporary_folder.hpp"

using namespace neuron_kernels::hub;

namespace {

Version v(const char* text) { return *Version::parse(text); }
Dependency need(const char* repository, const char* range) { return {repository, Range::parse(range)}; }

Lock example() {
  Lock lock;
  lock.packages.push_back({"org/b", v("2.1.0"), std::string(40, 'b'), {}, {}});
  lock.packages.push_back({"org/a",
                           v("1.0.0"),
                           std::string(40, 'a'),
                           {{"build/neuron-header/metadata.json", "git-sha1:" + std::string(40, '1')},
                            {"build/neuron-header/x.so", "sha256:" + std::string(64, '2')}},
                           {need("org/b", "^2")}});
  return lock;
}

Manifest manifest_with(std::vector<Dependency> dependencies) {
  Manifest manifest;
  manifest.dependencies = std::move(dependencies);
  return manifest;
}

}  // namespace

TEST_CASE("a lock is stable: read and written, it is the same bytes") {
  const Lock lock = example();
  const std::string text = lock.text();
  CHECK(Lock::parse(text).text() == text);
  CHECK(text.find("org/a") < text.find("\"repository\": \"org/b\""));
  CHECK(Lock::parse(text).find("org/a")->files == lock.packages[1].files);
  CHECK(Lock::parse(text).versions().at("org/b") == v("2.1.0"));
  const test::TemporaryFolder folder;
  CHECK_FALSE(Lock::read(folder.path()));
  CHECK(lock.write(folder.path()));
  CHECK_FALSE(lock.write(folder.path()));
  CHECK(Lock::read(folder.path())->text() == text);
}

TEST_CASE("a damaged lock is an error, never something else") {
  const std::string text = example().text();
  for (std::size_t i = 0; i + 2 < text.size(); i += 3)
    CHECK_THROWS_AS(Lock::parse(text.substr(0, i)), HubError);
  std::mt19937 source(3);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = text;
    damaged[source() % damaged.size()] = static_cast<char>(source() % 256);
    try {
      Lock::parse(damaged);
    } catch (const HubError&) {
    }
  }
  for (const char* bad : {"{\"schema\":2,\"packages\":[]}", "{\"schema\":1}", "[]",
                          "{\"schema\":1,\"packages\":[],\"x\":1}", "{\"schema\":1,\"packages\":[1]}"}) {
    CHECK_THROWS_AS(Lock::parse(bad), HubError);
  }
  std::string escaping = text;
  escaping.replace(escaping.find("build/neuron-header/x.so"), 5, "../..");
  CHECK_THROWS_AS(Lock::parse(escaping), HubError);
}

TEST_CASE("a lock is current if it holds what is needed and no more") {
  const Lock lock = example();
  CHECK(lock.outdated({need("org/a", "^1")}).empty());
  CHECK(lock.outdated({need("org/a", "1"), need("org/b", ">=2")}).empty());
  CHECK_THAT(lock.outdated({need("org/a", "^2")}),
             contains_text("kernel.toml needs org/a ^2; locked is 1.0.0"));
  CHECK_THAT(lock.outdated({need("org/a", "1"), need("org/c", "1")}),
             contains_text("org/c, which is not locked"));
  CHECK_THAT(lock.outdated({need("org/b", "2")}), contains_text("org/a is locked but not needed"));
}

TEST_CASE("--locked wants a current lock, and without it an old one is resolved again") {
  const test::TemporaryFolder folder;
  const LockPolicy free{}, locked{.locked = true, .offline = false};
  const Manifest wants = manifest_with({need("org/a", "^1")}), other = manifest_with({need("org/a", "^3")});
  CHECK_FALSE(current_lock(folder.path(), wants, free));
  CHECK_THROWS_AS(current_lock(folder.path(), wants, locked), HubError);
  CHECK_FALSE(current_lock(folder.path(), manifest_with({}), LockPolicy::frozen()));
  example().write(folder.path());
  CHECK(current_lock(folder.path(), wants, locked)->packages.size() == 2);
  CHECK_FALSE(current_lock(folder.path(), other, free));
  try {
    current_lock(folder.path(), other, LockPolicy::frozen());
    FAIL("no error");
  } catch (const HubError& error) {
    CHECK_THAT(error.what(), contains_text("not current: kernel.toml needs org/a ^3"));
  }
}
