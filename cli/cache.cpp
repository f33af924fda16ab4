// kernels cache ls|rm|prune|verify: the cache that is shared with Hugging Face's Python tools.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "hub/cache_index.hpp"
#include "hub/error.hpp"
#include "hub/snapshot_check.hpp"
#include "hub/text.hpp"

namespace neuron_kernels::cli {
namespace {

using nlohmann::json;

struct Options {
  HubOptions hub;
  std::string name;
  bool dry_run = false, all_types = false;
};

void add_cache_options(CLI::App& command, Options& options) {
  command.add_option("--cache", options.hub.cache, "Cache folder (KERNELS_CACHE, HF_HUB_CACHE)");
  command.add_flag("--all-types", options.all_types, "Models and datasets too");
}

/// The repositories that are meant: the named one, or all kernels.
std::vector<hub::CachedRepo> chosen(const Options& options, const hub::Environment& environment) {
  std::vector<hub::CachedRepo> repos = hub::scan_cache(environment);
  if (!options.all_types) {
    std::erase_if(repos, [](const hub::CachedRepo& repo) { return repo.repo.type != hub::RepoType::kernel; });
  }
  if (options.name.empty()) return repos;
  const hub::Reference reference = hub::parse_reference(options.name);
  std::erase_if(repos,
                [&](const hub::CachedRepo& repo) { return repo.repo.text() != reference.repo.text(); });
  if (repos.empty()) {
    throw hub::HubError(hub::ErrorKind::not_found,
                        reference.repo.text() + " is not in the cache " + environment.cache.string(),
                        "`kernels cache ls` lists what is");
  }
  return repos;
}

std::string column_of(const std::vector<std::string>& texts) {
  return texts.empty() ? "-" : hub::joined(texts, ",");
}

json json_of(const hub::CachedRepo& repo) {
  json revisions = json::array();
  for (const hub::CachedRevision& revision : repo.revisions) {
    revisions.push_back({{"commit", revision.commit},
                         {"refs", revision.refs},
                         {"variants", revision.variants},
                         {"files", revision.files},
                         {"bytes", revision.bytes},
                         {"modified", revision.modified_s}});
  }
  return {{"repository", repo.repo.text()},
          {"type", hub::name_of(repo.repo.type)},
          {"folder", repo.folder},
          {"disk_bytes", repo.disk_bytes},
          {"revisions", revisions}};
}

void list(const Options& options, const Global& global) {
  const std::vector<hub::CachedRepo> repos = chosen(options, environment_of(options.hub));
  if (global.json) {
    json document = json::array();
    for (const hub::CachedRepo& repo : repos) document.push_back(json_of(repo));
    return print(document);
  }
  for (const hub::CachedRepo& repo : repos) {
    for (const hub::CachedRevision& revision : repo.revisions) {
      std::printf("%-40s %s  %9s  %-16s %s\n", repo.repo.text().c_str(),
                  revision.commit.substr(0, 12).c_str(), size_text(revision.bytes).c_str(),
                  column_of(revision.refs).c_str(), column_of(revision.variants).c_str());
    }
  }
}

void report(const hub::Removed& removed, const hub::CachedRepo& repo, const Options& options,
            const Global& global) {
  if (global.json) {
    return print({{"repository", repo.repo.text()},
                  {"commits", removed.commits},
                  {"files", removed.files},
                  {"bytes", removed.bytes},
                  {"dry_run", options.dry_run}});
  }
  if (global.quiet) return;
  std::printf("%s: %s %zu revisions, %zu files, %s\n", repo.repo.text().c_str(),
              options.dry_run ? "would remove" : "removed", removed.commits.size(), removed.files,
              size_text(removed.bytes).c_str());
}

void remove(const Options& options, const Global& global) {
  const hub::Environment environment = environment_of(options.hub);
  const std::string revision = hub::parse_reference(options.name).revision;
  for (const hub::CachedRepo& repo : chosen(options, environment)) {
    std::vector<std::string> commits;
    for (const hub::CachedRevision& cached : repo.revisions) {
      const bool named =
          std::find(cached.refs.begin(), cached.refs.end(), revision) != cached.refs.end() ||
          (revision.size() >= 7 && cached.commit.starts_with(revision)) ||
          std::find(cached.refs.begin(), cached.refs.end(), "v" + revision) != cached.refs.end();
      if (revision.empty() || named) commits.push_back(cached.commit);
    }
    if (commits.empty() && !revision.empty()) {
      throw hub::HubError(hub::ErrorKind::not_found,
                          repo.repo.text() + " has no revision '" + revision + "' in the cache",
                          "`kernels cache ls " + repo.repo.text() + "` lists them");
    }
    report(hub::remove_revisions(repo, environment, commits,
                                 options.dry_run ? hub::DryRun::yes : hub::DryRun::no),
           repo, options, global);
  }
}

void prune(const Options& options, const Global& global) {
  const hub::Environment environment = environment_of(options.hub);
  for (const hub::CachedRepo& repo : chosen(options, environment)) {
    report(hub::prune(repo, environment, options.dry_run ? hub::DryRun::yes : hub::DryRun::no), repo, options,
           global);
  }
}

void verify(const Options& options, const Global& global) {
  const hub::Environment environment = environment_of(options.hub);
  json document = json::array();
  std::size_t bad = 0;
  for (const hub::CachedRepo& repo : chosen(options, environment)) {
    const hub::RepoCache cache(environment, repo.repo);
    for (const hub::CachedRevision& revision : repo.revisions) {
      hub::SnapshotRecord record(cache, revision.commit);
      if (!record.has_tree())
        record.set_tree_from_snapshot();  // of another client: blobs are named by digest
      const hub::SnapshotCheck check = hub::check_snapshot(cache, revision.commit, record);
      bad += check.good() ? 0 : 1;
      if (global.json) {
        document.push_back({{"repository", repo.repo.text()},
                            {"commit", revision.commit},
                            {"checked", check.checked},
                            {"damaged", check.damaged},
                            {"missing", check.missing},
                            {"unknown", check.unknown}});
        continue;
      }
      std::printf("%s %s: %zu files, %s: %s\n", repo.repo.text().c_str(),
                  revision.commit.substr(0, 12).c_str(), check.checked, size_text(check.bytes).c_str(),
                  check.good() ? "ok" : "DAMAGED");
      for (const std::string& path : check.damaged) std::printf("  checksum mismatch: %s\n", path.c_str());
      for (const std::string& path : check.missing) std::printf("  missing: %s\n", path.c_str());
      for (const std::string& path : check.unknown) std::printf("  not in the package: %s\n", path.c_str());
    }
  }
  if (global.json) print(document);
  if (bad == 0) return;
  throw hub::HubError(hub::ErrorKind::integrity, std::to_string(bad) + " revisions in the cache are damaged",
                      "`kernels pull` downloads damaged files again");
}

}  // namespace

void add_cache(CLI::App& app, Global& global) {
  CLI::App* group = app.add_subcommand("cache", "What is in the cache, and taking it out");
  group->require_subcommand(1);
  const auto options = std::make_shared<Options>();

  CLI::App* ls = group->add_subcommand("ls", "Lists revisions with size, refs and variants");
  ls->add_option("NAME", options->name, "OWNER/NAME; all if there is none");
  add_cache_options(*ls, *options);
  add_examples(*ls, "  kernels cache ls\n  kernels cache ls my-org/scale --json");
  ls->callback([options, &global] { list(*options, global); });

  CLI::App* rm = group->add_subcommand("rm", "Removes a package or one of its revisions");
  rm->add_option("NAME", options->name, "OWNER/NAME, or OWNER/NAME@REVISION")->required();
  rm->add_flag("--dry-run", options->dry_run, "Say what would go");
  add_cache_options(*rm, *options);
  add_examples(*rm, "  kernels cache rm my-org/scale\n  kernels cache rm my-org/scale@v1 --dry-run");
  rm->callback([options, &global] { remove(*options, global); });

  CLI::App* pr = group->add_subcommand("prune", "Removes revisions without a ref, unused blobs, leftovers");
  pr->add_option("NAME", options->name, "OWNER/NAME; all if there is none");
  pr->add_flag("--dry-run", options->dry_run, "Say what would go");
  add_cache_options(*pr, *options);
  add_examples(*pr, "  kernels cache prune --dry-run\n  kernels cache prune");
  pr->callback([options, &global] { prune(*options, global); });

  CLI::App* vf = group->add_subcommand("verify", "Checks every byte against its digest, offline");
  vf->add_option("NAME", options->name, "OWNER/NAME; all if there is none");
  add_cache_options(*vf, *options);
  add_examples(*vf, "  kernels cache verify\n  kernels cache verify my-org/scale --json");
  vf->callback([options, &global] { verify(*options, global); });
}

}  // namespace neuron_kernels::cli
