// Tar archives, of files and of hard links to files before them (libarchive; the pax format).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hub/digest.hpp"
#include "hub/files.hpp"

struct archive;

namespace neuron_kernels::hub::registry {

class TarWriter {
 public:
  /// Appends to an open file. path: for messages. Errors, of all members: HubError storage.
  TarWriter(int fd, std::filesystem::path path);

  /// Returns the SHA-256 of its content.
  std::string add_file(const std::string& name, const std::filesystem::path& source);
  void add_text(const std::string& name, const std::string& content);
  /// A second name of the member `target`.
  void add_link(const std::string& name, const std::string& target);
  /// Everything is in the file when this returns, though not synced.
  void finish();

 private:
  void begin(const std::string& name, unsigned mode, std::uint64_t bytes);
  void write(Bytes data);
  void check(long result) const;

  struct Free {
    void operator()(archive* a) const;
  };
  std::filesystem::path path_;
  std::unique_ptr<archive, Free> archive_;
};

struct TarMember {
  std::string name;
  std::string link_target;  // of a hard link; it has no content then
  unsigned mode = 0;
};

class TarReader {
 public:
  /// Errors, of all members: HubError integrity for what is no archive, not whole, or neither file nor link;
  /// storage, not_found.
  explicit TarReader(std::filesystem::path path);

  std::optional<TarMember> next();
  /// The content of the member that next() gave, in pieces.
  void read(const std::function<void(Bytes)>& take);
  /// Throws HubError integrity: the archive is not a whole backup, for that reason.
  [[noreturn]] void damaged(const std::string& reason) const;

 private:
  void check(long result) const;

  struct Free {
    void operator()(archive* a) const;
  };
  std::filesystem::path path_;
  Descriptor file_;
  std::unique_ptr<archive, Free> archive_;
};

}  // namespace neuron_kernels::hub::registry
