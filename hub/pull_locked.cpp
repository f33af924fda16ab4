#include "hub/pull_locked.hpp"

#include "hub/cache.hpp"
#include "hub/error.hpp"
#include "hub/hub_source.hpp"
#include "hub/manifest.hpp"

namespace neuron_kernels::hub {

namespace {

Lock lock_of(Api& api, const std::filesystem::path& folder, const LockPolicy& policy) {
  const Manifest manifest = Manifest::read(folder);
  if (auto lock = current_lock(folder, manifest, policy)) return *lock;
  if ((policy.offline || api.environment().offline) && !manifest.dependencies.empty()) {
    throw HubError(ErrorKind::network, "kernel.lock is not current, and resolving needs the network",
                   "run `kernels lock` without --offline and HF_HUB_OFFLINE");
  }
  const auto held = Lock::read(folder);
  Lock lock = make_lock(api, manifest, held ? held->versions() : Resolution{});
  lock.write(folder);
  return lock;
}

}  // namespace

std::vector<Pulled> pull_locked(Api& api, const std::filesystem::path& folder, const LockPolicy& policy,
                                const PullOptions& options) {
  std::vector<Pulled> pulled;
  for (const LockedPackage& package : lock_of(api, folder, policy).packages) {
    PullOptions each = options;
    each.dependencies = false;  // the lock names all of them
    each.expected_files = &package.files;
    const Reference reference{.repo = parse_repo_id(package.repository), .revision = package.commit};
    pulled.push_back(pull(api, reference, each));
    if (options.plan_only) continue;
    const RepoCache cache(api.environment(), reference.repo);
    cache.write_refs({package.version.text()}, package.commit);
    const std::string branch = "v" + std::to_string(package.version.major);
    if (!cache.ref(branch)) cache.write_refs({branch}, package.commit);  // for get_kernel(version=N) offline
  }
  return pulled;
}

}  // namespace neuron_kernels::hub
