#include "hub/signature.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hub/digest.hpp"
#include "hub/error.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

// No line can be mistaken for another: names have no line breaks (require_safe_path, is_package_name).
std::string signed_text(const SignedVariant& what) {
  std::string text = "kernel package signature 1\npackage " + what.package + "\nversion " + what.version +
                     "\nvariant " + what.variant + "\n";
  for (const auto& [path, digest] : what.files) text += digest + "  " + path + "\n";
  return text;
}

std::string named(const SignedVariant& what) {
  return what.package + " " + what.version + ", " + what.variant;
}

// The first difference between what was signed and what is there.
std::string difference(const DigestList& listed, const DigestList& held) {
  for (const auto& [path, digest] : listed) {
    const auto at = held.find(path);
    if (at == held.end()) return "'" + path + "' was signed and is missing";
    if (at->second != digest) {
      return "'" + path + "' has SHA-256 " + at->second + "; signed was " + digest;
    }
  }
  for (const auto& [path, digest] : held) {
    if (!listed.contains(path)) return "'" + path + "' was not signed";
  }
  return "";
}

}  // namespace

std::string signature_path(std::string_view variant) {
  return "signatures/" + std::string(variant) + ".json";
}

DigestList digest_list(const fs::path& folder) {
  DigestList files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;  // follows links: a snapshot in the cache consists of them
    files.emplace(entry.path().lexically_relative(folder).generic_string(), sha256_hex_of_file(entry.path()));
  }
  return files;
}

std::string sign(const SignedVariant& what, const KeyStore& keys, const std::string& name) {
  const auto [key, signature] = keys.sign(signed_text(what), name);
  return json{{"schema", 1},
              {"package", what.package},
              {"version", what.version},
              {"variant", what.variant},
              {"files", what.files},
              {"key", key.text()},
              {"signature", to_base64(signature)}}
             .dump(2) +
         "\n";
}

PublicKey verify(std::string_view document, const SignedVariant& what, const std::string& owner,
                 const std::vector<TrustedKey>& trusted) {
  const auto refuse = [&](const std::string& why, const std::string& what_to_do = {}) {
    throw HubError(ErrorKind::integrity, "signature of " + named(what) + ": " + why, what_to_do);
  };
  SignedVariant listed;
  std::string key_text, signature;
  try {
    const json parsed = json::parse(document);
    if (parsed.at("schema") != 1) refuse("its schema is not 1", "a newer `kernels` may know it");
    parsed.at("package").get_to(listed.package);
    parsed.at("version").get_to(listed.version);
    parsed.at("variant").get_to(listed.variant);
    parsed.at("files").get_to(listed.files);
    parsed.at("key").get_to(key_text);
    signature = from_base64(parsed.at("signature").get<std::string>());
  } catch (const json::exception&) {
    refuse("it is not a signature document (JSON with package, version, variant, files, key, signature)");
  }
  if (listed.package != what.package || listed.version != what.version || listed.variant != what.variant) {
    refuse("it was made for " + named(listed));
  }
  if (const std::string found = difference(listed.files, what.files); !found.empty()) {
    refuse(found, "do not use these files; pull them again, and tell the publisher if it stays so");
  }
  PublicKey key = PublicKey::parse(key_text);
  if (!key.verifies(signed_text(listed), signature)) refuse("it does not match key " + key.id());
  const bool known = std::any_of(trusted.begin(), trusted.end(),
                                 [&](const TrustedKey& t) { return t.owner == owner && t.key == key; });
  if (!known) {
    refuse("it is by key " + key.id() + ", which is not trusted for " + owner,
           "compare the key with what the publisher announces, then: kernels key trust " + owner + " " +
               key.text());
  }
  return key;
}

}  // namespace neuron_kernels::hub
