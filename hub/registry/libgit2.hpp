// libgit2 from C++: objects that free themselves, results that throw, ids as text.
#pragma once

#include <git2.h>

#include <filesystem>
#include <memory>
#include <string>

namespace neuron_kernels::hub::registry::libgit2 {

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* object) const { release(object); }
};
template <class T, void (*release)(T*)>
using Held = std::unique_ptr<T, Release<T, release>>;
using Repository = Held<git_repository, git_repository_free>;
using Commit = Held<git_commit, git_commit_free>;
using Tree = Held<git_tree, git_tree_free>;
using Blob = Held<git_blob, git_blob_free>;
using Tag = Held<git_tag, git_tag_free>;
using Ref = Held<git_reference, git_reference_free>;
using RefIterator = Held<git_reference_iterator, git_reference_iterator_free>;
using Odb = Held<git_odb, git_odb_free>;
using OdbObject = Held<git_odb_object, git_odb_object_free>;
using Index = Held<git_index, git_index_free>;
using Walk = Held<git_revwalk, git_revwalk_free>;
using Entry = Held<git_tree_entry, git_tree_entry_free>;
using Signature = Held<git_signature, git_signature_free>;
using Object = Held<git_object, git_object_free>;
using PackBuilder = Held<git_packbuilder, git_packbuilder_free>;

/// libgit2 once per process, with every object and reference synced to the disk.
void start();

/// libgit2's reason for its last failure on this thread.
std::string last_error();

/// Errors: HubError storage "git cannot ACTION: REASON" for a negative result.
void check(int result, const char* action);

/// Takes over what a libgit2 call made; an empty holder if it was not found.
template <class HeldT, class Call>
HeldT made(const char* action, const Call& call) {
  typename HeldT::pointer object = nullptr;
  const int result = call(&object);
  if (result == GIT_ENOTFOUND || result == GIT_EINVALIDSPEC || result == GIT_EAMBIGUOUS) return HeldT();
  check(result, action);
  return HeldT(object);
}

/// Errors: HubError integrity if there is no bare repository in `folder`.
Repository open_repository(const std::filesystem::path& folder);
Odb objects_of(git_repository* repository);
Blob lookup_blob(git_repository* repository, const git_oid& id);
std::string content_of(const git_blob* blob);

std::string text_of(const git_oid& id);
/// Errors: HubError storage if the text is no id.
git_oid oid_of(const std::string& text);

}  // namespace neuron_kernels::hub::registry::libgit2
