// Backups of a registry: one tar file with everything but what can be sent again, made while the server runs.
//
// First member backup.json, last member SHA256SUMS with a line for each file in between: whoever unpacks it can
// check it by `sha256sum -c`, and an archive that was cut off has none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace neuron_kernels::hub::registry {

struct BackedUp {
  std::size_t repositories = 0;
  std::size_t objects = 0;  // of the store
  std::uint64_t bytes = 0;  // of the archive, or of the content of what was restored
};

/// Writes `file`, which is there whole, with permissions 0600 and synced, or not at all. Commits that were
/// acknowledged before are in it; of later ones some are, whole.
/// errors: HubError conflict if `file` exists or another process does housekeeping, not_found if there is no
///         registry, integrity if something in it is damaged or missing, storage
BackedUp back_up(const std::filesystem::path& root, const std::filesystem::path& file);

/// Makes `root`, which is absent or empty, the registry of a backup, after every digest and every git object was
/// checked. There whole and synced when this returns, or not at all.
/// errors: HubError conflict if `root` is not empty, integrity if the backup is not whole, storage
BackedUp restore(const std::filesystem::path& file, const std::filesystem::path& root);

// Between the two.
inline constexpr const char* backup_head = "backup.json";
inline constexpr const char* backup_sums = "SHA256SUMS";
inline constexpr int backup_schema = 1;

}  // namespace neuron_kernels::hub::registry
