// The write side of the Hub's API: repositories, branches, tags, and commits of files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hub/api.hpp"
#include "hub/local_file.hpp"

namespace neuron_kernels::hub {

enum class Visibility { everyone, owner };

/// Returns false if there was one already. Errors: HubError auth that says which right is missing.
bool create_repository(Api& api, const RepoId& repo, Visibility visibility);
/// From the head of main. Returns false if there was one already.
bool create_branch(Api& api, const RepoId& repo, const std::string& branch);
/// Errors: HubError conflict if there is a tag of that name.
void create_tag(Api& api, const RepoId& repo, const std::string& tag, const std::string& commit);
void delete_tag(Api& api, const RepoId& repo, const std::string& tag);

struct Change {
  std::string summary;
  std::string parent;                   // commit that the branch must be at
  std::vector<const LocalFile*> files;  // to add or replace
  std::vector<std::string> gone;        // paths to delete
};

/// One commit, all or nothing; returns its id. Empty files go inline whatever the server says; files that it
/// tells `lfs` go to its store over HTTP. errors: HubError conflict if the branch is not at `parent` any more
std::string commit_files(Api& api, const RepoId& repo, const std::string& branch, const Change& change,
                         const std::function<void(const std::string&)>& on_progress);

}  // namespace neuron_kernels::hub
