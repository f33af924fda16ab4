// Files by SHA-256 below one folder, and which repositories own them.
//
// A repository owns an object by a hard link in its own folder (where git-lfs keeps objects, too): an object
// that no repository owns has one link, and deleting a repository gives its objects up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hub/digest.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::hub::registry {

class Objects {
 public:
  /// root: objects/ and tmp/ lie in it. Errors: HubError storage.
  explicit Objects(const std::filesystem::path& root);

  std::filesystem::path path(const std::string& sha256) const;
  std::optional<std::uint64_t> size(const std::string& sha256) const;

  /// Takes content in parts; keep() makes it an object once its digest is known.
  class Incoming {
   public:
    explicit Incoming(const Objects& objects);
    void write(Bytes data);
    /// The content of a file, piece by piece. Errors: HubError storage, not_found.
    void append(const std::filesystem::path& file);
    std::uint64_t size() const { return size_; }
    /// Ends the content; its SHA-256.
    const std::string& finish();
    /// Makes it an object that the repository in `folder` owns. Synced and in its place when this returns.
    /// errors: HubError storage; not_found if the repository was deleted meanwhile
    void keep_for(const std::filesystem::path& folder);
    /// Puts it under another name that is not its digest's, synced.
    void keep_as(const std::filesystem::path& target);
    int fd() const { return file_.fd(); }
    const std::filesystem::path& path() const { return file_.path(); }

   private:
    const Objects& objects_;
    TemporaryFile file_;
    Hasher hasher_ = Hasher::sha256();
    std::string sha256_;
    std::uint64_t size_ = 0;
  };

  bool owned_by(const std::string& sha256, const std::filesystem::path& folder) const;
  /// Its size if the repository in `folder` owns it.
  std::optional<std::uint64_t> owned_size(const std::string& sha256,
                                          const std::filesystem::path& folder) const;
  /// The same, and from now on it counts as just uploaded: housekeeping leaves it to the commit that will name
  /// it.
  std::optional<std::uint64_t> claim(const std::string& sha256, const std::filesystem::path& folder) const;

  /// The files of all objects, and a repository's links to those that it owns. Their names are the digests.
  std::vector<std::filesystem::path> all() const;
  static std::vector<std::filesystem::path> owned_links(const std::filesystem::path& folder);

 private:
  static std::filesystem::path owned_path(const std::string& sha256, const std::filesystem::path& folder);
  void give(const std::string& sha256, const std::filesystem::path& folder) const;

  std::filesystem::path root_, objects_, temporary_;
};

}  // namespace neuron_kernels::hub::registry
