#include "hub/snapshot.hpp"

#include <set>
#include <utility>

#include "hub/digest.hpp"
#include "hub/error.hpp"

namespace neuron_kernels::hub {

namespace {

constexpr std::string_view variants_folder = "build/";

std::string subject_of(const RepoId& repo) { return std::string(name_of(repo.type)) + " " + repo.text(); }

bool empty(const Refs& refs) { return refs.branches.empty() && refs.tags.empty(); }

HubError no_revision(const Reference& reference, const Refs& refs) {
  return {
      ErrorKind::usage,
      reference.repo.text() + " needs a version: " + reference.repo.text() +
          "@VERSION; versions: " + versions_text(refs),
      "for example `kernels pull " + reference.repo.text() + "@" +
          (published_versions(refs).empty() ? std::string("main") : published_versions(refs).front().ref) +
          "`"};
}

HubError not_in_cache(const Reference& reference, const RepoCache& cache, const std::string& what) {
  return {ErrorKind::not_found,
          reference.text() + " is not in the cache " + cache.folder().parent_path().string() + " (" + what +
              "), and the network is switched off",
          "pull it once without --offline and HF_HUB_OFFLINE"};
}

ResolvedRevision resolve_in_cache(const Reference& reference, const RepoCache& cache) {
  const Refs refs = cache.refs();
  if (reference.revision.empty()) throw no_revision(reference, refs);
  if (is_hex(reference.revision, 40))
    return {.commit = reference.revision, .name = reference.revision, .refs = {}};
  try {
    ResolvedRevision revision = resolve_revision(refs, reference.revision, subject_of(reference.repo));
    revision.refs.clear();
    return revision;
  } catch (const HubError&) {
    throw not_in_cache(reference, cache, "cached: " + versions_text(refs));
  }
}

/// The first digits of a commit that is no ref's head, or a pull request: no list of refs has them.
bool only_the_hub_knows(const std::string& revision) {
  return revision.starts_with("refs/") || (revision.size() >= 7 && is_hex(revision, revision.size()));
}

void take_tree_from_cache(Snapshot& snapshot, const Reference& reference, const RepoCache& cache) {
  snapshot.from_cache = true;
  if (snapshot.record.has_tree()) return;
  snapshot.record.set_tree_from_snapshot();
  if (snapshot.record.tree().empty())
    throw not_in_cache(reference, cache, "commit " + snapshot.revision.commit);
}

/// The revision, and whether it was found in the cache because the hub does not answer.
std::pair<ResolvedRevision, bool> resolve(Api& api, const Reference& reference, const RepoCache& cache,
                                          const Notice& notice) {
  if (api.environment().offline) return {resolve_in_cache(reference, cache), true};
  const std::string& revision = reference.revision;
  if (is_hex(revision, 40)) return {{.commit = revision, .name = revision, .refs = {}}, false};
  const bool known = !empty(cache.refs());
  try {
    const Refs refs = api.refs(reference.repo, known ? 0 : 2);
    if (revision.empty()) throw no_revision(reference, refs);
    try {
      return {resolve_revision(refs, revision, subject_of(reference.repo)), false};
    } catch (const HubError& error) {
      if (error.kind != ErrorKind::not_found || !only_the_hub_knows(revision)) throw;
      const std::string commit = api.info(reference.repo, revision).commit;
      if (!is_hex(commit, 40)) throw;
      return {{.commit = commit, .name = commit, .refs = {}}, false};
    }
  } catch (const HubError& error) {
    if (error.kind != ErrorKind::network || !known) throw;
    ResolvedRevision cached = resolve_in_cache(reference, cache);
    if (notice) notice(std::string("using the cached copy: ") + error.what());
    return {std::move(cached), true};
  }
}

}  // namespace

Snapshot find_snapshot(Api& api, const Reference& reference, const RepoCache& cache, const Notice& notice) {
  auto [revision, from_cache] = resolve(api, reference, cache, notice);
  const std::string commit = revision.commit;
  Snapshot snapshot{
      .revision = std::move(revision), .record = SnapshotRecord(cache, commit), .from_cache = from_cache};
  if (from_cache) {
    take_tree_from_cache(snapshot, reference, cache);
  } else if (!snapshot.record.has_tree()) {
    try {
      snapshot.record.set_tree(api.tree(reference.repo, commit, "", Depth::recursive));
    } catch (const HubError& error) {
      std::error_code ignored;
      if (error.kind != ErrorKind::network || !std::filesystem::exists(cache.snapshot(commit), ignored))
        throw;
      if (notice) notice(std::string("using the cached copy: ") + error.what());
      take_tree_from_cache(snapshot, reference, cache);
    }
  }
  return snapshot;
}

std::vector<std::string> variant_names(const std::vector<TreeEntry>& tree) {
  std::set<std::string> names;
  for (const TreeEntry& entry : tree) {
    if (!entry.path.starts_with(variants_folder)) continue;
    const std::size_t end = entry.path.find('/', variants_folder.size());
    if (end != entry.path.npos)
      names.insert(entry.path.substr(variants_folder.size(), end - variants_folder.size()));
    else if (entry.is_folder)
      names.insert(entry.path.substr(variants_folder.size()));
  }
  return {names.begin(), names.end()};
}

}  // namespace neuron_kernels::hub
