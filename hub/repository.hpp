// Which repository is meant: its type, its id, and what both are called in URLs and in the cache.
#pragma once

#include <string>
#include <string_view>

namespace neuron_kernels::hub {

enum class RepoType { kernel, model, dataset };

struct RepoId {
  RepoType type = RepoType::kernel;
  std::string owner, name;

  /// "owner/name"
  std::string text() const { return owner + "/" + name; }
  /// "kernels/owner/name": what follows "/api/"
  std::string api_path() const;
  /// "kernels/owner/name", for a model "owner/name": what follows the endpoint for files and git
  std::string file_path() const;
  /// "kernels--owner--name"
  std::string cache_folder() const;
  bool operator==(const RepoId&) const = default;
};

/// "kernel", "model", "dataset"
std::string_view name_of(RepoType type);

/// From "owner/name", also with "kernels/" or an endpoint before it.
/// errors: HubError usage, with what a name may hold
RepoId parse_repo_id(std::string_view text, RepoType type = RepoType::kernel);

/// "NAME[@REVISION]" as the commands take it; the revision is empty if there is none.
struct Reference {
  RepoId repo;
  std::string revision;
  std::string text() const { return revision.empty() ? repo.text() : repo.text() + "@" + revision; }
};
Reference parse_reference(std::string_view text, RepoType type = RepoType::kernel);

}  // namespace neuron_kernels::hub
