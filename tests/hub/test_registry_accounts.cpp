// Users, organisations and tokens: what is kept, what is shown, what is refused.
#include <sys/stat.h>

#include <string>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/registry/accounts.hpp"
#include "temporary_folder.hpp"

namespace hub = neuron_kernels::hub;
using hub::registry::Accounts;

TEST_CASE("a token is known by its digest only, and gives its user's rights") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "accounts.json";
  Accounts accounts(file);
  accounts.add_user("alice");
  accounts.add_organisation("org", true);
  accounts.add_member("org", "alice");
  const std::string writer = accounts.add_token("alice", "laptop", true),
                    reader = accounts.add_token("alice", "ci", false);
  CHECK(writer.starts_with("hf_"));
  CHECK(writer.size() == 37);
  CHECK(hub::read_file(file).find(writer) == std::string::npos);
  struct stat status {};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);

  const Accounts again(file);  // another process
  const auto who = again.identify(writer);
  REQUIRE(who);
  CHECK(who->name == "alice");
  CHECK(who->may_write("alice"));
  CHECK(who->may_write("org"));
  CHECK_FALSE(who->may_write("bob"));
  CHECK_FALSE(again.identify(reader)->may_write("alice"));
  CHECK(again.identify(reader)->member_of("org"));
  CHECK_FALSE(again.identify("hf_nobody"));
  CHECK_FALSE(again.identify(""));

  CHECK(accounts.revoke("alice", "laptop") == 1);
  CHECK_FALSE(again.identify(writer));  // seen without a restart
  CHECK(again.identify(reader));
}

TEST_CASE("names that cannot be, or are taken, are refused") {
  const test::TemporaryFolder folder;
  Accounts accounts(folder.path() / "accounts.json");
  accounts.add_user("alice");
  CHECK_THROWS_WITH(accounts.add_user("alice"), contains_text("already"));
  CHECK_THROWS_WITH(accounts.add_organisation("alice", false), contains_text("already"));
  for (const char* name : {"", "a/b", "..", "-a", "a-", "a--b", "a..b", "x.git", "a b", "\xc3\xa9"}) {
    CHECK_THROWS_AS(accounts.add_user(name), hub::HubError);
  }
  CHECK_THROWS_WITH(accounts.add_token("nobody", "t", true), contains_text("nobody"));
  CHECK_THROWS_WITH(accounts.add_member("none", "alice"), contains_text("none"));
}
