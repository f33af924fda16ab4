// What the files that call libgit2 share: owners of its objects, its errors as HubError, ids as text.
#pragma once

#include <git2.h>

#include <filesystem>
#include <memory>
#include <string>

namespace neuron_kernels::hub::registry {

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* object) const { release(object); }
};
template <class T, void (*release)(T*)>
using Held = std::unique_ptr<T, Release<T, release>>;

using HeldRepository = Held<git_repository, git_repository_free>;
using HeldCommit = Held<git_commit, git_commit_free>;
using HeldTree = Held<git_tree, git_tree_free>;
using HeldBlob = Held<git_blob, git_blob_free>;
using HeldObject = Held<git_object, git_object_free>;
using HeldReference = Held<git_reference, git_reference_free>;
using HeldOdb = Held<git_odb, git_odb_free>;

/// libgit2 once per process, with every object and reference synced to the disk.
void start_libgit2();

/// Errors: HubError storage "git cannot ACTION: REASON" for a negative result.
void check_git(int result, const char* action);

/// Takes over what a libgit2 call made; an empty holder if it was not found.
template <class HeldT, class Call>
HeldT made(const char* action, const Call& call) {
  typename HeldT::pointer object = nullptr;
  const int result = call(&object);
  if (result == GIT_ENOTFOUND || result == GIT_EINVALIDSPEC || result == GIT_EAMBIGUOUS) return HeldT();
  check_git(result, action);
  return HeldT(object);
}

/// Errors: HubError integrity if there is no bare repository in `folder`.
HeldRepository open_repository(const std::filesystem::path& folder);

std::string text_of(const git_oid& id);

}  // namespace neuron_kernels::hub::registry
