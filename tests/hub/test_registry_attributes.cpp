// .gitattributes: each file that is a pointer goes to git-lfs, and no other.
#include <string>

#include "catch.hpp"
#include "hub/registry/git_repository.hpp"
#include "temporary_folder.hpp"

using namespace neuron_kernels::hub::registry;

namespace {

struct Fixture {
  Fixture() { GitRepository::create(folder.path() / "r.git", "alice"); }

  std::string commit(const Changes& changes) {
    return *repository().commit("refs/heads/main", head(), changes, "change", "", "alice", false);
  }
  std::string commit_file(const std::string& path, const std::string& content) {
    return commit({{}, {}, {{path, repository().write_blob(content)}}});
  }
  GitRepository repository() const {
    return GitRepository(folder.path() / "r.git", [](const LfsPointer&) { return true; });
  }
  std::string head() const { return *repository().resolve("main"); }
  bool filtered(const std::string& path) const {
    return repository().lfs_paths(head(), {path}).contains(path);
  }
  std::string attributes() const {
    const auto entry = repository().entry(head(), ".gitattributes");
    return entry ? repository().blob(entry->oid) : std::string();
  }

  test::TemporaryFolder folder;
  std::string pointer = LfsPointer{std::string(64, 'a'), 5'000'000}.text();
};

const std::string to_lfs = " filter=lfs diff=lfs merge=lfs -text\n";

}  // namespace

TEST_CASE_METHOD(Fixture, "a repository without large files has no .gitattributes") {
  commit_file("a.bin", "small");
  CHECK_FALSE(repository().entry(head(), ".gitattributes"));
}

TEST_CASE_METHOD(Fixture, "a pointer gets one line that names it alone") {
  commit_file("a.bin", pointer);
  commit_file("a.bin", pointer);
  CHECK(attributes() == "/a.bin" + to_lfs);
  CHECK(filtered("a.bin"));
  CHECK_FALSE(filtered("b/a.bin"));
}

TEST_CASE_METHOD(Fixture, "names with characters that mean something in a pattern") {
  for (const std::string& path :
       {std::string("a b.bin"), std::string("*.bin"), std::string("[x]?.bin"), std::string("#a"),
        std::string("!a"), std::string("\"a\""), std::string("caf\u00e9/x y/z"), std::string("-a")}) {
    CAPTURE(path);
    commit_file(path, pointer);
    CHECK(filtered(path));
  }
  CHECK_FALSE(filtered("other.bin"));
  CHECK_FALSE(filtered("x1.bin"));
  CHECK_FALSE(filtered("a"));
}

TEST_CASE_METHOD(Fixture, "a file that becomes small is git's again, and LFS's when it grows") {
  commit_file("a.bin", pointer);
  commit_file("a.bin", "small");
  CHECK_FALSE(filtered("a.bin"));
  CHECK_FALSE(repository().entry(head(), ".gitattributes"));
  commit_file("a.bin", pointer);
  CHECK(attributes() == "/a.bin" + to_lfs);
}

TEST_CASE_METHOD(Fixture, "patterns of the user's own stay, and are corrected where they are not so") {
  commit_file("early.bin", "small");
  const std::string own = "# mine\n*.bin filter=lfs diff=lfs merge=lfs -text\n";
  commit_file(".gitattributes", own);
  CHECK_FALSE(filtered("early.bin"));
  commit_file("late.bin", pointer);  // covered: no line is needed
  CHECK(attributes() == own + "/early.bin !filter !diff !merge !text\n");
  commit_file("early.bin", pointer);
  CHECK(attributes() == own);
}

TEST_CASE_METHOD(Fixture, "a new .gitattributes does not lose what older files need") {
  commit_file("a.bin", pointer);
  commit_file(".gitattributes", "*.txt text");
  CHECK(attributes() == "*.txt text\n/a.bin" + to_lfs);
  commit({{".gitattributes"}, {}, {}});
  CHECK(attributes() == "/a.bin" + to_lfs);
}

TEST_CASE_METHOD(Fixture, "a folder's .gitattributes counts") {
  commit_file("d/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  commit_file("d/a.bin", pointer);
  CHECK_FALSE(repository().entry(head(), ".gitattributes"));
  commit({{}, {"d"}, {{"d/b.bin", repository().write_blob(pointer)}}});
  CHECK(attributes() == "/d/b.bin" + to_lfs);
}
