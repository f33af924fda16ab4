// The body of a commit: one JSON document a line, files as base64 that is made while it is sent.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "hub/local_file.hpp"

namespace neuron_kernels::hub {

/// Memory use does not depend on the size of the files.
class NdjsonBody {
 public:
  void add(const nlohmann::json& line);
  /// {"key":"file","value":{"content":...,"path":...,"encoding":"base64"}}; `file` must outlive the body.
  void add_file(const LocalFile& file);

  Body body() const;

 private:
  struct Piece {
    std::string text;                 // if `file` is null
    const LocalFile* file = nullptr;  // base64 of its content
    std::uint64_t begin = 0, size = 0;
  };
  void add_piece(std::string text, const LocalFile* file);
  static std::size_t read(const Piece& piece, std::uint64_t offset, std::span<std::byte> dst);

  std::vector<Piece> pieces_;
  std::uint64_t size_ = 0;
};

}  // namespace neuron_kernels::hub
