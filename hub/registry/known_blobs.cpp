#include "hub/registry/known_blobs.hpp"

namespace neuron_kernels::hub::registry {

std::optional<BlobFacts> KnownBlobs::find(const std::string& oid) {
  const std::scoped_lock lock(mutex_);
  return blobs_.find(oid);
}

void KnownBlobs::keep(const std::string& oid, const BlobFacts& facts) {
  const std::scoped_lock lock(mutex_);
  blobs_.add(oid, facts);
}

}  // namespace neuron_kernels::hub::registry
