// Which commit a version, range, tag, branch or commit means.
#include <string>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/revision.hpp"

namespace hub = neuron_kernels::hub;

namespace {

std::string commit(char digit) { return std::string(40, digit); }

const hub::Refs refs{
    .branches = {{"main", commit('0')}, {"v1", commit('1')}, {"v2", commit('2')}, {"v3", commit('3')}},
    .tags = {{"1.0.0", commit('a')},
             {"1.2.0", commit('1')},
             {"1.10.0-rc.1", commit('b')},
             {"v2.0.0", commit('c')},
             {"nightly", commit('d')}}};

std::string resolve(const std::string& revision) {
  return hub::resolve_revision(refs, revision, "kernel o/n").commit;
}

}  // namespace

TEST_CASE("names go before ranges") {
  CHECK(resolve("main") == commit('0'));
  CHECK(resolve("nightly") == commit('d'));
  CHECK(resolve("refs/tags/nightly") == commit('d'));
  CHECK(resolve("refs/heads/v2") == commit('2'));
  CHECK(resolve("1.0.0") == commit('a'));
  CHECK(resolve("1") == commit('1'));
  CHECK(resolve("2") == commit('2'));
}

TEST_CASE("ranges take the highest release") {
  CHECK(resolve("^1") == commit('1'));
  CHECK(resolve("~1.0") == commit('a'));
  CHECK(resolve(">=1, <2") == commit('1'));
  CHECK(resolve("=1.10.0-rc.1") == commit('b'));
  CHECK(resolve("2.0") == commit('c'));  // the tag, since that major number has one
  CHECK(resolve("^3") == commit('3'));   // no tag 3.x: the branch counts as 3.0.0
  CHECK(resolve("*") == commit('3'));
}

TEST_CASE("commits") {
  CHECK(resolve(commit('f')) == commit('f'));
  CHECK(resolve("aaaaaaa") == commit('a'));
  CHECK_THROWS_AS(resolve("fffffff"), hub::HubError);
}

TEST_CASE("an error lists the versions") {
  try {
    resolve("^4");
    FAIL("accepted");
  } catch (const hub::HubError& error) {
    CHECK(error.kind == hub::ErrorKind::not_found);
    CHECK_THAT(error.what(),
               contains_text("kernel o/n has no version in '^4'; versions: v3, v2, v1, v2.0.0, "));
  }
  CHECK_THROWS_WITH(resolve("nothing"), contains_text("no revision 'nothing'"));
}

TEST_CASE("refs to remember hold the version branch of the commit") {
  const auto tag = hub::resolve_revision(refs, "1.2.0", "kernel o/n");
  CHECK(tag.refs == std::vector<std::string>{"1.2.0", "v1"});
  CHECK(hub::resolve_revision(refs, "1.0.0", "kernel o/n").refs == std::vector<std::string>{"1.0.0"});
  CHECK(hub::resolve_revision(refs, commit('f'), "kernel o/n").refs.empty());
}
