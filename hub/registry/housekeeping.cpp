#include "hub/registry/housekeeping.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "hub/error.hpp"
#include "hub/registry/store_lock.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;

void require_registry(const fs::path& root) {
  if (fs::is_directory(root / "repos") && fs::is_directory(root / "objects")) return;
  throw HubError(ErrorKind::not_found, "there is no registry in " + root.string(),
                 "name by --root the folder that `kernels serve` was started with");
}

namespace {

/// What somebody else writes, locks among it, the server could not change.
void require_owner(const fs::path& root) {
  struct stat status {};
  if (::stat(root.c_str(), &status) != 0) storage_error("read", root, errno);
  if (status.st_uid == ::geteuid()) return;
  throw HubError(ErrorKind::usage,
                 root.string() + " belongs to the user with the id " + std::to_string(status.st_uid) +
                     ", and this one has the id " + std::to_string(::geteuid()),
                 "do housekeeping as the user that the server runs as");
}

}  // namespace

Descriptor begin_housekeeping(const fs::path& root) {
  require_registry(root);
  require_owner(root);
  Descriptor lock = lock_or_conflict(root / "housekeeping.lock",
                                     "another gc or backup works on " + root.string(), "wait for its end");
  fs::remove_all(housekeeping_folder(root));
  return lock;
}

fs::path housekeeping_folder(const fs::path& root) { return root / "housekeeping"; }

}  // namespace neuron_kernels::hub::registry
