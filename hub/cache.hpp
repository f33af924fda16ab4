// One repository in the cache that Hugging Face's Python tools use too: blobs by digest, snapshots of
// relative links, refs, locks. Layout: section B.1 of the protocol;
// https://huggingface.co/docs/huggingface_hub/guides/manage-cache
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hub/api.hpp"
#include "hub/environment.hpp"
#include "hub/files.hpp"
#include "hub/repository.hpp"

namespace neuron_kernels::hub {

class RepoCache {
 public:
  RepoCache(const Environment& environment, const RepoId& repo);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path blobs() const { return folder_ / "blobs"; }
  std::filesystem::path blob(const std::string& digest) const { return folder_ / "blobs" / digest; }
  std::filesystem::path snapshot(const std::string& commit) const { return folder_ / "snapshots" / commit; }
  std::filesystem::path lock_path(const std::string& digest) const;

  /// The commit that a ref meant last; nothing if it was never pulled.
  std::optional<std::string> ref(const std::string& name) const;
  /// All of them, as a hub lists them: names that are versions count as tags.
  Refs refs() const;
  /// Makes names mean a commit. What cannot be written in a read-only cache stays.
  void write_refs(const std::vector<std::string>& names, const std::string& commit) const;

  /// Makes what a download needs. Errors: HubError storage, with what to do about a read-only cache.
  void prepare() const;

  /// Gives the snapshot its file `path`: a link to the blob, which is there.
  void link(const std::string& commit, const std::string& path, const std::string& digest) const;
  /// Gives the snapshot a copy of `source`, where links are impossible.
  void copy(const std::filesystem::path& source, const std::string& commit, const std::string& path) const;
  /// Moves a file just received to the blobs and links it or, without links, moves it into the snapshot.
  void place_received(const std::filesystem::path& received, const std::string& commit,
                      const std::string& path, const std::string& digest) const;
  /// Whether the snapshots are made of links. Tried out once.
  bool has_links() const;
  /// Whether links are wanted and cannot be had.
  bool links_fail() const { return links_wanted_ && !has_links(); }

 private:
  std::filesystem::path cache_, folder_;
  std::string name_;
  bool links_wanted_;
  mutable std::optional<bool> links_work_;
};

/// A lock on one blob that other clients honour. It saves work, no more: where it cannot be had everything
/// stays right, because each process writes to a name of its own.
class BlobLock {
 public:
  enum class State {
    held,
    busy,         // another process downloads that blob
    unavailable,  // this file system has no locks, or the folder is read-only
  };
  explicit BlobLock(const std::filesystem::path& path);
  State state() const { return state_; }

 private:
  Descriptor file_;
  State state_ = State::unavailable;
};

}  // namespace neuron_kernels::hub
