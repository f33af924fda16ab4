#include "hub/digest.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub {

void Hasher::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Hasher::Hasher(const char* algorithm) : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr ||
      EVP_DigestInit_ex(context_.get(), EVP_get_digestbyname(algorithm), nullptr) != 1) {
    throw HubError(ErrorKind::failed, std::string("OpenSSL cannot compute ") + algorithm);
  }
}

Hasher Hasher::sha256() { return Hasher("SHA256"); }

Hasher Hasher::git_blob(std::uint64_t size) {
  Hasher hasher("SHA1");
  const std::string head = "blob " + std::to_string(size);
  hasher.add(std::string_view(head.c_str(), head.size() + 1));
  return hasher;
}

Hasher& Hasher::add(Bytes data) {
  EVP_DigestUpdate(context_.get(), data.data(), data.size());
  return *this;
}

std::string Hasher::finish() {
  std::string raw(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(raw.data()), &size);
  raw.resize(size);
  return raw;
}

std::string Hasher::finish_hex() { return to_hex(finish()); }

std::string sha256_hex(std::string_view data) { return Hasher::sha256().add(data).finish_hex(); }
std::string git_blob_sha1_hex(std::string_view data) {
  return Hasher::git_blob(data.size()).add(data).finish_hex();
}

namespace {

std::string hash_file(Hasher hasher, const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) storage_error("read", path, errno);
  std::array<std::byte, 1 << 16> buffer;
  while (true) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) storage_error("read", path, errno);
    if (n == 0) break;
    hasher.add(Bytes(buffer).first(static_cast<std::size_t>(n)));
  }
  return hasher.finish_hex();
}

}  // namespace

std::string sha256_hex_of_file(const std::filesystem::path& path) {
  return hash_file(Hasher::sha256(), path);
}
std::string git_blob_sha1_hex_of_file(const std::filesystem::path& path) {
  return hash_file(Hasher::git_blob(std::filesystem::file_size(path)), path);
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::string to_hex(std::string_view raw) {
  constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * raw.size());
  for (const char c : raw) {
    const auto byte = static_cast<unsigned char>(c);
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  return hex;
}

std::string from_hex(std::string_view hex) {
  const auto value = [&](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    throw HubError(ErrorKind::integrity, "'" + std::string(hex.substr(0, 80)) + "' is not hexadecimal");
  };
  if (hex.size() % 2 != 0) value('?');
  std::string raw;
  raw.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    raw += static_cast<char>(value(hex[i]) * 16 + value(hex[i + 1]));
  }
  return raw;
}

std::string to_base64(std::string_view raw) {
  std::string text((raw.size() + 2) / 3 * 4 + 1, '\0');  // OpenSSL ends it by a zero
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(raw.data()), static_cast<int>(raw.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::string from_base64(std::string_view text) {
  const std::size_t body = text.find_last_not_of('=') + 1, padding = text.size() - body;
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0 || padding > 2 || text.substr(0, body).find_first_not_of(alphabet) != text.npos) {
    throw HubError(ErrorKind::integrity, "content of " + std::to_string(text.size()) +
                                             " characters is not base64 (A-Z a-z 0-9 + / in groups of four)");
  }
  std::string raw(text.size() / 4 * 3, '\0');
  EVP_DecodeBlock(reinterpret_cast<unsigned char*>(raw.data()),
                  reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  raw.resize(raw.size() - padding);
  return raw;
}

}  // namespace neuron_kernels::hub
