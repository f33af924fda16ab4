// A file that is to be published: its path in the repository, its bytes on disk or in memory, its digests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "hub/http.hpp"

namespace neuron_kernels::hub {

struct LocalFile {
  std::string path;              // in the repository
  std::filesystem::path source;  // on disk; empty: `content` is the file
  std::string content;
  std::uint64_t size = 0;
  std::string sha256, git_sha1;  // hex

  /// Reads the file once for each digest. Errors: HubError storage if it cannot be read.
  static LocalFile on_disk(std::string path, const std::filesystem::path& source);
  static LocalFile in_memory(std::string path, std::string content);

  /// Bytes from `offset` on, at most `count`. Errors: HubError storage; integrity if it has become shorter.
  std::string read(std::uint64_t offset, std::uint64_t count) const;
  /// The part of it as a request's body.
  Body body(std::uint64_t offset, std::uint64_t count) const;
};

}  // namespace neuron_kernels::hub
