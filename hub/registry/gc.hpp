// Housekeeping of a registry: packs git objects, and removes what no reference of any repository leads to.
//
// Safe while the server runs: what may still be named is left for a grace period, and everything is removed
// under the lock of the store after a last look at the references.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace neuron_kernels::hub::registry {

struct GcOptions {
  std::int64_t grace_s = 24 * 3600;  // what was sent or named more recently stays; longer than tickets live
  bool dry_run = false;              // only say what would be done: nothing is written, no lock is taken
};

struct Collected {
  std::size_t packed = 0;       // git objects that went from files of their own into a pack
  std::size_t packs = 0;        // that others replace
  std::size_t git_objects = 0;  // that no reference leads to
  std::size_t objects = 0;      // of the store, that no commit names or whose repositories were deleted
  std::size_t xorbs = 0;        // that no client remembers any more
  std::size_t leftovers = 0;    // uploads, locks and files that something left unfinished
  std::uint64_t bytes = 0;      // freed, new packs deducted
  std::vector<std::string>
      problems;  // repositories that cannot be read, and why; nothing of them was removed
};

/// errors: HubError usage for a grace period that is too short, not_found if there is no registry, conflict if
///         another process does housekeeping, storage
Collected collect_garbage(const std::filesystem::path& root, const GcOptions& options);

}  // namespace neuron_kernels::hub::registry
