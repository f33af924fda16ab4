// Files of commits that are remembered.
#include "hub/registry/known_files.hpp"

#include "catch.hpp"

using namespace neuron_kernels::hub::registry;

namespace {

const RepositoryKey demo{RepositoryType::kernel, "alice/demo"};
const std::string commit(40, 'a'), other_commit(40, 'b'), path = "build/big.bin";
const LfsPointer pointer{std::string(64, 'c'), 7};

}  // namespace

TEST_CASE("known files: what was kept is found for the same repository, commit and path only") {
  KnownFiles files;
  const auto before = files.find({demo, commit, path});
  REQUIRE(!before.file);
  files.keep({demo, commit, path}, pointer, before.era);
  const auto found = files.find({demo, commit, path}).file;
  REQUIRE(found);
  CHECK(found->sha256 == pointer.sha256);
  CHECK(found->size == pointer.size);
  CHECK(!files.find({demo, other_commit, path}).file);
  CHECK(!files.find({demo, commit, "build/other.bin"}).file);
  CHECK(!files.find({{RepositoryType::model, demo.id}, commit, path}).file);
}

TEST_CASE("known files: nothing is left of a removed repository, nor comes in late") {
  KnownFiles files;
  const auto early = files.find({demo, commit, path});
  files.keep({demo, commit, path}, pointer, early.era);
  files.forget();
  CHECK(!files.find({demo, commit, path}).file);
  files.keep({demo, commit, path}, pointer, early.era);  // found before the removal
  CHECK(!files.find({demo, commit, path}).file);
}

TEST_CASE("known files: there is an end to them, and those that are asked for stay") {
  KnownFiles files;
  const auto era = files.find({demo, commit, path}).era;
  const auto nth = [](int i) { return "f" + std::to_string(i); };
  files.keep({demo, commit, path}, pointer, era);
  for (int i = 0; i < 10'000; ++i) {
    files.keep({demo, commit, nth(i)}, pointer, era);
    REQUIRE(files.find({demo, commit, path}).file);
  }
  CHECK(files.find({demo, commit, nth(9'999)}).file);
  CHECK(!files.find({demo, commit, nth(0)}).file);
}
