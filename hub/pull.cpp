#include "hub/pull.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/snapshot.hpp"
#include "hub/text.hpp"
#include "hub/variant_metadata.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t most_versions_looked_at = 5;  // for the advice to take another one; a request each

class Puller {
 public:
  Puller(Api& api, const PullOptions& options) : api_(api), options_(options) {}

  Pulled pull(const Reference& reference, const std::string& asked_by);

 private:
  std::string choose_variant(const Reference& reference, const Snapshot& snapshot, Pulled& pulled);
  std::string advice(const Reference& reference, const Snapshot& snapshot);
  const Platform& platform();
  void fetch(const Snapshot& snapshot, const RepoCache& cache, SnapshotRecord& record, Pulled& pulled,
             const std::vector<const TreeEntry*>& files);
  void show_trust(Pulled& pulled);
  void pull_dependencies(const VariantMetadata& metadata, Pulled& pulled);
  void require_expected(const std::vector<const TreeEntry*>& files, const Pulled& pulled) const;

  struct Taken {
    std::string commit, revision, asked_by;
  };
  Api& api_;
  const PullOptions& options_;
  std::optional<Platform> platform_;
  std::map<std::string, Taken> taken_;  // by repository: one version each
};

std::string subject_of(const RepoId& repo) { return std::string(name_of(repo.type)) + " " + repo.text(); }

const Platform& Puller::platform() {
  if (!platform_) platform_ = find_platform(options_.platform);
  return *platform_;
}

Pulled Puller::pull(const Reference& reference, const std::string& asked_by) {
  const RepoCache cache(api_.environment(), reference.repo);
  Snapshot snapshot = find_snapshot(api_, reference, cache, options_.download.on_notice);
  const std::string& commit = snapshot.revision.commit;
  Pulled pulled{.repo = reference.repo,
                .revision = snapshot.revision.name,
                .commit = commit,
                .variant = {},
                .snapshot = cache.snapshot(commit),
                .folder = cache.snapshot(commit),
                .files = {},
                .decisions = {},
                .from_cache = snapshot.from_cache,
                .trust = {},
                .dependencies = {}};
  taken_[reference.repo.text()] = {commit, reference.revision, asked_by};
  std::string prefix;
  if (!options_.all_files) {
    pulled.variant = choose_variant(reference, snapshot, pulled);
    prefix = "build/" + pulled.variant + "/";
    pulled.folder = pulled.snapshot / "build" / pulled.variant;
  }
  std::vector<const TreeEntry*> files;
  for (const TreeEntry& entry : snapshot.record.tree()) {
    if (!entry.path.starts_with(prefix)) continue;
    files.push_back(&entry);
    pulled.files.push_back(entry.path.substr(prefix.size()));
    pulled.total_bytes += entry.size;
  }
  if (options_.expected_files != nullptr) require_expected(files, pulled);
  if (options_.plan_only) {
    if (!snapshot.from_cache) show_trust(pulled);
    return pulled;
  }
  if (options_.all_files) {
    fetch(snapshot, cache, snapshot.record, pulled, files);
    cache.write_refs(snapshot.revision.refs, commit);
    snapshot.record.save();
    return pulled;
  }
  const std::string metadata_path = prefix + "metadata.json";
  const std::string subject = metadata_path + " of " + subject_of(reference.repo);
  const auto metadata_file = std::find_if(files.begin(), files.end(),
                                          [&](const TreeEntry* file) { return file->path == metadata_path; });
  if (metadata_file == files.end()) {
    throw HubError(ErrorKind::integrity,
                   subject + " at " + pulled.revision + " is missing: variant " + pulled.variant +
                       " was published without it",
                   "ask the publisher to publish it again (`kernels push` writes it), name another one with "
                   "--variant, or pull the files as they are with --all");
  }
  if (platform_ && !platform_->device_archs.empty())
    fetch(snapshot, cache, snapshot.record, pulled, {*metadata_file});
  if (platform_ && !platform_->device_archs.empty()) {  // before the rest is downloaded
    require_suitable(parse_variant_metadata(read_file(pulled.snapshot / metadata_path), subject), *platform_,
                     subject);
  }
  fetch(snapshot, cache, snapshot.record, pulled, files);
  const VariantMetadata metadata =
      parse_variant_metadata(read_file(pulled.snapshot / metadata_path), subject);
  if (platform_) require_suitable(metadata, *platform_, subject);
  if (!snapshot.record.is_variant_checked(pulled.variant)) {
    std::map<std::string, std::string> known;
    for (const TreeEntry* file : files) {
      if (!file->sha256.empty()) known[file->path.substr(prefix.size())] = file->sha256;
    }
    require_digests(metadata, pulled.folder, subject, known);
    snapshot.record.mark_variant_checked(pulled.variant);
  }
  cache.write_refs(snapshot.revision.refs, commit);
  snapshot.record.save();
  if (options_.dependencies) pull_dependencies(metadata, pulled);
  return pulled;
}

