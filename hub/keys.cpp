#include "hub/keys.hpp"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

constexpr std::size_t key_bytes = 32, signature_bytes = 64;
constexpr std::string_view prefix = "ed25519:";

template <auto free>
struct Free {
  void operator()(auto* object) const { free(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Context = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO_free_all>>;

const unsigned char* data_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* data_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

void require(bool done, const char* what) {
  if (!done) throw HubError(ErrorKind::failed, std::string("OpenSSL cannot ") + what);
}

PublicKey public_part(const Key& key) {
  PublicKey result{std::string(key_bytes, '\0')};
  std::size_t size = key_bytes;
  require(EVP_PKEY_get_raw_public_key(key.get(), data_of(result.raw), &size) == 1 && size == key_bytes,
          "give the public part of a key");
  return result;
}

Key read_key(const fs::path& path) {
  const std::string pem = read_file(path);
  const Memory memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  // No pass phrase is asked for: an encrypted key is an error.
  Key key(PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, const_cast<char*>("")));
  if (key == nullptr || EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519) {
    throw HubError(ErrorKind::integrity,
                   path.string() + " is not an Ed25519 key in PKCS #8 PEM without pass phrase",
                   "remove it, or make another by: kernels key new NAME");
  }
  return key;
}

void require_name(const std::string& name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  if (!name.empty() && name.size() <= 64 && name.find_first_not_of(allowed) == name.npos) return;
  throw HubError(ErrorKind::usage,
                 "key name '" + name.substr(0, 100) + "'; allowed are 1 to 64 letters, digits, '_' and '-'");
}

}  // namespace

std::string PublicKey::text() const { return std::string(prefix) + to_base64(raw); }
std::string PublicKey::id() const { return sha256_hex(raw).substr(0, 16); }

PublicKey PublicKey::parse(std::string_view text) {
  try {
    if (text.starts_with(prefix)) {
      PublicKey key{from_base64(text.substr(prefix.size()))};
      if (key.raw.size() == key_bytes) return key;
    }
  } catch (const HubError&) {  // not base64: the same message
  }
  throw HubError(
      ErrorKind::usage,
      "public key '" + std::string(text.substr(0, 100)) + "'; allowed is ed25519: and the base64 of 32 bytes",
      "the publisher finds it by: kernels key list");
}

bool PublicKey::verifies(std::string_view message, std::string_view signature) const {
  const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, data_of(raw), raw.size()));
  const Context context(EVP_MD_CTX_new());
  return key != nullptr && signature.size() == signature_bytes &&
         EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         EVP_DigestVerify(context.get(), data_of(signature), signature.size(), data_of(message),
                          message.size()) == 1;
}

fs::path KeyStore::default_folder() {
  const auto variable = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
  };
  if (const auto own = variable("KERNELS_CONFIG"); !own.empty()) return fs::path(own) / "keys";
  if (const auto xdg = variable("XDG_CONFIG_HOME"); !xdg.empty()) return fs::path(xdg) / "kernels" / "keys";
  if (const auto home = variable("HOME"); !home.empty())
    return fs::path(home) / ".config" / "kernels" / "keys";
  throw HubError(ErrorKind::usage,
                 "no folder for keys: neither KERNELS_CONFIG, XDG_CONFIG_HOME nor HOME is set",
                 "set KERNELS_CONFIG to a folder");
}

fs::path KeyStore::file_of(const std::string& name) const {
  require_name(name);
  return folder_ / (name + ".key");
}

PublicKey KeyStore::create(const std::string& name) const {
  const fs::path path = file_of(name);
  std::error_code error;
  if (fs::exists(path, error)) {
    throw HubError(ErrorKind::conflict, "there is a key '" + name + "' already: " + path.string(),
                   "choose another name; a signing key is never replaced");
  }
  const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  require(key != nullptr, "make an Ed25519 key");
  const Memory memory(BIO_new(BIO_s_mem()));
  require(PEM_write_bio_PKCS8PrivateKey(memory.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1,
          "write a key");
  char* pem = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &pem);
  write_file(path, std::string_view(pem, static_cast<std::size_t>(size)), 0600, Sync::yes);
  return public_part(key);
}

std::vector<std::pair<std::string, PublicKey>> KeyStore::own() const {
  std::vector<std::pair<std::string, PublicKey>> keys;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (entry.path().extension() != ".key") continue;
    keys.emplace_back(entry.path().stem().string(), public_part(read_key(entry.path())));
  }
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return keys;
}

std::pair<PublicKey, std::string> KeyStore::sign(std::string_view message, const std::string& name) const {
  const fs::path path = file_of(name);
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw HubError(ErrorKind::not_found, "no signing key '" + name + "' in " + folder_.string(),
                   "make one by: kernels key new " + name);
  }
  const Key key = read_key(path);
  const Context context(EVP_MD_CTX_new());
  std::string signature(signature_bytes, '\0');
  std::size_t size = signature.size();
  require(
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
          EVP_DigestSign(context.get(), data_of(signature), &size, data_of(message), message.size()) == 1 &&
          size == signature_bytes,
      "sign");
  return {public_part(key), signature};
}

bool KeyStore::trust(const std::string& owner, const PublicKey& key) const {
  std::vector<TrustedKey> keys = trusted();
  for (const TrustedKey& held : keys) {
    if (held.owner == owner && held.key == key) return false;
  }
  keys.push_back({owner, key});
  write_trusted(keys);
  return true;
}

bool KeyStore::distrust(const std::string& owner, const PublicKey& key) const {
  std::vector<TrustedKey> keys = trusted();
  if (std::erase_if(keys, [&](const TrustedKey& t) { return t.owner == owner && t.key == key; }) == 0)
    return false;
  write_trusted(keys);
  return true;
}

void KeyStore::write_trusted(const std::vector<TrustedKey>& keys) const {
  json entries = json::array();
  for (const TrustedKey& one : keys) entries.push_back({{"owner", one.owner}, {"key", one.key.text()}});
  write_file(folder_ / "trusted.json", json{{"schema", 1}, {"trusted", entries}}.dump(2) + "\n", 0600,
             Sync::yes);
}

std::vector<TrustedKey> KeyStore::trusted() const {
  const fs::path path = folder_ / "trusted.json";
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  const auto refuse = [&] {
    throw HubError(ErrorKind::usage, path.string() + " is not what `kernels key trust` writes",
                   "remove it and trust the keys again");
  };
  const json document = json::parse(read_file(path), nullptr, false);
  if (!document.is_object() || document.value("schema", json()) != 1 || !document.contains("trusted") ||
      !document["trusted"].is_array()) {
    refuse();
  }
  std::vector<TrustedKey> keys;
  for (const json& entry : document["trusted"]) {
    if (!entry.is_object() || !entry.contains("owner") || !entry["owner"].is_string() ||
        !entry.contains("key") || !entry["key"].is_string()) {
      refuse();
    }
    keys.push_back({entry["owner"].get<std::string>(), PublicKey::parse(entry["key"].get<std::string>())});
  }
  std::sort(keys.begin(), keys.end(), [](const TrustedKey& a, const TrustedKey& b) {
    return std::pair(a.owner, a.key.raw) < std::pair(b.owner, b.key.raw);
  });
  return keys;
}

}  // namespace neuron_kernels::hub
