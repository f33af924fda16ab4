// One bare git repository through libgit2: revisions, listings, and commits that are on the disk when made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hub/registry/known_blobs.hpp"
#include "hub/registry/lfs_pointer.hpp"

struct git_repository;
struct git_tree_entry;

namespace neuron_kernels::hub::registry {

struct TreeEntry {
  std::string path;
  bool folder = false;
  std::string oid;                // of the git object
  std::uint64_t size = 0;         // of the content, whichever way it is stored
  std::optional<LfsPointer> lfs;  // if it is kept outside git
};

struct CommitInfo {
  std::string id, title, message, author, date;  // date: ISO 8601 UTC with milliseconds
};

struct Reference {
  std::string name, commit;  // without "refs/heads/" and the like
};

/// What one commit does to a branch: deletions first, then files; a file is a blob that is there already.
struct Changes {
  std::vector<std::string> deleted_files, deleted_folders;
  std::map<std::string, std::string> files;  // path -> blob id
};

class GitRepository {
 public:
  /// A new one with an empty first commit on `main`. Errors: HubError storage.
  static void create(const std::filesystem::path& folder, const std::string& author);
  /// owns: whether a pointer's object may be read through this repository; else it is a plain file.
  /// known: shared by all repositories; null: each blob is looked at again.
  GitRepository(const std::filesystem::path& folder, std::function<bool(const LfsPointer&)> owns,
                KnownBlobs* known = nullptr);
  ~GitRepository();
  GitRepository(const GitRepository&) = delete;
  GitRepository& operator=(const GitRepository&) = delete;

  std::vector<Reference> branches() const { return references("refs/heads/"); }
  std::vector<Reference> tags() const { return references("refs/tags/"); }
  std::vector<Reference> pull_requests() const { return references("refs/pr/"); }

  /// The commit of a branch, tag, full or short (7 digits) commit, or refs/heads/X, refs/tags/X, refs/pr/N.
  std::optional<std::string> resolve(const std::string& revision) const;
  std::optional<std::string> reference(const std::string& full_name) const;

  /// Entries below `folder` ("": all), sorted by path. Nothing if there is no such folder.
  std::optional<std::vector<TreeEntry>> list(const std::string& commit, const std::string& folder,
                                             bool recursive) const;
  std::optional<TreeEntry> entry(const std::string& commit, const std::string& path) const;
  std::string blob(const std::string& oid) const;
  /// Those of `paths` that the .gitattributes of `commit` hand to git-lfs.
  std::set<std::string> lfs_paths(const std::string& commit, const std::vector<std::string>& paths) const;
  /// Whether there is such an object of git.
  bool has(const std::string& oid) const;
  /// Whether all that a commit leads to is there. Of a commit that no reference leads to housekeeping may have
  /// removed a part.
  bool is_whole(const std::string& commit) const;
  /// Newest first, at most `most`, after skipping `skip`; total counts all.
  std::vector<CommitInfo> commits(const std::string& from, std::size_t skip, std::size_t most,
                                  std::size_t& total) const;
  CommitInfo commit_info(const std::string& id) const;

  std::string write_blob(std::string_view content);
  /// A commit on `full_name` (refs/heads/main) whose parent is `parent`; nothing if the reference moved on
  /// meanwhile. Its .gitattributes hand the pointers among the files to git-lfs. errors: HttpError 404 for a
  /// deletion of what is not there, 400 for paths that git does not take
  std::optional<std::string> commit(const std::string& full_name, const std::string& parent,
                                    const Changes& changes, const std::string& title,
                                    const std::string& description, const std::string& author,
                                    bool create_reference);
  /// False if it exists.
  bool create_reference(const std::string& full_name, const std::string& commit);
  /// False if there is none.
  bool delete_reference(const std::string& full_name);
  /// An empty commit without a parent.
  std::string empty_commit(const std::string& author);

 private:
  std::vector<Reference> references(const std::string& prefix) const;
  bool is_referenced(const std::string& commit) const;
  TreeEntry describe(const git_tree_entry* entry, std::string path) const;

  git_repository* repository_ = nullptr;
  std::function<bool(const LfsPointer&)> owns_;
  KnownBlobs* known_ = nullptr;
};

/// "2026-01-31T12:00:00.000Z"
std::string iso_date(std::int64_t unix_s);

}  // namespace neuron_kernels::hub::registry
