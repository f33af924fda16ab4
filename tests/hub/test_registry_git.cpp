// Repositories: revisions, listings, commits, and what happens when two writers meet.
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "hub/registry/git_repository.hpp"
#include "hub/registry/http_server.hpp"
#include "temporary_folder.hpp"

using namespace neuron_kernels::hub::registry;

namespace {

const std::string digest(64, 'a');

struct Fixture {
  Fixture() { GitRepository::create(folder.path() / "r.git", "alice"); }
  GitRepository open(bool owns = true) const {
    return GitRepository(folder.path() / "r.git", [owns](const LfsPointer&) { return owns; });
  }
  static std::string commit(GitRepository& repository, const Changes& changes,
                            const std::string& title = "change") {
    return *repository.commit("refs/heads/main", *repository.resolve("main"), changes, title, "", "alice",
                              false);
  }
  test::TemporaryFolder folder;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a new repository has main and nothing in it") {
  const GitRepository repository = open();
  REQUIRE(repository.branches().size() == 1);
  CHECK(repository.branches()[0].name == "main");
  CHECK(repository.list(*repository.resolve("main"), "", true)->empty());
  CHECK_FALSE(repository.resolve("nope"));
  CHECK_FALSE(repository.resolve("0123456"));
}

TEST_CASE_METHOD(Fixture, "files, folders and pointers are listed with their sizes") {
  GitRepository repository = open();
  const LfsPointer pointer{digest, 5'000'000'000};
  const std::string text = repository.write_blob("hello"), large = repository.write_blob(pointer.text());
  const std::string id =
      commit(repository, {{}, {}, {{"a/b/c.txt", text}, {"a/large.bin", large}, {"z", text}}});
  const auto all = *repository.list(id, "", true);
  std::string paths;
  for (const TreeEntry& e : all) paths += e.path + (e.folder ? "/ " : " ");
  CHECK(paths == ".gitattributes a/ a/b/ a/b/c.txt a/large.bin z ");
  const auto below = *repository.list(id, "a", false);
  REQUIRE(below.size() == 2);
  CHECK(below[1].lfs->sha256 == digest);
  CHECK(below[1].size == 5'000'000'000);
  CHECK(repository.entry(id, "a/b/c.txt")->size == 5);
  CHECK(repository.blob(repository.entry(id, "z")->oid) == "hello");
  CHECK_FALSE(repository.list(id, "z", false));
  CHECK_FALSE(repository.entry(id, "a/none"));
  CHECK_FALSE(
      open(false).entry(id, "a/large.bin")->lfs);  // a pointer to what it does not own is a plain file
}

TEST_CASE_METHOD(Fixture, "what a blob says is found out once, and who may read its object each time") {
  KnownBlobs known;
  const auto repository = [&](bool owns) {
    return GitRepository(
        folder.path() / "r.git", [owns](const LfsPointer&) { return owns; }, &known);
  };
  GitRepository writer = open();
  const LfsPointer pointer{digest, 5'000'000'000};
  const std::string large = writer.write_blob(pointer.text()), text = writer.write_blob("hello");
  const std::string id = commit(writer, {{}, {}, {{"large.bin", large}, {"z", text}}});
  CHECK(repository(true).entry(id, "large.bin")->size == pointer.size);
  CHECK(repository(true).entry(id, "z")->size == 5);
  for (const std::string& blob : {large, text}) {
    REQUIRE(
        std::filesystem::remove(folder.path() / "r.git" / "objects" / blob.substr(0, 2) / blob.substr(2)));
  }
  CHECK(repository(true).entry(id, "large.bin")->lfs->sha256 == digest);
  CHECK(repository(true).entry(id, "z")->size == 5);
  const auto stranger = repository(false).entry(id, "large.bin");
  CHECK_FALSE(stranger->lfs);
  CHECK(stranger->size == pointer.text().size());
  CHECK_THROWS(open().entry(id, "z"));
}

TEST_CASE_METHOD(Fixture, "deletions come before additions, and deleting what is not there changes nothing") {
  GitRepository repository = open();
  const std::string x = repository.write_blob("x");
  commit(repository, {{}, {}, {{"d/1", x}, {"d/2", x}, {"f", x}}});
  const std::string id = commit(repository, {{"f"}, {"d"}, {{"d/3", x}, {"f/g", x}}});
  std::string paths;
  const auto entries = repository.list(id, "", true);
  for (const TreeEntry& e : *entries) paths += e.path + " ";
  CHECK(paths == "d d/3 f f/g ");
  CHECK_THROWS_AS(commit(repository, {{"nope"}, {}, {}}), HttpError);
  CHECK_THROWS_AS(commit(repository, {{}, {"nope"}, {}}), HttpError);
  CHECK(repository.resolve("main") == id);
}

TEST_CASE_METHOD(Fixture, "a commit on a parent that is no longer the head is not made") {
  GitRepository repository = open();
  const std::string before = *repository.resolve("main"), x = repository.write_blob("x");
  const std::string after = commit(repository, {{}, {}, {{"a", x}}});
  CHECK_FALSE(repository.commit("refs/heads/main", before, {{}, {}, {{"b", x}}}, "late", "", "bob", false));
  CHECK(repository.resolve("main") == after);
}

TEST_CASE_METHOD(Fixture, "a revision is named in every way that the Hub knows") {
  GitRepository repository = open();
  const std::string id = commit(repository, {{}, {}, {{"a", repository.write_blob("x")}}}, "title");
  CHECK(repository.create_reference("refs/heads/feature/x", id));
  CHECK(repository.create_reference("refs/tags/v1.0", id));
  CHECK_FALSE(repository.create_reference("refs/tags/v1.0", id));
  CHECK_THROWS_AS(repository.create_reference("refs/heads/a..b", id), HttpError);
  for (const std::string& name :
       {std::string("main"), std::string("feature/x"), std::string("v1.0"), id, id.substr(0, 7),
        std::string("refs/heads/main"), std::string("refs/tags/v1.0")}) {
    CHECK(repository.resolve(name) == id);
  }
  CHECK_FALSE(repository.resolve(id.substr(0, 6)));
  std::size_t total = 0;
  const auto history = repository.commits(id, 0, 10, total);
  CHECK(total == 2);
  CHECK(history[0].title == "title");
  CHECK(history[0].author == "alice");
  CHECK(repository.delete_reference("refs/tags/v1.0"));
  CHECK_FALSE(repository.delete_reference("refs/tags/v1.0"));
}

TEST_CASE_METHOD(Fixture, "a commit is whole if a reference leads to it, or if nothing of it was removed") {
  GitRepository repository = open();
  const std::string before = *repository.resolve("main"), file = repository.write_blob("content");
  const std::string id =
      commit(repository, {{}, {}, {{"a", file}, {"b", repository.write_blob(LfsPointer{digest, 5}.text())}}});
  CHECK(repository.is_whole(id));
  CHECK(repository.is_whole(before));
  CHECK(open(false).is_whole(id));  // not looked up
  repository.delete_reference("refs/heads/main");
  CHECK(open().is_whole(id));
  CHECK_FALSE(open(false).is_whole(id));  // the object of the pointer is gone
  std::filesystem::remove(folder.path() / "r.git" / "objects" / file.substr(0, 2) / file.substr(2));
  CHECK_FALSE(open().is_whole(id));
  CHECK(open().is_whole(before));
}

TEST_CASE("only a whole pointer of version 1 is one") {
  const LfsPointer pointer{digest, 12};
  CHECK(LfsPointer::parse(pointer.text())->size == 12);
  for (const std::string& text :
       {std::string(), std::string("hello"), pointer.text() + "x", pointer.text() + "\n",
        pointer.text().substr(0, pointer.text().size() - 1)}) {
    CHECK_FALSE(LfsPointer::parse(text));
  }
}
