// What this client remembers of a commit in the cache: its file tree, which never changes, and which files of
// the snapshot had their digest checked and are unchanged since. So a pull with nothing to do asks no tree
// and reads no file.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "hub/api.hpp"
#include "hub/cache.hpp"

namespace neuron_kernels::hub {

class SnapshotRecord {
 public:
  /// Reads the record of a commit; has_tree() is false if there is none, or it cannot be used.
  SnapshotRecord(const RepoCache& cache, std::string commit);

  bool has_tree() const { return has_tree_; }
  const std::vector<TreeEntry>& tree() const { return tree_; }  // files only
  void set_tree(const std::vector<TreeEntry>& entries);
  /// Takes what lies in the snapshot as its tree, as another client left it. Not saved: it may be a part.
  void set_tree_from_snapshot();

  enum class State { ready, missing, corrupt };
  /// Whether the file is in the snapshot with its size and digest. Hashes it unless it is known and
  /// unchanged.
  State check(const TreeEntry& file);
  /// The file was checked just now and lies in the snapshot.
  void mark_checked(const TreeEntry& file);

  bool is_variant_checked(const std::string& variant) const;
  void mark_variant_checked(const std::string& variant);

  /// Writes it if anything changed. A read-only cache is no error: the next pull hashes again.
  void save();

 private:
  void load();

  const RepoCache& cache_;
  std::string commit_;
  std::filesystem::path path_;
  bool has_tree_ = false, changed_ = false, is_part_ = false;
  std::vector<TreeEntry> tree_;
  std::map<std::string, std::int64_t> checked_;  // path in the snapshot: its time of modification in ns
  std::vector<std::string> variants_;            // whose metadata.json agrees with their files
};

/// The digest of a file as the hub has it: SHA-256, or git's SHA-1.
std::string digest_of(const TreeEntry& entry, const std::filesystem::path& file);

}  // namespace neuron_kernels::hub
