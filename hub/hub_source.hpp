// The packages of a hub as the resolver sees them, and a lock of what it chose.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hub/api.hpp"
#include "hub/lock.hpp"
#include "hub/resolve.hpp"

namespace neuron_kernels::hub {

/// Versions are the tags X.Y.Z and, where none has its major number, the branches vN. What a version needs is
/// in its kernel.toml or, without one, in the metadata.json of its first variant.
class HubSource : public PackageSource {
 public:
  explicit HubSource(Api& api) : api_(api) {}

  std::vector<Version> versions(const std::string& repository) override;
  std::vector<Dependency> dependencies(const std::string& repository, const Version& version) override;

  /// Of a version that versions() named.
  std::string commit(const std::string& repository, const Version& version);

 private:
  Api& api_;
  std::map<std::string, std::map<std::string, std::string>> commits_;  // by repository and version
};

/// Resolves the dependencies of `manifest` and lists what they consist of. `held`: versions that stay if they
/// fit. errors: HubError incompatible with who asks for what; as Api
Lock make_lock(Api& api, const Manifest& manifest, const Resolution& held);

struct UpdatedLock {
  Lock lock;
  bool written = false;
};

/// kernel.lock of the package in `folder`: as it is if it is current, else resolved anew and written.
/// errors: HubError usage if it is not current and policy.locked; network if it is not and the policy is
/// offline; as Manifest::read, make_lock
UpdatedLock update_lock(Api& api, const std::filesystem::path& folder, const LockPolicy& policy);

}  // namespace neuron_kernels::hub
