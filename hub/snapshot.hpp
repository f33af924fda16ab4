// Finds a revision of a repository: on the hub, or in the cache when it is offline or out of reach.
#pragma once

#include <functional>
#include <string>

#include "hub/api.hpp"
#include "hub/cache.hpp"
#include "hub/revision.hpp"
#include "hub/snapshot_record.hpp"

namespace neuron_kernels::hub {

using Notice = std::function<void(const std::string&)>;

struct Snapshot {
  ResolvedRevision revision;
  SnapshotRecord record;    // with its tree
  bool from_cache = false;  // nothing may be fetched
};

/// subject: "kernel org/name". Costs no request for a commit that is known, one for another revision of it,
/// and one more for the tree of a new commit. errors: HubError usage if the reference has no revision, with
/// the versions there are; not_found; as Api
Snapshot find_snapshot(Api& api, const Reference& reference, const RepoCache& cache, const Notice& notice);

/// Names of the folders below build/ in a tree.
std::vector<std::string> variant_names(const std::vector<TreeEntry>& tree);

}  // namespace neuron_kernels::hub
