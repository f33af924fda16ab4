// The cache's layout, its refs, and snapshots that were altered.
#include <filesystem>
#include <fstream>
#include <string>

#include "catch.hpp"
#include "hub/cache.hpp"
#include "hub/cache_index.hpp"
#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/snapshot_check.hpp"
#include "hub/snapshot_record.hpp"
#include "temporary_folder.hpp"

namespace hub = neuron_kernels::hub;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  test::TemporaryFolder folder;
  hub::Environment environment;
  hub::RepoId repo{.type = hub::RepoType::kernel, .owner = "org", .name = "name"};
  const std::string commit = std::string(40, 'c');

  Fixture() { environment.cache = folder.path(); }

  hub::TreeEntry add(const hub::RepoCache& cache, const std::string& path, const std::string& content) const {
    hub::TreeEntry entry;
    entry.path = path;
    entry.size = content.size();
    entry.oid = hub::git_blob_sha1_hex(content);
    hub::write_file(cache.blobs() / "received", content);
    cache.place_received(cache.blobs() / "received", commit, path, entry.blob());
    return entry;
  }
};

}  // namespace

TEST_CASE("snapshots hold relative links to blobs") {
  const Fixture f;
  const hub::RepoCache cache(f.environment, f.repo);
  cache.prepare();
  const hub::TreeEntry entry = f.add(cache, "build/x/a.py", "text");
  const fs::path file = f.folder.path() / "kernels--org--name/snapshots" / f.commit / "build/x/a.py";
  CHECK(fs::read_symlink(file) == "../../../../blobs/" + entry.oid);
  CHECK(hub::read_file(file) == "text");
  CHECK(fs::exists(f.folder.path() / "CACHEDIR.TAG"));
}

TEST_CASE("without links snapshots hold the files") {
  Fixture f;
  f.environment.symlinks = false;
  const hub::RepoCache cache(f.environment, f.repo);
  cache.prepare();
  f.add(cache, "a.py", "text");
  CHECK(fs::is_regular_file(fs::symlink_status(cache.snapshot(f.commit) / "a.py")));
  CHECK(fs::is_empty(cache.blobs()));
}

TEST_CASE("refs may have slashes and stay in their folder") {
  const Fixture f;
  const hub::RepoCache cache(f.environment, f.repo);
  cache.write_refs({"v1", "feature/x", "1.2.0"}, f.commit);
  CHECK(cache.ref("feature/x") == f.commit);
  CHECK_FALSE(cache.ref("v2"));
  CHECK(cache.refs().tags.size() == 1);
  CHECK(cache.refs().branches.size() == 2);
  CHECK_THROWS_AS(cache.write_refs({"../../escape"}, f.commit), hub::HubError);
}

TEST_CASE("a lock is busy for a second holder only") {
  const test::TemporaryFolder folder;
  const fs::path path = folder.path() / "x.lock";
  {
    const hub::BlobLock first(path);
    CHECK(first.state() == hub::BlobLock::State::held);
    CHECK(hub::BlobLock(path).state() == hub::BlobLock::State::busy);
  }
  CHECK(hub::BlobLock(path).state() == hub::BlobLock::State::held);
  CHECK(hub::BlobLock(folder.path() / "none/x.lock").state() == hub::BlobLock::State::unavailable);
}

TEST_CASE("a snapshot record notices what changed") {
  const Fixture f;
  const hub::RepoCache cache(f.environment, f.repo);
  cache.prepare();
  const hub::TreeEntry entry = f.add(cache, "build/x/a.py", "text");
  using State = hub::SnapshotRecord::State;
  {
    hub::SnapshotRecord record(cache, f.commit);
    CHECK_FALSE(record.has_tree());
    record.set_tree({entry});
    CHECK(record.check(entry) == State::ready);
    record.mark_variant_checked("x");
    record.save();
  }
  hub::SnapshotRecord record(cache, f.commit);
  REQUIRE(record.has_tree());
  CHECK(record.is_variant_checked("x"));
  CHECK(record.check(entry) == State::ready);
  CHECK(hub::check_snapshot(cache, f.commit, record).good());
  std::ofstream(cache.blob(entry.oid)) << "evil";  // the same size
  CHECK(record.check(entry) == State::corrupt);
  CHECK(hub::check_snapshot(cache, f.commit, record).damaged.size() == 1);
  fs::remove(cache.blob(entry.oid));
  CHECK(record.check(entry) == State::missing);
  std::ofstream(f.folder.path() / "kernels--org--name/.pulled" / (f.commit + ".json")) << "{damaged";
  CHECK_FALSE(hub::SnapshotRecord(cache, f.commit).has_tree());
}

TEST_CASE("removing a revision leaves what others share") {
  const Fixture f;
  const hub::RepoCache cache(f.environment, f.repo);
  cache.prepare();
  const hub::TreeEntry shared = f.add(cache, "a.py", "shared");
  const hub::TreeEntry own = f.add(cache, "b.py", "own");
  const std::string other(40, 'd');
  cache.link(other, "a.py", shared.blob());
  cache.write_refs({"v1"}, f.commit);
  cache.write_refs({"v2"}, other);
  const auto before = hub::scan_cache(f.environment);
  REQUIRE(before.size() == 1);
  CHECK(before[0].revisions.size() == 2);
  const auto removed = hub::remove_revisions(before[0], f.environment, {f.commit}, hub::DryRun::no);
  CHECK(removed.files == 1);
  CHECK(removed.bytes == 3);
  CHECK(fs::exists(cache.blob(shared.blob())));
  CHECK_FALSE(fs::exists(cache.blob(own.blob())));
  CHECK_FALSE(cache.ref("v1"));
  CHECK(cache.ref("v2") == other);
}
