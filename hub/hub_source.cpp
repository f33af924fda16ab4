#include "hub/hub_source.hpp"

#include "hub/api_error.hpp"
#include "hub/error.hpp"
#include "hub/revision.hpp"
#include "hub/variant_metadata.hpp"

namespace neuron_kernels::hub {
namespace {

std::vector<Dependency> as_dependencies(const VariantMetadata& metadata, const std::string& subject) {
  std::vector<Dependency> dependencies;
  for (const KernelDependency& one : metadata.kernel_depends) {
    try {
      dependencies.push_back({one.repository, Range::parse(one.revision)});
    } catch (const HubError&) {
      throw HubError(
          ErrorKind::incompatible,
          subject + " needs " + one.repository + " at '" + one.revision + "', which is no range of versions",
          "a lock file holds packages that depend on each other by version");
    }
  }
  return dependencies;
}

}  // namespace

std::vector<Version> HubSource::versions(const std::string& repository) {
  std::vector<Version> versions;
  auto& commits = commits_[repository];
  for (const PublishedVersion& published : published_versions(api_.refs(parse_repo_id(repository)))) {
    versions.push_back(published.version);
    commits.emplace(published.version.text(), published.commit);
  }
  return versions;
}

std::string HubSource::commit(const std::string& repository, const Version& version) {
  return commits_.at(repository).at(version.text());
}

std::vector<Dependency> HubSource::dependencies(const std::string& repository, const Version& version) {
  const RepoId repo = parse_repo_id(repository);
  const std::string at = commit(repository, version), subject = "kernel " + repository + "@" + version.text();
  const std::string manifest(Manifest::file_name);
  const Response response = api_.http().send(api_.file_request(repo, at, manifest));
  if (response.ok()) return Manifest::parse(response.body, subject + ", " + manifest).dependencies;
  if (response.status != 404) throw api_error(response, subject, api_.environment().token_source);
  for (const TreeEntry& entry : api_.tree(repo, at, "build", Depth::folder)) {
    if (!entry.is_folder) continue;
    const std::string path = entry.path + "/metadata.json";
    const Response metadata = api_.send(api_.file_request(repo, at, path), subject + ", " + path);
    return as_dependencies(parse_variant_metadata(metadata.body, path + " of " + subject), subject);
  }
  return {};
}

Lock make_lock(Api& api, const Manifest& manifest, const Resolution& held) {
  HubSource source(api);
  Lock lock;
  for (const auto& [repository, version] : resolve(manifest.dependencies, source, held)) {
    LockedPackage package{repository,
                          version,
                          source.commit(repository, version),
                          {},
                          source.dependencies(repository, version)};
    for (const TreeEntry& entry :
         api.tree(parse_repo_id(repository), package.commit, "build", Depth::recursive)) {
      if (entry.is_folder) continue;
      package.files.emplace(entry.path, (entry.sha256.empty() ? "git-sha1:" : "sha256:") + entry.blob());
    }
    lock.packages.push_back(std::move(package));
  }
  return lock;
}

UpdatedLock update_lock(Api& api, const std::filesystem::path& folder, const LockPolicy& policy) {
  const Manifest manifest = Manifest::read(folder);
  if (auto lock = current_lock(folder, manifest, policy)) return {std::move(*lock), false};
  if ((policy.offline || api.environment().offline) && !manifest.dependencies.empty()) {
    throw HubError(ErrorKind::network, "kernel.lock is not current, and resolving needs the network",
                   "run `kernels lock` without --offline and HF_HUB_OFFLINE");
  }
  const auto held = Lock::read(folder);
  Lock lock = make_lock(api, manifest, held && !policy.upgrade ? held->versions() : Resolution{});
  const bool written = !policy.locked && lock.write(folder);
  return {std::move(lock), written};
}

}  // namespace neuron_kernels::hub
