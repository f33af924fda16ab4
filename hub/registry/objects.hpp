// Files by SHA-256 below one folder, and which repositories own them.
//
// A repository owns an object by a hard link in its own folder (where git-lfs keeps objects, too): an object
// that no repository owns has one link, and deleting a repository gives its objects up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

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
    /// Synced and in its place when this returns. After finish().
    void keep();
    /// The same under another name that is not its digest's.
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

  /// Makes the repository in `folder` an owner. Synced when this returns.
  void give(const std::string& sha256, const std::filesystem::path& folder) const;
  bool owned_by(const std::string& sha256, const std::filesystem::path& folder) const;

  /// Deletes objects that nobody owns and that are older than `age_s`, and temporary files of that age; bytes
  /// freed.
  std::uint64_t collect(std::int64_t age_s) const;

 private:
  static std::filesystem::path owned_path(const std::string& sha256, const std::filesystem::path& folder);

  std::filesystem::path objects_, temporary_;
};

}  // namespace neuron_kernels::hub::registry
