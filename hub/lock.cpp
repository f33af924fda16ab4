#include "hub/lock.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/text.hpp"

namespace neuron_kernels::hub {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& file, const std::string& where, const std::string& allowed) {
  throw HubError(ErrorKind::usage, file + ": " + where + "; allowed is " + allowed,
                 "make it again by: kernels lock");
}

bool is_digest(std::string_view text) {
  constexpr std::string_view sha256 = "sha256:", git = "git-sha1:";
  return (text.starts_with(sha256) && is_hex(text.substr(sha256.size()), 64)) ||
         (text.starts_with(git) && is_hex(text.substr(git.size()), 40));
}

std::string text_of(const json& object, const char* key, const std::string& file, const std::string& where) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_string()) refuse(file, where + " has no '" + key + "'", "a string");
  return at->get<std::string>();
}

const json& object_of(const json& object, const char* key, const std::string& file,
                      const std::string& where) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_object()) refuse(file, where + " has no '" + key + "'", "an object");
  return *at;
}

void require_keys(const json& object, std::initializer_list<std::string_view> keys, const std::string& file,
                  const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    refuse(file, where + " has the unknown key '" + key + "'", joined(keys));
  }
}

LockedPackage read_package(const json& entry, const std::string& file) {
  const std::string where = "an entry of 'packages'";
  if (!entry.is_object()) refuse(file, where + " is not an object", "an object");
  LockedPackage package;
  package.repository = text_of(entry, "repository", file, where);
  if (!is_repository_name(package.repository)) {
    refuse(file, "repository is '" + package.repository + "'", "\"owner/name\"");
  }
  const std::string& name = package.repository;
  require_keys(entry, {"repository", "version", "commit", "files", "dependencies"}, file, name);
  const std::string version = text_of(entry, "version", file, name);
  const auto parsed = Version::parse(version);
  if (!parsed) refuse(file, name + ": version is '" + version + "'", "a version MAJOR.MINOR.PATCH");
  package.version = *parsed;
  package.commit = text_of(entry, "commit", file, name);
  if (!is_hex(package.commit, 40))
    refuse(file, name + ": commit is '" + package.commit + "'", "40 hex digits");
  for (const auto& [path, digest] : object_of(entry, "files", file, name).items()) {
    require_safe_path(path, file);
    if (!digest.is_string() || !is_digest(digest.get<std::string>())) {
      refuse(file, name + ": digest of '" + path + "' is " + digest.dump(),
             "sha256:<64 hex> or git-sha1:<40 hex>");
    }
    package.files.emplace(path, digest.get<std::string>());
  }
  for (const auto& [repository, range] : object_of(entry, "dependencies", file, name).items()) {
    if (!is_repository_name(repository) || !range.is_string()) {
      refuse(file, name + ": dependency '" + repository + "' is " + range.dump(),
             "\"owner/name\": \"range\"");
    }
    package.dependencies.push_back({repository, Range::parse(range.get<std::string>())});
  }
  return package;
}

}  // namespace

Lock Lock::parse(std::string_view text, const std::string& file) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) refuse(file, "this is not a JSON object", "what `kernels lock` writes");
  const auto schema = document.find("schema");
  if (schema == document.end() || *schema != 1) refuse(file, "schema is not 1", "1");
  require_keys(document, {"schema", "packages"}, file, "the top level");
  const auto entries = document.find("packages");
  if (entries == document.end() || !entries->is_array()) refuse(file, "no 'packages'", "an array");
  Lock lock;
  std::set<std::string> seen;
  for (const json& entry : *entries) {
    lock.packages.push_back(read_package(entry, file));
    if (!seen.insert(lock.packages.back().repository).second) {
      refuse(file, lock.packages.back().repository + " is there twice", "each repository once");
    }
  }
  return lock;
}

std::optional<Lock> Lock::read(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / file_name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  return parse(read_file(path), path.string());
}

std::string Lock::text() const {
  std::vector<const LockedPackage*> sorted;
  for (const LockedPackage& package : packages) sorted.push_back(&package);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->repository < b->repository; });
  json entries = json::array();
  for (const LockedPackage* package : sorted) {
    json dependencies = json::object();
    for (const Dependency& one : package->dependencies) dependencies[one.repository] = one.range.text();
    entries.push_back({{"repository", package->repository},
                       {"version", package->version.text()},
                       {"commit", package->commit},
                       {"files", package->files.empty() ? json::object() : json(package->files)},
                       {"dependencies", dependencies}});
  }
  return json{{"schema", 1}, {"packages", entries}}.dump(2) + "\n";
}

bool Lock::write(const std::filesystem::path& folder) const {
  const std::filesystem::path path = folder / file_name;
  const std::string content = text();
  std::error_code error;
  if (std::filesystem::exists(path, error) && read_file(path) == content) return false;
  write_file(path, content, 0666, Sync::yes);
  return true;
}

const LockedPackage* Lock::find(std::string_view repository) const {
  const auto at = std::find_if(packages.begin(), packages.end(),
                               [&](const LockedPackage& p) { return p.repository == repository; });
  return at != packages.end() ? &*at : nullptr;
}

Resolution Lock::versions() const {
  Resolution versions;
  for (const LockedPackage& package : packages) versions.emplace(package.repository, package.version);
  return versions;
}

std::string Lock::outdated(const std::vector<Dependency>& wanted) const {
  std::vector<std::pair<Dependency, std::string>> requests;
  for (const Dependency& one : wanted) requests.emplace_back(one, std::string(Manifest::file_name));
  std::set<std::string> needed;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto [request, by] = requests[i];
    const LockedPackage* held = find(request.repository);
    if (held == nullptr) return by + " needs " + request.repository + ", which is not locked";
    if (!request.range.contains(held->version)) {
      return by + " needs " + request.repository + " " + request.range.text() + "; locked is " +
             held->version.text();
    }
    if (!needed.insert(request.repository).second) continue;
    for (const Dependency& one : held->dependencies) requests.emplace_back(one, request.repository);
  }
  for (const LockedPackage& package : packages) {
    if (!needed.contains(package.repository))
      return package.repository + " is locked but not needed any more";
  }
  return "";
}

std::optional<Lock> current_lock(const std::filesystem::path& folder, const Manifest& manifest,
                                 const LockPolicy& policy) {
  if (policy.upgrade && !policy.locked) return {};
  std::optional<Lock> lock = Lock::read(folder);
  const std::string reason = lock ? lock->outdated(manifest.dependencies) : "there is none";
  if (reason.empty()) return lock;
  if (policy.locked && !(manifest.dependencies.empty() && !lock)) {
    throw HubError(ErrorKind::usage,
                   "--locked: " + (folder / Lock::file_name).string() + " is not current: " + reason,
                   "run `kernels lock` without --locked and commit the result");
  }
  return {};
}

}  // namespace neuron_kernels::hub
