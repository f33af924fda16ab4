// The two upload formats of Xet clients: xorbs (compressed chunks) and shards (which chunks make which file).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hub/digest.hpp"

namespace neuron_kernels::hub::registry {

struct XorbChunk {
  std::size_t offset;  // of the compressed bytes in the xorb
  std::uint32_t packed_bytes, bytes;
  std::uint8_t
      scheme;  // 0: none, 1: LZ4 frame, 2: bytes grouped by position in words of four, then an LZ4 frame
};

struct ShardSegment {
  std::string xorb;  // 64 hex digits
  std::uint32_t bytes, first_chunk, end_chunk;
};

struct ShardFile {
  std::string sha256;  // as hex digits in the usual order; empty if the shard does not say
  std::vector<ShardSegment> segments;
};

inline constexpr std::uint32_t most_chunk_bytes = 1 << 20;  // clients make chunks of up to 128 KiB

/// The chunks of a xorb, up to its footer. Errors: HubError integrity naming the offset.
std::vector<XorbChunk> parse_xorb(std::string_view xorb);
/// The same of a file, of which only the heads of chunks are read.
std::vector<XorbChunk> parse_xorb_file(int fd, std::uint64_t bytes);

/// The files of a shard. Errors: HubError integrity naming the offset.
std::vector<ShardFile> parse_shard(std::string_view shard);

/// The content of a chunk from its packed bytes. Errors: HubError integrity.
std::string unpack_chunk(std::string_view packed, const XorbChunk& chunk);

/// 32 bytes as Xet writes them: four little-endian numbers of 64 bits in hex.
std::string xet_hex(std::string_view raw);

}  // namespace neuron_kernels::hub::registry
