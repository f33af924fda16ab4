// libgit2 from C++: objects that free themselves, results that throw.
#pragma once

#include <git2.h>

#include <memory>
#include <string>

#include "hub/error.hpp"

namespace neuron_kernels::hub::registry::libgit2 {

template <class T, void (*release)(T*)>
struct Release {
  void operator()(T* object) const { release(object); }
};
template <class T, void (*release)(T*)>
using Held = std::unique_ptr<T, Release<T, release>>;
using Commit = Held<git_commit, git_commit_free>;
using Tree = Held<git_tree, git_tree_free>;
using Blob = Held<git_blob, git_blob_free>;
using Ref = Held<git_reference, git_reference_free>;
using RefIterator = Held<git_reference_iterator, git_reference_iterator_free>;
using Odb = Held<git_odb, git_odb_free>;
using Index = Held<git_index, git_index_free>;
using Walk = Held<git_revwalk, git_revwalk_free>;
using Entry = Held<git_tree_entry, git_tree_entry_free>;
using Signature = Held<git_signature, git_signature_free>;
using Object = Held<git_object, git_object_free>;

/// libgit2's reason for its last failure on this thread.
inline std::string last_error() {
  const git_error* error = git_error_last();
  return error != nullptr ? error->message : "unknown reason";
}

inline void check(int result, const char* action) {
  if (result >= 0) return;
  throw HubError(ErrorKind::storage, std::string("git cannot ") + action + ": " + last_error());
}

/// Takes over what a libgit2 call made; an empty holder if it was not found.
template <class HeldT, class Call>
HeldT made(const char* action, const Call& call) {
  typename HeldT::pointer object = nullptr;
  const int result = call(&object);
  if (result == GIT_ENOTFOUND || result == GIT_EINVALIDSPEC || result == GIT_EAMBIGUOUS) return HeldT();
  check(result, action);
  return HeldT(object);
}

inline Blob lookup_blob(git_repository* repository, const git_oid& id) {
  return made<Blob>("read a blob", [&](git_blob** b) { return git_blob_lookup(b, repository, &id); });
}

inline std::string content_of(const git_blob* blob) {
  return {static_cast<const char*>(git_blob_rawcontent(blob)),
          static_cast<std::size_t>(git_blob_rawsize(blob))};
}

}  // namespace neuron_kernels::hub::registry::libgit2
