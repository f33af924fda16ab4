// Which commit a revision means: "1", "1.2", "^1", a tag, a branch or a commit, over the refs of a
// repository.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hub/api.hpp"
#include "hub/version.hpp"

namespace neuron_kernels::hub {

struct ResolvedRevision {
  std::string commit;
  std::string name;  // of the ref, or the commit itself
  std::vector<std::string>
      refs;  // names to remember in the cache: `name`, and the version branch of this commit
};

/// A version that a repository offers: tag X.Y.Z (also vX.Y.Z), or branch vN where no tag has that major
/// number.
struct PublishedVersion {
  Version version;
  std::string ref;  // name of the tag or branch
  std::string commit;
  bool is_branch = false;  // its version is N.0.0 for what that range is concerned
};

/// Highest first.
std::vector<PublishedVersion> published_versions(const Refs& refs);

/// Tags X.Y.Z and all version branches, the branch of a major number before its releases.
std::vector<PublishedVersion> all_versions(const Refs& refs);

/// In this order: a tag or branch of that name; "N" as branch vN; a full commit; a range of versions; a
/// commit by its first 7 or more digits if a ref points to it. subject: "kernel org/name", for messages.
/// errors: HubError not_found with the versions there are; usage if it could be no revision
ResolvedRevision resolve_revision(const Refs& refs, const std::string& revision, const std::string& subject);

/// "v1 (branch), 1.2.0, 1.1.0": for messages; "none" if there is none.
std::string versions_text(const Refs& refs);

}  // namespace neuron_kernels::hub
