#include "hub/registry/known_files.hpp"

#include <utility>

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
  if (const auto found = recent_.find(key); found != recent_.end()) return {found->second, era_};
  const auto found = older_.find(key);
  if (found == older_.end()) return {{}, era_};
  LfsPointer file = found->second;
  add(key, file);
  return {std::move(file), era_};
}

void KnownFiles::keep(const Place& place, const LfsPointer& file, std::uint64_t era) {
  const std::scoped_lock lock(mutex_);
  if (era == era_) add(key_of(place), file);
}

void KnownFiles::forget() {
  const std::scoped_lock lock(mutex_);
  recent_.clear();
  older_.clear();
  ++era_;
}

void KnownFiles::add(const std::string& key, const LfsPointer& file) {
  if (recent_.size() >= most) {
    older_ = std::move(recent_);
    recent_.clear();
  }
  recent_.emplace(key, file);
}

}  // namespace neuron_kernels::hub::registry
