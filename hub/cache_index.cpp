#include "hub/cache_index.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>

#include "hub/cache.hpp"
#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/partial.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

/// "kernels--owner--name"
std::optional<RepoId> repo_of_folder(const std::string& name) {
  for (const RepoType type : {RepoType::kernel, RepoType::model, RepoType::dataset}) {
    const std::string prefix = std::string(name_of(type)) + "s--";
    if (!name.starts_with(prefix)) continue;
    const std::size_t separator = name.find("--", prefix.size());
    if (separator == name.npos) return {};
    return RepoId{.type = type,
                  .owner = name.substr(prefix.size(), separator - prefix.size()),
                  .name = name.substr(separator + 2)};
  }
  return {};
}

/// Calls `visit(path)` for all that lies below `folder`, or nothing if it is not there.
template <class Visit>
void walk(const fs::path& folder, Visit visit) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    visit(entry->path());
  }
}

bool is_file(const fs::path& path) {
  std::error_code broken;
  return fs::is_regular_file(path, broken);
}

CachedRevision scan_revision(const fs::path& folder, const Refs& refs) {
  CachedRevision revision{.commit = folder.filename().string(), .refs = {}, .variants = {}};
  struct stat status {};
  if (::stat(folder.c_str(), &status) == 0) revision.modified_s = status.st_mtim.tv_sec;
  walk(folder, [&](const fs::path& path) {
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    ++revision.files;
    revision.bytes += static_cast<std::uint64_t>(status.st_size);
  });
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "build", error)) {
    revision.variants.push_back(entry.path().filename().string());
  }
  std::sort(revision.variants.begin(), revision.variants.end());
  for (const auto* list : {&refs.branches, &refs.tags}) {
    for (const Ref& ref : *list) {
      if (ref.commit == revision.commit) revision.refs.push_back(ref.name);
    }
  }
  std::sort(revision.refs.begin(), revision.refs.end());
  return revision;
}

std::set<std::string> blobs_of(const fs::path& snapshot) {
  std::set<std::string> blobs;
  walk(snapshot, [&](const fs::path& path) {
    std::error_code no_link;
    const fs::path target = fs::read_symlink(path, no_link);
    if (!no_link) blobs.insert(target.filename().string());
  });
  return blobs;
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) {
    throw HubError(ErrorKind::storage, "cannot remove " + path.string() + ": " + error.message(),
                   "check who may write there");
  }
}

void remove_refs(const fs::path& folder, const std::vector<std::string>& refs) {
  for (const std::string& ref : refs) remove_tree(folder / "refs" / ref);
}

/// Blobs that no snapshot but those in `leaving` has.
void remove_unused_blobs(const CachedRepo& repo, const RepoCache& cache, const std::set<std::string>& leaving,
                         DryRun dry_run, Removed& removed) {
  std::set<std::string> used;
  for (const CachedRevision& revision : repo.revisions) {
    if (leaving.contains(revision.commit)) continue;
    used.merge(blobs_of(cache.snapshot(revision.commit)));
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cache.blobs(), error)) {
    const std::string name = entry.path().filename().string();
    if (used.contains(name) || !(is_hex(name, 40) || is_hex(name, 64))) continue;
    std::error_code gone;
    const std::uint64_t bytes = entry.file_size(gone);
    if (dry_run == DryRun::no) {
      const BlobLock lock(cache.lock_path(name));
      if (lock.state() == BlobLock::State::busy) continue;  // on its way into a snapshot
      remove_tree(entry.path());
    }
    ++removed.files;
    removed.bytes += bytes;
  }
}

/// Whether a process that lives writes to the blobs.
bool is_downloading(const RepoCache& cache) {
  std::size_t partials = 0, dead = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cache.blobs(), error)) {
    partials += entry.path().extension() == ".incomplete" ? 1 : 0;
  }
  for (const Leftover& leftover : find_leftovers(cache.blobs())) {
    dead += leftover.path.extension() == ".incomplete" ? 1 : 0;
  }
  return partials > dead;
}

}  // namespace

std::vector<CachedRepo> scan_cache(const Environment& environment) {
  std::vector<CachedRepo> repos;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(environment.cache, error)) {
    const auto repo = repo_of_folder(entry.path().filename().string());
    if (!repo) continue;
    CachedRepo found{.repo = *repo, .folder = entry.path(), .revisions = {}};
    const Refs refs = RepoCache(environment, *repo).refs();
    std::error_code none;
    for (const auto& snapshot : fs::directory_iterator(entry.path() / "snapshots", none)) {
      if (is_hex(snapshot.path().filename().string(), 40)) {
        found.revisions.push_back(scan_revision(snapshot.path(), refs));
      }
    }
    std::sort(found.revisions.begin(), found.revisions.end(),
              [](const auto& a, const auto& b) { return a.modified_s > b.modified_s; });
    for (const char* folder : {"blobs", "snapshots"}) {
      walk(entry.path() / folder, [&](const fs::path& path) {
        struct stat status {};
        if (::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
          found.disk_bytes += static_cast<std::uint64_t>(status.st_size);
        }
      });
    }
    repos.push_back(std::move(found));
  }
  std::sort(repos.begin(), repos.end(),
            [](const CachedRepo& a, const CachedRepo& b) { return a.folder < b.folder; });
  return repos;
}

Removed remove_revisions(const CachedRepo& repo, const Environment& environment,
                         const std::vector<std::string>& commits, DryRun dry_run) {
  const RepoCache cache(environment, repo.repo);
  const std::set<std::string> leaving(commits.begin(), commits.end());
  Removed removed{.commits = commits};
  if (!commits.empty() && leaving.size() == repo.revisions.size()) {
    walk(repo.folder / "blobs", [&](const fs::path& path) { removed.files += is_file(path) ? 1 : 0; });
    removed.bytes = repo.disk_bytes;
    if (dry_run == DryRun::yes) return removed;
    remove_tree(repo.folder);
    remove_tree(environment.cache / ".locks" / repo.repo.cache_folder());
    return removed;
  }
  if (dry_run == DryRun::no) {
    for (const CachedRevision& revision : repo.revisions) {
      if (!leaving.contains(revision.commit)) continue;
      remove_refs(repo.folder, revision.refs);
      for (const char* record : {".pulled", "trees"})
        remove_tree(repo.folder / record / (revision.commit + ".json"));
      remove_tree(repo.folder / ".no_exist" / revision.commit);
      remove_tree(cache.snapshot(revision.commit));
    }
  }
  remove_unused_blobs(repo, cache, leaving, dry_run, removed);
  return removed;
}

Removed prune(const CachedRepo& repo, const Environment& environment, DryRun dry_run) {
  std::vector<std::string> detached;
  for (const CachedRevision& revision : repo.revisions) {
    if (revision.refs.empty()) detached.push_back(revision.commit);
  }
  const RepoCache cache(environment, repo.repo);
  if (is_downloading(cache)) return {};  // its revision has no ref yet
  Removed removed;
  for (const Leftover& leftover : find_leftovers(cache.blobs())) {
    ++removed.files;
    removed.bytes += leftover.size;
    if (dry_run == DryRun::no) remove_tree(leftover.path);
  }
  const Removed rest = remove_revisions(repo, environment, detached, dry_run);
  removed.commits = rest.commits;
  removed.files += rest.files;
  removed.bytes += rest.bytes;
  return removed;
}

}  // namespace neuron_kernels::hub
