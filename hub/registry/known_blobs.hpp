// What the blobs of git say of the files that they stand for: found out once, as the content of an id never
// changes.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "hub/registry/lfs_pointer.hpp"
#include "hub/registry/recent.hpp"

namespace neuron_kernels::hub::registry {

/// A blob, in whichever repository. Whether one may read the pointer's object is for the repository to say.
struct BlobFacts {
  std::uint64_t size = 0;  // of the blob itself
  std::optional<LfsPointer> pointer;
};

class KnownBlobs {
 public:
  std::optional<BlobFacts> find(const std::string& oid);
  void keep(const std::string& oid, const BlobFacts& facts);

 private:
  std::mutex mutex_;
  Recent<BlobFacts> blobs_{4096};  // 2 MB for twice as many
};

}  // namespace neuron_kernels::hub::registry
