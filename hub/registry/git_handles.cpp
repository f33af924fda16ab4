#include "hub/registry/git_handles.hpp"

#include "hub/error.hpp"

namespace neuron_kernels::hub::registry {

void start_libgit2() {
  static const bool once = [] {
    git_libgit2_init();
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
    return true;
  }();
  static_cast<void>(once);
}

void check_git(int result, const char* action) {
  if (result >= 0) return;
  const git_error* error = git_error_last();
  throw HubError(ErrorKind::storage, std::string("git cannot ") + action + ": " +
                                         (error != nullptr ? error->message : "unknown reason"));
}

HeldRepository open_repository(const std::filesystem::path& folder) {
  start_libgit2();
  auto repository = made<HeldRepository>(
      "open a repository", [&](git_repository** r) { return git_repository_open_bare(r, folder.c_str()); });
  if (repository != nullptr) return repository;
  throw HubError(ErrorKind::integrity, folder.string() + " is not a bare git repository");
}

std::string text_of(const git_oid& id) {
  char digits[GIT_OID_HEXSZ + 1];
  return git_oid_tostr(digits, sizeof digits, &id);
}

}  // namespace neuron_kernels::hub::registry
