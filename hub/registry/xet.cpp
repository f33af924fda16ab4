#include "hub/registry/xet.hpp"

#include <lz4frame.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "hub/error.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::hub::registry {

namespace {

[[noreturn]] void bad(const std::string& what, std::size_t offset) {
  throw HubError(ErrorKind::integrity, what + " at byte " + std::to_string(offset));
}

/// Little-endian numbers at a place that must exist.
class Cursor {
 public:
  Cursor(std::string_view data, const char* what) : data_(data), what_(what) {}

  std::string_view take(std::size_t n) {
    if (n > data_.size() - at_) bad(std::string(what_) + " ends", data_.size());
    at_ += n;
    return data_.substr(at_ - n, n);
  }
  std::uint64_t number(std::size_t bytes) {
    const std::string_view raw = take(bytes);
    std::uint64_t value = 0;
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    return value;
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::size_t at() const { return at_; }
  std::size_t left() const { return data_.size() - at_; }
  std::string_view rest() const { return data_.substr(at_); }

 private:
  std::string_view data_;
  const char* what_;
  std::size_t at_ = 0;
};

std::string unpack_lz4(std::string_view packed, std::size_t bytes) {
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) != 0U) {
    throw HubError(ErrorKind::failed, "LZ4 cannot start");
  }
  const std::unique_ptr<LZ4F_dctx, LZ4F_errorCode_t (*)(LZ4F_dctx*)> held(context,
                                                                          &LZ4F_freeDecompressionContext);
  std::string content(bytes + 1, '\0');  // one more: a frame that is too long shows
  std::size_t written = 0;
  while (!packed.empty()) {
    std::size_t room = content.size() - written, taken = packed.size();
    const std::size_t result =
        LZ4F_decompress(context, content.data() + written, &room, packed.data(), &taken, nullptr);
    if (LZ4F_isError(result) != 0U) {
      throw HubError(ErrorKind::integrity,
                     std::string("a chunk is not an LZ4 frame: ") + LZ4F_getErrorName(result));
    }
    written += room;
    packed.remove_prefix(taken);
    if (result == 0 || (room == 0 && taken == 0)) break;
  }
  content.resize(written);
  return content;
}

}  // namespace

std::string xet_hex(std::string_view raw) {
  std::string reordered(raw);
  for (std::size_t word = 0; word + 8 <= reordered.size(); word += 8) {
    std::reverse(reordered.begin() + static_cast<std::ptrdiff_t>(word),
                 reordered.begin() + static_cast<std::ptrdiff_t>(word) + 8);
  }
  return to_hex(reordered);
}

namespace {

constexpr std::size_t chunk_head_bytes = 8;
constexpr std::string_view xorb_footer = "XETBLOB";

/// head(offset): the 8 bytes there, fewer at the end.
template <class Head>
std::vector<XorbChunk> chunks_of(std::uint64_t bytes, const Head& head) {
  std::vector<XorbChunk> chunks;
  std::size_t at = 0;
  while (bytes - at >= chunk_head_bytes) {
    const std::string raw(head(at));
    if (raw.starts_with(xorb_footer)) break;
    Cursor c(raw, "the xorb");
    if (c.number(1) != 0) bad("a chunk of the xorb has a version other than 0", at);
    XorbChunk chunk{};
    chunk.packed_bytes = static_cast<std::uint32_t>(c.number(3));
    chunk.scheme = static_cast<std::uint8_t>(c.number(1));
    chunk.bytes = static_cast<std::uint32_t>(c.number(3));
    if (chunk.scheme > 2) bad("a chunk of the xorb is compressed in an unknown way", at + 4);
    if (chunk.bytes > most_chunk_bytes) bad("a chunk of the xorb is larger than 1 MiB", at + 5);
    chunk.offset = at + chunk_head_bytes;
    if (chunk.packed_bytes > bytes - chunk.offset) bad("the xorb ends", static_cast<std::size_t>(bytes));
    chunks.push_back(chunk);
    at = chunk.offset + chunk.packed_bytes;
  }
  return chunks;
}

}  // namespace

std::vector<XorbChunk> parse_xorb(std::string_view xorb) {
  return chunks_of(xorb.size(), [&](std::size_t at) { return xorb.substr(at, chunk_head_bytes); });
}

std::vector<XorbChunk> parse_xorb_file(int fd, std::uint64_t bytes) {
  return chunks_of(bytes, [&](std::size_t at) { return read_at(fd, at, chunk_head_bytes); });
}

std::string unpack_chunk(std::string_view packed, const XorbChunk& chunk) {
  std::string content = chunk.scheme == 0 ? std::string(packed) : unpack_lz4(packed, chunk.bytes);
  if (content.size() != chunk.bytes) {
    throw HubError(ErrorKind::integrity, "a chunk holds " + std::to_string(content.size()) +
                                             " bytes and names " + std::to_string(chunk.bytes));
  }
  if (chunk.scheme != 2) return content;
  std::string regrouped(content.size(), '\0');
  std::size_t from = 0;
  for (std::size_t first = 0; first < 4; ++first) {
    for (std::size_t to = first; to < regrouped.size(); to += 4) regrouped[to] = content[from++];
  }
  return regrouped;
}

std::vector<ShardFile> parse_shard(std::string_view shard) {
  constexpr std::string_view tag(
      "HFRepoMetaData\0\x55\x69\x67\x45\x6a\x7b\x81\x57\x83\xa5\xbd\xd9\x5c\xcd\xd1\x4a\xa9", 32);
  Cursor c(shard, "the shard");
  if (c.take(tag.size()) != tag) bad("the shard does not begin as one", 0);
  if (const auto version = c.number(8); version != 2)
    bad("the shard has version " + std::to_string(version), 32);
  c.number(8);  // size of the footer
  std::vector<ShardFile> files;
  while (true) {
    const std::string_view hash = c.take(32);
    const std::uint32_t flags = c.u32(), count = c.u32();
    c.number(8);
    if (hash == std::string(32, '\xff')) return files;
    if (count > c.left() / 48) bad("the shard names more segments than it holds", c.at());
    ShardFile file;
    for (std::uint32_t i = 0; i < count; ++i) {
      ShardSegment segment;
      segment.xorb = xet_hex(c.take(32));
      c.u32();  // flags
      segment.bytes = c.u32();
      segment.first_chunk = c.u32();
      segment.end_chunk = c.u32();
      file.segments.push_back(segment);
    }
    constexpr std::uint32_t with_verification = 1U << 31, with_metadata = 1U << 30;
    if ((flags & with_verification) != 0) c.take(std::size_t{48} * count);
    if ((flags & with_metadata) != 0) {
      file.sha256 = xet_hex(c.take(32));  // the digest is permuted like the other hashes
      c.take(16);
    }
    files.push_back(std::move(file));
  }
}

}  // namespace neuron_kernels::hub::registry
