#include "hub/variant_metadata.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/text.hpp"

namespace neuron_kernels::hub {

namespace {

using Json = nlohmann::json;

constexpr ShortVersion compatible_with_kernels{0, 17};  // HF's client whose rules this one follows

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<std::string> texts_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? found->get<std::vector<std::string>>()
                                                    : std::vector<std::string>();
}

// A range of ours says more than the major version that kernel-depends has for the same repository.
void read_dependencies(const Json& json, VariantMetadata& metadata) {
  if (const auto ranges = json.find("dependencies"); ranges != json.end() && ranges->is_object()) {
    for (const auto& item : ranges->items())
      metadata.kernel_depends.push_back(
          {.repository = item.key(), .revision = item.value().get<std::string>()});
  }
  if (const auto list = json.find("kernel-depends"); list != json.end() && list->is_array()) {
    for (const Json& item : *list) {
      KernelDependency dependency{.repository = item.at("repo-id").get<std::string>(), .revision = {}};
      const bool listed =
          std::any_of(metadata.kernel_depends.begin(), metadata.kernel_depends.end(),
                      [&](const auto& known) { return known.repository == dependency.repository; });
      if (listed) continue;
      if (item.contains("version"))
        dependency.revision = std::to_string(item.at("version").get<int>());
      else
        dependency.revision = item.at("revision").get<std::string>();
      metadata.kernel_depends.push_back(std::move(dependency));
    }
  }
}

void read_digest(const Json& json, VariantMetadata& metadata) {
  const auto digest = json.find("digest");
  if (digest == json.end() || !digest->is_object()) return;
  metadata.digest_algorithm = digest->at("algorithm").get<std::string>();
  for (const auto& [path, value] : digest->at("files").items()) {
    require_safe_path(path, "metadata.json");
    metadata.digest[path] = from_base64(value.get<std::string>());
  }
}

}  // namespace

VariantMetadata parse_variant_metadata(std::string_view text, const std::string& subject) {
  try {
    const Json json = Json::parse(text);
    VariantMetadata metadata;
    metadata.name = json.at("name").get<std::string>();
    metadata.id = json.at("id").get<std::string>();
    metadata.version = json.at("version").get<int>();
    metadata.license = text_of(json, "license");
    metadata.package_version = text_of(json, "package-version");
    metadata.backend = json.at("backend").at("type").get<std::string>();
    metadata.archs = texts_of(json.at("backend"), "archs");
    metadata.python_depends = texts_of(json, "python-depends");
    metadata.kernels_minver = text_of(json, "kernels-minver");
    metadata.source = text_of(json, "source");
    const Json::json_pointer commit("/provenance/kernel/commit");
    if (json.contains(commit) && json.at(commit).is_string())
      metadata.commit = json.at(commit).get<std::string>();
    read_dependencies(json, metadata);
    read_digest(json, metadata);
    return metadata;
  } catch (const Json::exception& error) {
    const std::string reason = error.what();  // "[json.exception...] key 'id' not found"
    throw HubError(
        ErrorKind::integrity,
        "cannot parse " + subject + ": " + reason.substr(std::min(reason.find("] ") + 2, reason.size())),
        "name, id, version and backend.type are required; ask the publisher to publish it again");
  }
}

void require_suitable(const VariantMetadata& metadata, const Platform& platform, const std::string& subject) {
  if (const auto needed = ShortVersion::parse(metadata.kernels_minver);
      needed && *needed > compatible_with_kernels) {
    throw HubError(ErrorKind::incompatible,
                   subject + " asks for a client of kernels " + metadata.kernels_minver +
                       " or newer; this one knows " + compatible_with_kernels.text(),
                   "update `kernels`, or pull an older version of the package");
  }
  if (metadata.archs.empty() || metadata.backend != platform.backend.name) return;
  for (const std::string& device : platform.device_archs) {
    const bool suits =
        std::any_of(metadata.archs.begin(), metadata.archs.end(),
                    [&](const std::string& arch) { return arch_suits(arch, device, metadata.backend); });
    if (suits) continue;
    throw HubError(ErrorKind::incompatible,
                   subject + " is built for " + metadata.backend + " devices of " + joined(metadata.archs) +
                       "; this machine has " + device,
                   "another version may have a build for it: `kernels versions OWNER/NAME`");
  }
}

void require_digests(const VariantMetadata& metadata, const std::filesystem::path& folder,
                     const std::string& subject, const std::map<std::string, std::string>& known) {
  if (metadata.digest_algorithm.empty()) return;
  if (metadata.digest_algorithm != "sha256") {
    if (metadata.digest_algorithm == "sha512") return;  // bytes are checked against the listing in any case
    throw HubError(ErrorKind::integrity, subject + " lists digests by '" + metadata.digest_algorithm +
                                             "'; allowed are sha256 and sha512");
  }
  for (const auto& [path, digest] : metadata.digest) {
    if (!std::filesystem::exists(folder / path)) {
      throw HubError(ErrorKind::integrity, subject + " lists " + path + ", which is not in the package",
                     "ask the publisher to publish it again");
    }
    const auto hashed = known.find(path);
    const std::string found = hashed != known.end() ? hashed->second : sha256_hex_of_file(folder / path);
    if (found != to_hex(digest)) {
      throw HubError(ErrorKind::integrity,
                     "checksum mismatch: SHA-256 of " + path + " is " + found + ", but " + subject +
                         " says " + to_hex(digest),
                     "the package was altered after it was built; do not use it, and tell its publisher");
    }
  }
}

bool arch_suits(std::string_view arch, std::string_view device, std::string_view backend) {
  if (backend != "cuda") return arch.substr(0, arch.find(':')) == device.substr(0, device.find(':'));
  const auto built = ShortVersion::parse(arch), have = ShortVersion::parse(device);
  if (!built || !have) return arch == device;
  const std::string_view core = arch.substr(0, arch.find('+'));
  if (core.ends_with('a')) return *built == *have;
  if (arch.ends_with("+PTX") && *have >= *built) return true;
  return built->major == have->major && have->minor >= built->minor;
}

}  // namespace neuron_kernels::hub
