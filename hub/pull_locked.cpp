#include "hub/pull_locked.hpp"

#include "hub/cache.hpp"
#include "hub/hub_source.hpp"

namespace neuron_kernels::hub {

std::vector<Pulled> pull_locked(Api& api, const std::filesystem::path& folder, const LockPolicy& policy,
                                const PullOptions& options) {
  std::vector<Pulled> pulled;
  const Lock lock = update_lock(api, folder, policy).lock;
  for (const LockedPackage& package : lock.packages) {
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
