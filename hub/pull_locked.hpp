// Pulls what kernel.lock pins: the dependencies of a package, each at its commit and with the digests of the
// lock.
#pragma once

#include <filesystem>
#include <vector>

#include "hub/lock.hpp"
#include "hub/pull.hpp"

namespace neuron_kernels::hub {

/// One result for each package of the lock in `folder`, which is made or brought up to date unless `policy`
/// forbids. options.variant and options.platform are for all of them. errors: HubError usage if policy.locked
/// and the lock is missing or not current; network if it is not current and the policy is offline; integrity
/// if a file differs from the lock; as pull
std::vector<Pulled> pull_locked(Api& api, const std::filesystem::path& folder, const LockPolicy& policy,
                                const PullOptions& options);

}  // namespace neuron_kernels::hub