std::string Puller::choose_variant(const Reference& reference, const Snapshot& snapshot, Pulled& pulled) {
  const std::vector<std::string> names = variant_names(snapshot.record.tree());
  const std::string where = reference.repo.text() + " (revision: " + snapshot.revision.name + ")";
  if (!options_.variant.empty()) {
    std::string folder = variant_folder(options_.variant);
    if (std::find(names.begin(), names.end(), folder) != names.end()) return folder;
    throw HubError(ErrorKind::not_found, where + " has no variant " + folder +
                                             "; variants: " + (names.empty() ? "none" : joined(names)));
  }
  if (names.empty()) {
    throw HubError(ErrorKind::not_found, where + " has no variants: there is no folder build/",
                   "versions are on branches vN: `kernels versions " + reference.repo.text() +
                       "`; --all pulls the files as they are");
  }
  pulled.decisions = decide_variants(names, platform());
  if (!pulled.decisions.empty() && pulled.decisions.front().accepted())
    return pulled.decisions.front().variant.name;
  std::string message = "Cannot find a build variant for this system (" + platform().text() + ") in " +
                        where + ":\n" + trace_text(pulled.decisions, "  ");
  for (const std::string& name : names) {
    if (!parse_variant(name)) message += "\n  " + name + ": its name follows no known pattern";
  }
  if (!platform().torch) {
    message += "\n  no PyTorch was found in " +
               (platform().torch_source.empty() ? std::string("PATH") : platform().torch_source);
  }
  const std::string suggestion = snapshot.from_cache ? std::string() : advice(reference, snapshot);
  throw HubError(ErrorKind::incompatible, message,
                 suggestion.empty()
                     ? "--python names another Python environment; --variant takes one as it is"
                     : suggestion);
}

std::string Puller::advice(const Reference& reference, const Snapshot& snapshot) {
  Refs refs;
  try {
    refs = api_.refs(reference.repo);
    std::size_t looked_at = 0;
    for (const PublishedVersion& version : published_versions(refs)) {
      if (version.commit == snapshot.revision.commit) continue;
      if (++looked_at > most_versions_looked_at) break;
      const auto names = variant_names(api_.tree(reference.repo, version.commit, "build", Depth::folder));
      const auto decisions = decide_variants(names, platform());
      if (decisions.empty() || !decisions.front().accepted()) continue;
      return "However, version " + version.ref + " of " + reference.repo.text() +
             " has a build that is compatible with this system: `kernels pull " + reference.repo.text() +
             "@" + version.ref + "`";
    }
  } catch (const HubError&) {  // the error that is on its way says more
  }
  return {};
}

