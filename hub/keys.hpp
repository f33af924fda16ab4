// Ed25519 keys of a publisher and those that a user trusts, in a folder of the user's configuration.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neuron_kernels::hub {

struct PublicKey {
  std::string raw;  // 32 bytes

  /// "ed25519:<base64>", as people pass it around.
  std::string text() const;
  /// First 16 hex digits of the SHA-256 of the key: for lists and messages.
  std::string id() const;
  bool verifies(std::string_view message, std::string_view signature) const;
  /// Errors: HubError usage.
  static PublicKey parse(std::string_view text);

  friend bool operator==(const PublicKey&, const PublicKey&) = default;
};

struct TrustedKey {
  std::string owner;  // the user or organisation on the hub whose packages it vouches for
  PublicKey key;
};

/// Files: NAME.key (PKCS #8 PEM, mode 0600) for each key of one's own, trusted.json.
class KeyStore {
 public:
  /// keys/ in $KERNELS_CONFIG, else in kernels/ of $XDG_CONFIG_HOME, else of ~/.config. Errors: HubError
  /// usage if none of them and no HOME is set.
  static std::filesystem::path default_folder();
  explicit KeyStore(std::filesystem::path folder = default_folder()) : folder_(std::move(folder)) {}

  /// Errors: HubError usage for a bad name; conflict if there is a key of that name.
  PublicKey create(const std::string& name) const;
  /// By name. Errors: HubError integrity for a file that is no key.
  std::vector<std::pair<std::string, PublicKey>> own() const;
  /// Makes signatures by `key` count for packages of `owner`. False if they did already.
  bool trust(const std::string& owner, const PublicKey& key) const;
  bool distrust(const std::string& owner, const PublicKey& key) const;
  std::vector<TrustedKey> trusted() const;  // by owner

  /// 64 bytes. Errors: HubError not_found with how to make a key.
  std::pair<PublicKey, std::string> sign(std::string_view message, const std::string& name) const;

 private:
  std::filesystem::path file_of(const std::string& name) const;
  void write_trusted(const std::vector<TrustedKey>& keys) const;

  std::filesystem::path folder_;
};

}  // namespace neuron_kernels::hub
