// What the references of one repository lead to: objects of git, and the objects of the store that pointers
// among them name.
#pragma once

#include <git2.h>

#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

namespace neuron_kernels::hub::registry {

struct HashOfOid {
  std::size_t operator()(const git_oid& id) const {
    std::size_t hash = 0;
    std::memcpy(&hash, id.id, sizeof hash);  // a digest: any of its bytes will do
    return hash;
  }
};
struct SameOid {
  bool operator()(const git_oid& a, const git_oid& b) const { return git_oid_equal(&a, &b) != 0; }
};
using OidSet = std::unordered_set<git_oid, HashOfOid, SameOid>;

/// Everything that was reachable at any of the calls.
class Reachable {
 public:
  /// Which blobs are read: what may be a pointer, or all, to check their digests.
  enum class Blobs { pointers, all };
  explicit Reachable(Blobs blobs = Blobs::pointers) : blobs_(blobs) {}

  /// Adds what the references lead to now; quick if little is new.
  /// errors: HubError integrity or storage if an object is missing or damaged, or a reference is no commit
  void extend(git_repository* repository);
  /// Adds what one commit leads to. Errors as above.
  void add(git_repository* repository, const git_oid& commit) { walk(repository, {commit}); }

  const OidSet& objects() const { return objects_; }
  /// SHA-256 of all pointers.
  const std::unordered_set<std::string>& named() const { return named_; }

 private:
  struct Step {
    git_oid id;
    git_object_t type;
  };
  void walk(git_repository* repository, const std::vector<git_oid>& tips);
  void visit_commit(git_repository* repository, const git_oid& id, std::vector<Step>& open);
  void visit_tree(git_repository* repository, const git_oid& id, std::vector<Step>& open);
  void visit_blob(git_odb* odb, const git_oid& id);

  Blobs blobs_;
  OidSet objects_;
  std::unordered_set<std::string> named_;
};

}  // namespace neuron_kernels::hub::registry
