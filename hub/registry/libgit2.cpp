#include "hub/registry/libgit2.hpp"

#include "hub/error.hpp"

namespace neuron_kernels::hub::registry::libgit2 {

void start() {
  static const bool once = [] {
    git_libgit2_init();
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
    return true;
  }();
  static_cast<void>(once);
}

std::string last_error() {
  const git_error* error = git_error_last();
  return error != nullptr ? error->message : "unknown reason";
}

void check(int result, const char* action) {
  if (result >= 0) return;
  throw HubError(ErrorKind::storage, std::string("git cannot ") + action + ": " + last_error());
}

Repository open_repository(const std::filesystem::path& folder) {
  start();
  auto repository = made<Repository>(
      "open a repository", [&](git_repository** r) { return git_repository_open_bare(r, folder.c_str()); });
  if (repository != nullptr) return repository;
  throw HubError(ErrorKind::integrity, folder.string() + " is not a bare git repository");
}

Odb objects_of(git_repository* repository) {
  return made<Odb>("open its objects", [&](git_odb** o) { return git_repository_odb(o, repository); });
}

Blob lookup_blob(git_repository* repository, const git_oid& id) {
  return made<Blob>("read a blob", [&](git_blob** b) { return git_blob_lookup(b, repository, &id); });
}

std::string content_of(const git_blob* blob) {
  return {static_cast<const char*>(git_blob_rawcontent(blob)),
          static_cast<std::size_t>(git_blob_rawsize(blob))};
}

std::string text_of(const git_oid& id) {
  char digits[GIT_OID_HEXSZ + 1];
  return git_oid_tostr(digits, sizeof digits, &id);
}

git_oid oid_of(const std::string& text) {
  git_oid id;
  check(git_oid_fromstr(&id, text.c_str()), "read an object id");
  return id;
}

}  // namespace neuron_kernels::hub::registry::libgit2
