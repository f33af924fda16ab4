// Files that are whole or absent: a write goes to a temporary name, is synced, and is renamed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "hub/digest.hpp"

namespace neuron_kernels::hub {

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

enum class Sync : bool { no, yes };  // whether a write is on the disk when the call returns

/// A new file in the folder of `target`, under a private name, removed unless it is committed.
/// errors: HubError storage, with path and reason (disk full, read-only, permission)
class TemporaryFile {
 public:
  /// mode: permissions before the umask.
  explicit TemporaryFile(const std::filesystem::path& target, unsigned mode = 0666);
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  int fd() const { return file_.get(); }
  const std::filesystem::path& path() const { return path_; }
  void write(Bytes data);
  /// Renames it to `target`, replacing what is there; with Sync::yes file and folder are synced first.
  void commit(const std::filesystem::path& target, Sync sync);

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

/// To an open file; path: for messages. Errors: HubError storage.
void write_all(int fd, Bytes data, const std::filesystem::path& path);

/// The whole content. Errors: HubError storage (not_found if there is no such file).
std::string read_file(const std::filesystem::path& path);

/// `bytes` of an open file from `offset` on. Errors: HubError storage, also if it is shorter.
std::string read_at(int fd, std::uint64_t offset, std::size_t bytes);

/// Replaces the content of `path` at once, folders made as needed.
void write_file(const std::filesystem::path& path, std::string_view content, unsigned mode = 0666,
                Sync sync = Sync::no);

/// Makes a folder and those above it. Errors: HubError storage.
void make_folders(const std::filesystem::path& path);

void sync_file(int fd, const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& path);

/// Throws HubError integrity unless `path`, which a server or a manifest named, stays inside its folder:
/// relative, no empty, "." or ".." part, no backslash, drive letter or control character.
void require_safe_path(std::string_view path, std::string_view source);

}  // namespace neuron_kernels::hub
