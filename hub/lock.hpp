// kernel.lock: which version, commit and bytes each dependency of a package was resolved to.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hub/manifest.hpp"
#include "hub/resolve.hpp"

namespace neuron_kernels::hub {

struct LockedPackage {
  std::string repository;
  Version version;
  std::string commit;                        // 40 hex digits
  std::map<std::string, std::string> files;  // by path in the repository, as a listing has them:
                                             // "sha256:<64 hex>" (LFS) or "git-sha1:<40 hex>" (regular)
  std::vector<Dependency> dependencies;
};

/// How strictly the lock file and the network are treated, as in cargo.
struct LockPolicy {
  bool locked = false;   // --locked: kernel.lock must be there and current; it is never changed
  bool offline = false;  // --offline: no request; what is not in the cache does not exist
  bool upgrade = false;  // --upgrade: the newest versions, whatever is locked; --locked wins
  static constexpr LockPolicy frozen() { return {true, true}; }  // --frozen: both
};

struct Lock {
  static constexpr std::string_view file_name = "kernel.lock";

  std::vector<LockedPackage> packages;  // by repository

  /// Errors: HubError usage naming file and entry, for any text at all.
  static Lock parse(std::string_view text, const std::string& file = std::string(file_name));
  /// Nothing if `folder` has none.
  static std::optional<Lock> read(const std::filesystem::path& folder);

  /// JSON with sorted keys: the same packages always give the same bytes.
  std::string text() const;
  /// Whole or absent; untouched if it holds the same already. Returns whether it was written.
  bool write(const std::filesystem::path& folder) const;

  const LockedPackage* find(std::string_view repository) const;
  Resolution versions() const;

  /// Why this lock is not one for `wanted`: a package that is missing, outside its range, or no longer
  /// needed. Empty if it is current.
  std::string outdated(const std::vector<Dependency>& wanted) const;
};

/// The lock to use as it is, or nothing if versions are to be resolved (and kernel.lock written).
/// errors: with policy.locked, HubError usage if kernel.lock is missing or not current
std::optional<Lock> current_lock(const std::filesystem::path& folder, const Manifest& manifest,
                                 const LockPolicy& policy);

}  // namespace neuron_kernels::hub