void Puller::fetch(const Snapshot& snapshot, const RepoCache& cache, SnapshotRecord& record, Pulled& pulled,
                   const std::vector<const TreeEntry*>& files) {
  std::vector<const TreeEntry*> wanted;
  std::error_code ignored;
  const bool anything = fs::exists(pulled.snapshot, ignored);
  for (const TreeEntry* file : files) {
    const auto state = anything ? record.check(*file) : SnapshotRecord::State::missing;
    if (state == SnapshotRecord::State::ready) continue;
    const fs::path path = pulled.snapshot / file->path;
    if (snapshot.from_cache && state == SnapshotRecord::State::missing) {
      throw HubError(ErrorKind::not_found,
                     path.string() + " is not in the cache, and no hub can be asked for it",
                     "pull it once with the network on");
    }
    if (state == SnapshotRecord::State::corrupt) {
      if (snapshot.from_cache) {
        throw HubError(ErrorKind::integrity,
                       "the cached " + path.string() + " is damaged (checksum mismatch)",
                       "pull it with the network on: it is then downloaded again");
      }
      if (options_.download.on_notice) {
        options_.download.on_notice("the cached " + path.string() +
                                    " is damaged (checksum mismatch); it is downloaded again");
      }
      fs::remove(path, ignored);
      fs::remove(cache.blob(file->blob()), ignored);
    }
    wanted.push_back(file);
  }
  if (wanted.empty()) return;
  show_trust(pulled);
  Download download(api_, pulled.repo, pulled.commit, cache, record, options_.download);
  try {
    download.run(wanted);
  } catch (...) {
    record.save();  // what is complete stays known
    throw;
  }
  pulled.received_bytes += download.received_bytes();
}

void Puller::show_trust(Pulled& pulled) {
  if (pulled.trust || pulled.repo.type != RepoType::kernel || !has_python(pulled.files)) return;
  pulled.trust = publisher_trust(api_, pulled.repo.owner);
  if (!options_.download.on_notice) return;
  options_.download.on_notice(pulled.repo.text() + " has Python code; " +
                              trust_text(*pulled.trust, pulled.repo.owner));
}

void Puller::require_expected(const std::vector<const TreeEntry*>& files, const Pulled& pulled) const {
  for (const TreeEntry* file : files) {
    const auto expected = options_.expected_files->find(file->path);
    const std::string found = (file->sha256.empty() ? "git-sha1:" : "sha256:") + file->blob();
    if (expected != options_.expected_files->end() && expected->second == found) continue;
    throw HubError(ErrorKind::integrity,
                   file->path + " of " + pulled.repo.text() + " at " + pulled.commit + " is " + found +
                       "; kernel.lock has " +
                       (expected == options_.expected_files->end() ? "no such file" : expected->second),
                   "a commit never changes: the hub or the lock was altered; look at both before `kernels "
                   "lock --upgrade`");
  }
}

void Puller::pull_dependencies(const VariantMetadata& metadata, Pulled& pulled) {
  for (const KernelDependency& dependency : metadata.kernel_depends) {
    const Reference reference{.repo = parse_repo_id(dependency.repository), .revision = dependency.revision};
    const auto known = taken_.find(reference.repo.text());
    if (known == taken_.end()) {
      pulled.dependencies.push_back(pull(reference, pulled.repo.text() + "@" + pulled.revision));
      continue;
    }
    if (known->second.revision == dependency.revision) continue;
    const RepoCache cache(api_.environment(), reference.repo);
    const Snapshot other = find_snapshot(api_, reference, cache, options_.download.on_notice);
    if (other.revision.commit == known->second.commit) continue;
    throw HubError(ErrorKind::incompatible,
                   "two versions of " + reference.repo.text() + " are needed, and only one can be loaded: " +
                       known->second.asked_by + " asks for '" + known->second.revision + "', " +
                       pulled.repo.text() + "@" + pulled.revision + " for '" + dependency.revision + "'",
                   "pull other versions of the two, or one of them with --no-deps");
  }
}

}  // namespace

Pulled pull(Api& api, const Reference& reference, const PullOptions& options) {
  return Puller(api, options).pull(reference, "the command line");
}

void export_files(const Pulled& pulled, const fs::path& dst) {
  make_folders(dst);
  for (const std::string& file : pulled.files) {
    const fs::path target = dst / file;
    make_folders(target.parent_path());
    TemporaryFile temporary(dst / "kernels");
    std::error_code error;
    fs::copy_file(pulled.folder / file, temporary.path(), fs::copy_options::overwrite_existing, error);
    if (error) throw HubError(ErrorKind::storage, "cannot write " + target.string() + ": " + error.message());
    temporary.commit(target, Sync::no);
  }
}

}  // namespace neuron_kernels::hub
