#include "hub/ndjson_body.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "hub/digest.hpp"

namespace neuron_kernels::hub {

void NdjsonBody::add(const nlohmann::json& line) { add_piece(line.dump() + "\n", nullptr); }

void NdjsonBody::add_file(const LocalFile& file) {
  add_piece(R"({"key":"file","value":{"content":")", nullptr);
  add_piece("", &file);
  add_piece(R"(","path":)" + nlohmann::json(file.path).dump() + ",\"encoding\":\"base64\"}}\n", nullptr);
}

void NdjsonBody::add_piece(std::string text, const LocalFile* file) {
  const std::uint64_t size = file != nullptr ? (file->size + 2) / 3 * 4 : text.size();
  pieces_.push_back({std::move(text), file, size_, size});
  size_ += size;
}

Body NdjsonBody::body() const {
  Body body;
  body.size = size_;
  body.type = "application/x-ndjson";
  body.read = [pieces = std::make_shared<const std::vector<Piece>>(pieces_)](std::uint64_t offset,
                                                                             std::span<std::byte> dst) {
    auto piece = std::upper_bound(pieces->begin(), pieces->end(), offset,
                                  [](std::uint64_t at, const Piece& p) { return at < p.begin + p.size; });
    return piece == pieces->end() ? std::size_t{0} : read(*piece, offset - piece->begin, dst);
  };
  return body;
}

std::size_t NdjsonBody::read(const Piece& piece, std::uint64_t offset, std::span<std::byte> dst) {
  std::string made;
  const char* text = piece.text.data() + offset;
  std::size_t size = static_cast<std::size_t>(piece.size - offset);
  if (piece.file != nullptr) {  // whole groups: 3 bytes are 4 characters
    made = to_base64(piece.file->read(offset / 4 * 3, dst.size() / 4 * 3 + 3));
    text = made.data() + offset % 4;
    size = made.size() - offset % 4;
  }
  size = std::min(size, dst.size());
  std::memcpy(dst.data(), text, size);
  return size;
}

}  // namespace neuron_kernels::hub
