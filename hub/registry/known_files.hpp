// Which object a path of a commit names: found out once, as a commit never changes.
// Only of files outside git: those in git are read from the repository, which has to be opened anyway.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "hub/registry/lfs_pointer.hpp"
#include "hub/registry/recent.hpp"
#include "hub/registry/repositories.hpp"

namespace neuron_kernels::hub::registry {

class KnownFiles {
 public:
  struct Place {
    const RepositoryKey& repository;
    const std::string& commit;  // whole id
    const std::string& path;
  };
  struct Found {
    std::optional<LfsPointer> file;
    std::uint64_t era = 0;  // for keep()
  };
  Found find(const Place& place);
  /// Not if a repository was forgotten since `era`: the file may be of one that is gone.
  void keep(const Place& place, const LfsPointer& file, std::uint64_t era);
  /// For a repository that is removed or gets another name.
  void forget();

 private:
  std::mutex mutex_;
  Recent<LfsPointer> files_{2048};
  std::uint64_t era_ = 0;
};

}  // namespace neuron_kernels::hub::registry
