// What the cache holds, over all repositories; and taking it out again without touching what others still
// use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hub/environment.hpp"
#include "hub/repository.hpp"

namespace neuron_kernels::hub {

struct CachedRevision {
  std::string commit;
  std::vector<std::string> refs, variants;
  std::size_t files = 0;
  std::uint64_t bytes = 0;      // of its files, those shared with other revisions included
  std::int64_t modified_s = 0;  // Unix time of the last pull
};

struct CachedRepo {
  RepoId repo;
  std::filesystem::path folder;
  std::uint64_t disk_bytes = 0;           // of blobs and partial files
  std::vector<CachedRevision> revisions;  // newest first
};

/// By name. Folders that are no repository are passed over.
std::vector<CachedRepo> scan_cache(const Environment& environment);

struct Removed {
  std::vector<std::string> commits;
  std::size_t files = 0;  // blobs and leftovers
  std::uint64_t bytes = 0;
};

enum class DryRun : bool { no, yes };

/// Takes out the revisions in `commits`, the refs to them, and the blobs that no other revision has; the
/// folder with the last one. Errors: HubError storage.
Removed remove_revisions(const CachedRepo& repo, const Environment& environment,
                         const std::vector<std::string>& commits, DryRun dry_run);

/// Takes out revisions that no ref names, blobs that no revision has, and what dead processes left.
Removed prune(const CachedRepo& repo, const Environment& environment, DryRun dry_run);

}  // namespace neuron_kernels::hub
