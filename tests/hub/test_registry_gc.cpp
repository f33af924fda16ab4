// Housekeeping: what is packed, what is removed, and above all what stays.
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/registry/git_packs.hpp"
#include "hub/registry/git_repository.hpp"
#include "hub/registry/housekeeping.hpp"
#include "hub/registry/store_lock.hpp"
#include "registry_fixture.hpp"

namespace hub = neuron_kernels::hub;
namespace fs = std::filesystem;
using namespace neuron_kernels::hub::registry;

namespace {

/// Path -> size and time of every file and folder.
std::map<std::string, std::string> picture(const fs::path& below) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(below)) {
    all[entry.path().string()] = std::to_string(entry.is_regular_file() ? entry.file_size() : 0) + " " +
                                 std::to_string(fs::last_write_time(entry.path()).time_since_epoch().count());
  }
  return all;
}

using Fixture = test::RegistryFixture;

}  // namespace

TEST_CASE_METHOD(Fixture, "objects that commits name stay, whatever their age and the reference") {
  const std::string in_history = "in an old commit", on_branch = "on a branch",
                    in_request = "in a pull request";
  for (const std::string& content : {in_history, on_branch, in_request}) upload(content);
  commit("a", pointer(in_history));
  commit("a", "replaced");
  GitRepository repository = open();
  repository.create_reference("refs/heads/side", *repository.resolve("main"));
  commit("b", pointer(on_branch), "side");
  const Changes changes{{}, {}, {{"c", repository.write_blob(pointer(in_request))}}};
  repository.commit("refs/pr/1", *repository.resolve("main"), changes, "c", "", "alice", true);
  test::make_old(root.path());
  const Collected done = gc();
  CHECK(done.objects == 0);
  CHECK(done.git_objects == 0);
  CHECK(done.problems.empty());
  for (const std::string& content : {in_history, on_branch, in_request}) CHECK(stored(content));
}

TEST_CASE_METHOD(Fixture, "an object that no commit names goes once it is old, and not before") {
  upload("forgotten");
  upload("just sent");
  test::make_old(root.path());
  upload("just sent");
  CHECK(gc().objects == 1);
  CHECK_FALSE(stored("forgotten"));
  CHECK(stored("just sent"));
  test::make_old(root.path());
  CHECK(objects.claim(hub::sha256_hex("just sent"), folder));  // a client asks whether it has to send it
  CHECK(gc().objects == 0);
  test::make_old(root.path());
  const Collected done = gc();
  CHECK(done.objects == 1);
  CHECK(done.bytes >= 9);
  CHECK_FALSE(objects.size(hub::sha256_hex("just sent")));
}

