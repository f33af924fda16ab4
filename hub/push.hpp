// Publishes built variants of a package: one commit on branch vN, the tag X.Y.Z, the card on main.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hub/build.hpp"
#include "hub/commit.hpp"
#include "hub/keys.hpp"

namespace neuron_kernels::hub {

struct PushOptions {
  RepoId repo;
  std::optional<std::string> signing_key;        // name in the key store; none: not signed
  Visibility visibility = Visibility::everyone;  // of a repository that is made
  bool retag = false;  // move the tag of this version to the new commit, as for a variant built elsewhere
  std::function<void(const std::string&)> on_progress = [](const std::string&) {};
};

/// What a push is about to publish, without a look at the server.
struct PushPlan {
  std::string branch, tag;
  std::vector<LocalFile> files;  // for the branch, by path
  LocalFile card;                // for main
  std::vector<std::string> variants;
  std::uint64_t bytes() const;
};

/// Reads, hashes and, if asked for, signs everything: a file that cannot be read is an error before any
/// request.
PushPlan plan_push(const std::filesystem::path& folder, const Manifest& manifest,
                   const std::vector<BuiltVariant>& variants, const KeyStore& keys,
                   const PushOptions& options);

struct PushResult {
  std::string commit;    // head of the branch afterwards
  bool changed = false;  // whether there was anything to commit
  bool tagged = false;   // whether the tag was set
  bool card_changed = false;
  std::vector<std::string> sent, gone;  // paths
};

/// Makes repository and branch if they are missing. Files of these variants that are not in the plan are
/// deleted from the branch; other variants stay. Nothing that is there already is sent. errors: HubError
/// conflict if the version is published with other content, a newer one is on the branch, or the branch moves
/// meanwhile; auth, network
PushResult push(Api& api, const PushPlan& plan, const PushOptions& options);

}  // namespace neuron_kernels::hub
