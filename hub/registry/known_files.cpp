#include "hub/registry/known_files.hpp"

namespace neuron_kernels::hub::registry {

namespace {

std::string key_of(const KnownFiles::Place& place) {
  constexpr char between = '\0';  // in none of the parts
  std::string key(name_of(place.repository.type));
  for (const std::string* part : {&place.repository.id, &place.commit, &place.path})
    (key += between) += *part;
  return key;
}

}  // namespace

KnownFiles::Found KnownFiles::find(const Place& place) {
  const std::string key = key_of(place);
  const std::scoped_lock lock(mutex_);
  return {files_.find(key), era_};
}

void KnownFiles::keep(const Place& place, const LfsPointer& file, std::uint64_t era) {
  const std::scoped_lock lock(mutex_);
  if (era == era_) files_.add(key_of(place), file);
}

void KnownFiles::forget() {
  const std::scoped_lock lock(mutex_);
  files_.clear();
  ++era_;
}

}  // namespace neuron_kernels::hub::registry
