#include "hub/registry/housekeeping.hpp"

#include "hub/error.hpp"
#include "hub/registry/store_lock.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;

void require_registry(const fs::path& root) {
  if (fs::is_directory(root / "repos") && fs::is_directory(root / "objects")) return;
  throw HubError(ErrorKind::not_found, "there is no registry in " + root.string(),
                 "name by --root the folder that `kernels serve` was started with");
}

Descriptor begin_housekeeping(const fs::path& root) {
  require_registry(root);
  Descriptor lock = lock_or_conflict(root / "housekeeping.lock",
                                     "another gc or backup works on " + root.string(), "wait for its end");
  fs::remove_all(housekeeping_folder(root));
  return lock;
}

fs::path housekeeping_folder(const fs::path& root) { return root / "housekeeping"; }

}  // namespace neuron_kernels::hub::registry
