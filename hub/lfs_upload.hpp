// Sends files to a repository's store of large files by git-lfs over HTTP (transfers basic and multipart).
// Source: git-lfs docs/api/batch.md; multipart as Hugging Face's hub has it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hub/api.hpp"
#include "hub/local_file.hpp"

namespace neuron_kernels::hub {

/// Sends those that the store lacks, several at a time, and has each verified where the server asks for it.
/// The token goes to the endpoint only: never to the store's URLs, which carry their own right.
/// errors: HubError with the file's path
void upload_lfs(Api& api, const RepoId& repo, const std::string& branch,
                const std::vector<const LocalFile*>& files,
                const std::function<void(const std::string&)>& on_progress);

}  // namespace neuron_kernels::hub
