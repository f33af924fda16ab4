// Signatures of variants: Ed25519 over a text that names package, version, variant and every file's SHA-256.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hub/keys.hpp"

namespace neuron_kernels::hub {

/// SHA-256 in hex by path relative to the variant's folder; metadata.json is among them.
using DigestList = std::map<std::string, std::string>;

/// What a signature vouches for. package: its name in kernel.toml; version: X.Y.Z.
struct SignedVariant {
  std::string package, version, variant;
  DigestList files;
};

/// Where the signature of a variant lies in its repository: beside build/, where no other client looks.
std::string signature_path(std::string_view variant);

/// The digests of all files below `folder`. Errors: HubError storage.
DigestList digest_list(const std::filesystem::path& folder);

/// The signature document (JSON) by one's own key `name`. Errors: as KeyStore::sign.
std::string sign(const SignedVariant& what, const KeyStore& keys, const std::string& name);

/// Checks that `document` is a signature of exactly these files by a key that is trusted for `owner`; returns
/// the key. errors: HubError integrity that says what differs, or which key there is and how to trust it
PublicKey verify(std::string_view document, const SignedVariant& what, const std::string& owner,
                 const std::vector<TrustedKey>& trusted);

}  // namespace neuron_kernels::hub
