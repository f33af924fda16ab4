// .gitattributes: which files `git` hands to git-lfs. Clients of the Hub send none, so the registry writes
// them.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

struct git_index;
struct git_oid;
struct git_repository;

namespace neuron_kernels::hub::registry {

/// Path and id of each .gitattributes.
std::set<std::string> attribute_files(git_index* index);

/// Those of `paths` that the .gitattributes of `index` hand to git-lfs.
std::set<std::string> lfs_paths(git_repository* repository, git_index* index,
                                const std::vector<std::string>& paths);

/// Changes the .gitattributes at the root of `index` so that git-lfs gets each of `changed` that is a
/// pointer, and no other of them; each file of the index, if attribute_files() are no longer those of
/// `before`. A line names one file; what else there is stays.
void keep_attributes(git_repository* repository, git_index* index, const std::set<std::string>& before,
                     const std::vector<std::string>& changed,
                     const std::function<bool(const git_oid&)>& is_pointer);

}  // namespace neuron_kernels::hub::registry
