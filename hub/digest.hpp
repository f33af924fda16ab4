// Digests and encodings that the Hub uses: SHA-256, git's blob SHA-1, hex, base64. Hashing is OpenSSL's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace neuron_kernels::hub {

using Bytes = std::span<const std::byte>;
inline Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// One digest over data that comes in parts.
class Hasher {
 public:
  static Hasher sha256();
  /// The id that git gives a blob of `size` bytes: SHA-1 over "blob SIZE\0" and the content.
  static Hasher git_blob(std::uint64_t size);

  Hasher& add(Bytes data);
  Hasher& add(std::string_view text) { return add(bytes_of(text)); }
  /// The raw digest, 32 or 20 bytes. The hasher is spent.
  std::string finish();
  /// The same as lower-case hex digits.
  std::string finish_hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  explicit Hasher(const char* algorithm);
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::string_view data);
std::string git_blob_sha1_hex(std::string_view data);

/// Digest of a file's content, read in pieces. Errors: HubError storage.
std::string sha256_hex_of_file(const std::filesystem::path& path);
std::string git_blob_sha1_hex_of_file(const std::filesystem::path& path);

/// Whether `text` is `digits` lower-case hex digits (40: git id, 64: SHA-256).
bool is_hex(std::string_view text, std::size_t digits);
std::string to_hex(std::string_view raw);
/// Errors: HubError integrity on anything but an even number of hex digits.
std::string from_hex(std::string_view hex);

std::string to_base64(std::string_view raw);
/// Errors: HubError integrity on characters or padding that base64 does not have.
std::string from_base64(std::string_view text);

}  // namespace neuron_kernels::hub
