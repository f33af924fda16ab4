// Xorbs and shards: what clients send, and what they must not send.
#include <lz4frame.h>

#include <string>

#include "catch.hpp"
#include "hub/error.hpp"
#include "hub/registry/xet.hpp"

namespace hub = neuron_kernels::hub;
using namespace hub::registry;

namespace {

std::string little(std::uint64_t value, int bytes) {
  std::string raw;
  for (int i = 0; i < bytes; ++i) raw += static_cast<char>(value >> (8 * i) & 0xff);
  return raw;
}

std::string lz4(const std::string& content) {
  std::string packed(LZ4F_compressFrameBound(content.size(), nullptr), '\0');
  packed.resize(LZ4F_compressFrame(packed.data(), packed.size(), content.data(), content.size(), nullptr));
  return packed;
}

/// Bytes grouped by their position in words of four.
std::string grouped(const std::string& content) {
  std::string out;
  for (std::size_t first = 0; first < 4; ++first) {
    for (std::size_t i = first; i < content.size(); i += 4) out += content[i];
  }
  return out;
}

std::string chunk(const std::string& packed, int scheme, std::size_t bytes) {
  return little(0, 1) + little(packed.size(), 3) + little(static_cast<std::uint64_t>(scheme), 1) +
         little(bytes, 3) + packed;
}

const std::string tag("HFRepoMetaData\0\x55\x69\x67\x45\x6a\x7b\x81\x57\x83\xa5\xbd\xd9\x5c\xcd\xd1\x4a\xa9",
                      32);
const std::string end_of_files = std::string(32, '\xff') + std::string(16, '\0');

}  // namespace

TEST_CASE("chunks of every scheme come back as they were") {
  std::string content;
  for (int i = 0; i < 4099; ++i) content += static_cast<char>(i * i % 251);
  const std::string xorb = chunk(content, 0, content.size()) + chunk(lz4(content), 1, content.size()) +
                           chunk(lz4(grouped(content)), 2, content.size()) + "XETBLOB and a footer";
  const auto chunks = parse_xorb(xorb);
  REQUIRE(chunks.size() == 3);
  for (const XorbChunk& c : chunks)
    CHECK(unpack_chunk(std::string_view(xorb).substr(c.offset, c.packed_bytes), c) == content);
}

TEST_CASE("broken xorbs are refused with the place") {
  CHECK(parse_xorb("").empty());
  CHECK_THROWS_WITH(parse_xorb("\x01" + std::string(20, '\0')),
                    contains_text("version") && contains_text("byte 0"));
  CHECK_THROWS_WITH(parse_xorb(chunk("abc", 3, 3)), contains_text("unknown way"));
  CHECK_THROWS_WITH(parse_xorb(chunk("abc", 0, 3).substr(0, 10)), contains_text("ends"));
  CHECK_THROWS_WITH(parse_xorb(chunk("abc", 1, (1 << 20) + 1)), contains_text("larger than 1 MiB"));
  const std::string too_long = chunk(lz4(std::string(500, 'x')), 1, 400);
  const XorbChunk c = parse_xorb(too_long).at(0);
  CHECK_THROWS_WITH(unpack_chunk(std::string_view(too_long).substr(c.offset, c.packed_bytes), c),
                    contains_text("400"));
  CHECK_THROWS_AS(unpack_chunk("not lz4", XorbChunk{0, 7, 20, 1}), hub::HubError);
}

TEST_CASE("a shard names its files, with and without digests") {
  const std::string xorb_hash = little(0x0123456789abcdefULL, 8) + std::string(24, '\0');
  const auto segment = [&](std::uint32_t bytes, std::uint32_t first, std::uint32_t last) {
    return xorb_hash + little(0, 4) + little(bytes, 4) + little(first, 4) + little(last, 4);
  };
  const auto head = [](std::uint32_t flags, std::uint32_t count) {
    return std::string(32, 'f') + little(flags, 4) + little(count, 4) + little(0, 8);
  };
  const std::string sha = little(0x1111111111111111ULL, 8) + std::string(24, '\0');
  const std::string shard = tag + little(2, 8) + little(0, 8) + head(0xc0000000U, 2) + segment(10, 0, 2) +
                            segment(5, 4, 5) + std::string(96, '\0') + sha + std::string(16, '\0') +
                            head(0, 1) + segment(1, 0, 1) + end_of_files;
  const auto files = parse_shard(shard);
  REQUIRE(files.size() == 2);
  REQUIRE(files[0].segments.size() == 2);
  CHECK(files[0].segments[0].xorb == "0123456789abcdef" + std::string(48, '0'));
  CHECK(files[0].segments[1].first_chunk == 4);
  CHECK(files[0].segments[1].end_chunk == 5);
  CHECK(files[0].sha256 == "1111111111111111" + std::string(48, '0'));
  CHECK(files[1].sha256.empty());
  for (std::size_t n = 0; n < shard.size(); ++n)
    CHECK_THROWS_AS(parse_shard(shard.substr(0, n)), hub::HubError);
}

TEST_CASE("a shard that names more segments than it holds takes no memory for them") {
  const std::string shard = tag + little(2, 8) + little(0, 8) + std::string(32, 'f') + little(0, 4) +
                            little(0xffffffff, 4) + little(0, 8);
  CHECK_THROWS_WITH(parse_shard(shard), contains_text("more segments"));
}
