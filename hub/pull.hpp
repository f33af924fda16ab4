// `kernels pull`: a version of a package, as the variant that suits the machine, whole and checked in the
// cache.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hub/api.hpp"
#include "hub/download.hpp"
#include "hub/platform.hpp"
#include "hub/publisher.hpp"
#include "hub/repository.hpp"
#include "hub/variant.hpp"

namespace neuron_kernels::hub {

struct PullOptions {
  std::string variant = {};  // folder below build/, or "header-only"; empty: the best for the platform
  bool all_files = false;    // the whole revision, no variant chosen
  bool plan_only = false;  // finds out what would be pulled, and downloads nothing but the refs and the tree
  bool dependencies = true;  // also the kernels that metadata.json names
  PlatformOverrides platform = {};
  /// Digests as kernel.lock has them ("sha256:..." or "git-sha1:..."), by path; null: those of the hub count.
  const std::map<std::string, std::string>* expected_files = nullptr;
  DownloadOptions download = {};
};

struct Pulled {
  RepoId repo;
  std::string revision, commit;  // revision: the tag or branch that was taken, or the commit
  std::string variant;           // empty if all files were pulled
  std::filesystem::path snapshot;
  std::filesystem::path folder;    // of the variant; the snapshot if all files were pulled
  std::vector<std::string> files;  // relative to `folder`
  std::uint64_t total_bytes = 0, received_bytes = 0;
  std::vector<Decision> decisions;
  bool from_cache = false;  // no hub was asked, or none answered
  /// Of who published it: asked, and told to download.on_notice, before Python code is downloaded.
  std::optional<Trust> trust;
  std::vector<Pulled> dependencies;
};

/// Brings it into the cache and remembers its refs, so that the Python tools find it offline.
/// errors: HubError usage without a version (it lists them); incompatible if no variant is suitable, with the
/// reason for each; else as Api, Download
Pulled pull(Api& api, const Reference& reference, const PullOptions& options);

/// Copies what was pulled to `dst` as plain files.
void export_files(const Pulled& pulled, const std::filesystem::path& dst);

}  // namespace neuron_kernels::hub
