// Compares what a snapshot in the cache holds with the tree of its commit, byte by byte.
#pragma once

#include <string>
#include <vector>

#include "hub/cache.hpp"
#include "hub/snapshot_record.hpp"

namespace neuron_kernels::hub {

struct SnapshotCheck {
  std::size_t checked = 0;  // files whose digest was computed
  std::uint64_t bytes = 0;
  std::vector<std::string> damaged;  // size or digest differs
  std::vector<std::string> missing;  // of a variant that is there otherwise
  std::vector<std::string> unknown;  // in the snapshot, but not in the tree
  bool good() const { return damaged.empty() && missing.empty() && unknown.empty(); }
};

SnapshotCheck check_snapshot(const RepoCache& cache, const std::string& commit, const SnapshotRecord& record);

}  // namespace neuron_kernels::hub
