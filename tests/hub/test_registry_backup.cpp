// Backups: what is in them, what is refused, and that a restored registry is the one that was backed up.
#include <filesystem>
#include <map>
#include <string>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/registry/accounts.hpp"
#include "hub/registry/backup.hpp"
#include "hub/registry/gc.hpp"
#include "hub/registry/objects.hpp"
#include "registry_fixture.hpp"

namespace hub = neuron_kernels::hub;
namespace fs = std::filesystem;
using namespace neuron_kernels::hub::registry;

namespace {

struct Fixture : test::RegistryFixture {
  Fixture() {
    Accounts accounts(root.path() / "accounts.json");
    accounts.add_user("alice");
    token = accounts.add_token("alice", "t", true);
    hub::write_file(root.path() / "secret", "key", 0600);
    upload("large");
    commit("large.bin", pointer("large"));
    commit("small.txt", "small");
  }

  /// By name, what the files of a root hold; and how many names their bytes have.
  static std::map<std::string, std::string> files(const fs::path& below) {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(below)) {
      const std::string name = entry.path().lexically_relative(below).string();
      if (!entry.is_regular_file() || name.ends_with(".lock") || name == "store-id") continue;
      if (name.find("/hooks/") != name.npos || name.find("/info/") != name.npos ||
          name.ends_with("/description"))
        continue;  // git works without
      all[name] = std::to_string(entry.hard_link_count()) + " " + hub::read_file(entry.path());
    }
    return all;
  }
  void change(std::size_t at, char to) const {
    std::string content = hub::read_file(file);
    content.at(at) = to;
    hub::write_file(file, content);
  }
  void require_refused(const std::string& message) const {
    CHECK_THROWS_WITH(restore(file, target), contains_text(message));
    CHECK_FALSE(fs::exists(target));
    CHECK_FALSE(fs::exists(target.string() + ".restoring"));
  }

  test::TemporaryFolder elsewhere;
  fs::path file = elsewhere.path() / "backup.tar", target = elsewhere.path() / "restored";
  std::string token;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a restored registry has the same files and links, and nothing else") {
  hub::write_file(root.path() / "tmp" / "parts-1" / "1", "an upload that is under way");
  hub::write_file(root.path() / "xorbs" / "space" / "xorb", "can be sent again");
  const BackedUp done = back_up(root.path(), file);
  CHECK(done.repositories == 1);
  CHECK(done.objects == 1);
  CHECK(done.bytes == fs::file_size(file));
  CHECK((fs::status(file).permissions() & fs::perms::mask) == fs::perms(0600));
  CHECK_FALSE(fs::exists(root.path() / "housekeeping"));
  const BackedUp back = restore(file, target);
  CHECK(back.repositories == 1);
  CHECK(back.objects == 1);
  fs::remove_all(root.path() / "tmp");
  fs::remove_all(root.path() / "xorbs");
  CHECK(files(target) == files(root.path()));
  CHECK((fs::status(target / "secret").permissions() & fs::perms::mask) == fs::perms(0600));
  CHECK(Accounts(target / "accounts.json").identify(token)->name == "alice");
  const GitRepository repository(target / folder.lexically_relative(root.path()), {});
  CHECK(repository.blob(repository.entry(*repository.resolve("main"), "small.txt")->oid) == "small");
  CHECK(collect_garbage(target, {}).problems.empty());
}

TEST_CASE_METHOD(Fixture, "references keep names of any kind") {
  GitRepository repository = open();
  for (const char* name : {"refs/heads/tmp_x", "refs/heads/a_git2_b", "refs/tags/\xc3\xa9t\xc3\xa9",
                           "refs/pr/1", "refs/heads/x.incomplete"}) {
    repository.create_reference(name, *repository.resolve("main"));
  }
  test::make_old(root.path());
  CHECK(gc().leftovers == 0);
  back_up(root.path(), file);
  restore(file, target);
  CHECK(files(target) == files(root.path()));
}

TEST_CASE_METHOD(Fixture, "a backup of a packed registry restores, too") {
  gc();
  commit("after", "more");
  back_up(root.path(), file);
  restore(file, target);
  CHECK(files(target) == files(root.path()));
}

TEST_CASE_METHOD(Fixture, "a backup replaces no file, and clears what a killed one left") {
  hub::write_file(elsewhere.path() / "backup.tar.12345678.incomplete", "half");
  hub::write_file(root.path() / "housekeeping" / "half", "half");
  back_up(root.path(), file);
  CHECK_FALSE(fs::exists(elsewhere.path() / "backup.tar.12345678.incomplete"));
  CHECK_FALSE(fs::exists(root.path() / "housekeeping"));
  CHECK_THROWS_WITH(back_up(root.path(), file), contains_text("exists already"));
  CHECK_THROWS_WITH(back_up(elsewhere.path(), elsewhere.path() / "x"),
                    contains_text("there is no registry in"));
  CHECK_THROWS_AS(back_up(root.path(), elsewhere.path() / "none" / "x"), hub::HubError);
}

TEST_CASE_METHOD(Fixture, "what is damaged is not backed up as if it were whole") {
  const fs::path object = objects.path(hub::sha256_hex("large"));
  std::string message;
  SECTION("other bytes in an object") {
    hub::write_file(object, "LARGE");
    message = "is damaged: its bytes have the SHA-256";
  }
  SECTION("an object that is gone") {
    fs::remove(object);
    message = "the object " + hub::sha256_hex("large") + " that it owns is missing";
  }
  SECTION("a git object that is gone") {
    GitRepository repository = open();
    const std::string blob = repository.entry(*repository.resolve("main"), "small.txt")->oid;
    fs::remove(folder / "objects" / blob.substr(0, 2) / blob.substr(2));
    message = "kernel alice/one is damaged: the blob " + blob + " is missing";
  }
  CHECK_THROWS_WITH(back_up(root.path(), file), contains_text(message));
  CHECK(fs::is_empty(elsewhere.path()));
}

TEST_CASE_METHOD(Fixture, "a backup that was cut off or changed is refused, and leaves nothing") {
  back_up(root.path(), file);
  const std::string whole = hub::read_file(file);
  SECTION("other bytes in an object") {
    change(whole.find("large"), 'L');
    require_refused("has the SHA-256 " + hub::sha256_hex("Large"));
  }
  SECTION("other bytes elsewhere") {
    change(whole.find("\"organisations\"") + 1, 'O');
    require_refused("accounts.json is not as its list of digests has it");
  }
  SECTION("other bytes in a header") {
    change(whole.find("secret"), 'S');
    require_refused("is not a whole backup");
  }
  SECTION("cut off anywhere") {
    for (std::size_t bytes = 0; bytes < whole.find("SHA256SUMS"); bytes += 509) {
      hub::write_file(file, whole.substr(0, bytes));
      require_refused("is not a ");
    }
  }
  SECTION("cut off in its list of digests") {
    hub::write_file(file, whole.substr(0, whole.find("SHA256SUMS") + 700));
    require_refused("is not a whole backup");
  }
  SECTION("something else") {
    hub::write_file(file, std::string(100'000, 'x'));
    require_refused("is not a whole backup");
  }
  SECTION("not there") {
    fs::remove(file);
    require_refused("cannot read");
  }
}

TEST_CASE_METHOD(Fixture, "a backup is restored only to a folder that is absent or empty") {
  back_up(root.path(), file);
  CHECK_THROWS_WITH(restore(file, root.path()), contains_text("is not empty"));
  fs::create_directories(target.string() + ".restoring/of a killed one");
  fs::create_directories(target);
  restore(file, target / "");
  CHECK(files(target) == files(root.path()));
}