TEST_CASE_METHOD(Fixture, "what is named again after the first look at the references stays") {
  GitRepository repository = open();
  repository.create_reference("refs/heads/side", *repository.resolve("main"));
  upload("revived");
  const std::string id = commit("a", pointer("revived"), "side");
  repository.delete_reference("refs/heads/side");
  test::make_old(root.path());
  Collected done;
  {
    std::optional<StoreLock> upload_goes_on = StoreLock::shared(root.path());
    const std::jthread collector([&] { done = gc(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it has looked, and waits for the lock
    repository.create_reference("refs/heads/again", id);
    upload_goes_on.reset();
  }
  CHECK(done.problems.empty());
  CHECK(done.git_objects == 0);
  CHECK(open().is_whole(id));
  CHECK(stored("revived"));
}

TEST_CASE_METHOD(Fixture, "objects of deleted repositories go, unless another repository owns them") {
  const RepositoryKey other{RepositoryType::model, "bob/two"};
  repositories.create(other, {});
  upload("shared");
  commit("s", pointer("shared"));
  for (const char* content : {"shared", "alone"}) upload_to(repositories.folder(other), content);
  repositories.remove(other);
  test::make_old(root.path());
  CHECK(gc().objects == 1);
  CHECK(stored("shared"));
  CHECK_FALSE(objects.size(hub::sha256_hex("alone")));
}

TEST_CASE_METHOD(Fixture,
                 "reachable git objects are packed and read as before; unreachable ones go when old") {
  const std::string id = commit("a/b.txt", "content");
  GitRepository before = open();  // of a request that is under way
  const std::string orphan = before.write_blob("nobody names this");
  const std::size_t loose = loose_objects(folder).size();
  Collected done = gc();
  CHECK(done.packed == loose - 1);
  CHECK(done.git_objects == 0);
  REQUIRE(loose_objects(folder).size() == 1);
  CHECK(packs(folder).size() == 1);
  const GitRepository after = open();
  CHECK(before.blob(before.entry(id, "a/b.txt")->oid) == "content");
  CHECK(after.blob(after.entry(id, "a/b.txt")->oid) == "content");
  CHECK(before.blob(orphan) == "nobody names this");
  test::make_old(root.path());
  CHECK(before.write_blob("nobody names this") == orphan);  // sent again: new again
  CHECK(gc().git_objects == 0);
  test::make_old(root.path());
  CHECK(gc().git_objects == 1);
  CHECK(loose_objects(folder).empty());
  CHECK(commit("c", "after") != id);
}

TEST_CASE_METHOD(Fixture, "many packs become one; what only they have of deleted branches goes") {
  GitRepository repository = open();
  repository.create_reference("refs/heads/side", *repository.resolve("main"));
  const std::string lost = commit("lost", "lost with its branch", "side");
  for (int i = 0; i < 8; ++i) {
    commit("file", "version " + std::to_string(i));
    gc();
  }
  CHECK(packs(folder).size() == 8);
  repository.delete_reference("refs/heads/side");
  CHECK(gc().packs == 0);  // they are young
  test::make_old(root.path());
  const Collected done = gc();
  CHECK(done.packs == 8);
  CHECK(done.git_objects == 3);  // commit, tree, blob
  CHECK(packs(folder).size() == 1);
  const GitRepository now = open();
  CHECK_FALSE(now.has(lost));
  CHECK(now.blob(now.entry(*now.resolve("main"), "file")->oid) == "version 7");
  std::size_t total = 0;
  CHECK(now.commits(*now.resolve("main"), 0, 1, total).size() == 1);
  CHECK(total == 9);
}

TEST_CASE_METHOD(Fixture, "uploads that were given up and leftovers of killed processes go when old") {
  const fs::path files[] = {
      root.path() / "tmp" / "parts-1" / "1", root.path() / "tmp" / "incoming.1.incomplete",
      root.path() / "accounts.json.1.incomplete", folder / "refs" / "heads" / "main.lock",
      folder / "objects" / "pack" / "pack_git2_1"};
  for (const fs::path& file : files) hub::write_file(file, "x");
  CHECK(gc().leftovers == 0);
  test::make_old(root.path());
  CHECK(gc().leftovers == 5);
  for (const fs::path& file : files) CHECK_FALSE(fs::exists(file));
}

TEST_CASE_METHOD(Fixture, "xorbs stay for as long as clients remember them") {
  const fs::path file = root.path() / "xorbs" / "space" / "xorb";
  hub::write_file(file, "x");
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(22 * 24));
  CHECK(gc().xorbs == 0);
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(31 * 24));
  CHECK(gc().xorbs == 1);
}

TEST_CASE_METHOD(Fixture, "a dry run says the same and changes nothing") {
  upload("forgotten");
  upload("named");
  commit("n", pointer("named"));
  open().write_blob("orphan");
  hub::write_file(root.path() / "tmp" / "parts-1" / "1", "x");
  test::make_old(root.path());
  const auto before = picture(root.path());
  const Collected would = gc(true);
  CHECK(picture(root.path()) == before);
  const Collected done = gc();
  CHECK(would.objects == 1);
  CHECK(done.objects == would.objects);
  CHECK(done.git_objects == would.git_objects);
  CHECK(done.packed == would.packed);
  CHECK(done.leftovers == would.leftovers);
}

TEST_CASE_METHOD(Fixture, "of a repository that cannot be read whole nothing is removed") {
  upload("named");
  upload("forgotten");
  const std::string id = commit("n", pointer("named"));
  commit("m", "more");
  SECTION("a damaged reference") { hub::write_file(folder / "refs" / "heads" / "side", ""); }
  SECTION("a missing object") { REQUIRE(fs::remove(folder / "objects" / id.substr(0, 2) / id.substr(2))); }
  test::make_old(root.path());
  const Collected done = gc();
  REQUIRE(done.problems.size() == 1);
  CHECK_THAT(done.problems[0], contains_text("one.git"));
  CHECK(done.objects == 0);
  CHECK(done.git_objects == 0);
  CHECK(stored("named"));
  CHECK(stored("forgotten"));
}

TEST_CASE_METHOD(Fixture, "too short a grace period, no registry, and a second run at once are refused") {
  CHECK_THROWS_WITH(collect_garbage(root.path(), {6 * 3600, false}),
                    contains_text("7 h and more are allowed"));
  CHECK_THROWS_WITH(collect_garbage(root.path() / "none", {}), contains_text("there is no registry in"));
  const hub::Descriptor other = begin_housekeeping(root.path());
  CHECK_THROWS_WITH(gc(), contains_text("another gc or backup works on"));
}
