// kernels versions, info, search, list, verify: questions to a hub.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "hub/error.hpp"
#include "hub/platform.hpp"
#include "hub/publisher.hpp"
#include "hub/revision.hpp"
#include "hub/signature_check.hpp"
#include "hub/snapshot.hpp"
#include "hub/snapshot_check.hpp"
#include "hub/variant.hpp"
#include "hub/variant_metadata.hpp"

namespace neuron_kernels::cli {
namespace {

using nlohmann::json;

struct Options {
  HubOptions hub;
  std::string name, author;
  int limit = 100;
  bool require_signature = false;
  hub::RepoType type = hub::RepoType::kernel;
};

/// A number that sorts and reads as people write it: "v1" of a branch, "1.2.0" of a tag.
json json_of(const hub::PublishedVersion& version) {
  return {{"version", version.is_branch ? std::to_string(version.version.major) : version.version.text()},
          {"ref", version.ref},
          {"commit", version.commit},
          {"branch", version.is_branch}};
}

void show_versions(const Options& options, const Global& global) {
  Session session(options.hub, global);
  const hub::RepoId repo = hub::parse_repo_id(options.name, options.type);
  hub::Refs refs;
  if (session.environment().offline)
    refs = hub::RepoCache(session.environment(), repo).refs();
  else
    refs = session.api().refs(repo);
  const std::vector<hub::PublishedVersion> versions = hub::all_versions(refs);
  if (global.json) {
    json document = json::array();
    for (const hub::PublishedVersion& version : versions) document.push_back(json_of(version));
    return print(document);
  }
  for (const hub::PublishedVersion& version : versions) {
    std::printf("%-16s %s%s\n", version.ref.c_str(), version.commit.c_str(),
                version.is_branch ? "  (branch)" : "");
  }
  if (versions.empty()) notice(global, repo.text() + " has no versions: no branch vN, no tag X.Y.Z");
}

json json_of(const hub::RepoInfo& info) {
  json document{{"repository", info.id},      {"author", info.author},          {"commit", info.commit},
                {"private", info.is_private}, {"gated", info.is_gated},         {"downloads", info.downloads},
                {"likes", info.likes},        {"modified", info.last_modified}, {"tags", info.tags}};
  if (info.trusted_publisher) document["trusted_publisher"] = *info.trusted_publisher;
  return document;
}

json json_of(const std::vector<hub::Decision>& decisions) {
  json list = json::array();
  for (const hub::Decision& decision : decisions) {
    list.push_back(
        {{"variant", decision.variant.name}, {"accepted", decision.accepted()}, {"reason", decision.reason}});
  }
  return list;
}

/// What metadata.json says, of the variant that would be taken.
json metadata_of(hub::Api& api, const hub::RepoId& repo, const std::string& commit,
                 const std::string& variant) {
  const std::string path = "build/" + variant + "/metadata.json";
  const std::string subject = path + " of " + repo.text();
  const hub::Response response = api.send(api.file_request(repo, commit, path), subject);
  const hub::VariantMetadata metadata = hub::parse_variant_metadata(response.body, subject);
  json needs = json::array();
  for (const hub::KernelDependency& dependency : metadata.kernel_depends) {
    needs.push_back(dependency.repository + "@" + dependency.revision);
  }
  return {{"name", metadata.name},
          {"version",
           metadata.package_version.empty() ? std::to_string(metadata.version) : metadata.package_version},
          {"license", metadata.license},
          {"backend", metadata.backend},
          {"archs", metadata.archs},
          {"python_depends", metadata.python_depends},
          {"kernel_depends", needs},
          {"source", metadata.source},
          {"source_commit", metadata.commit}};
}

void print_fields(const json& document, const std::string& indent) {
  for (const auto& [key, value] : document.items()) {
    if (value.is_null() || (value.is_array() && value.empty()) || value == "") continue;
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_array() && value.front().is_string()) {
      text.clear();
      for (const json& item : value) text += (text.empty() ? "" : ", ") + item.get<std::string>();
    }
    std::printf("%s%s: %s\n", indent.c_str(), key.c_str(), text.c_str());
  }
}

hub::Trust trust_of(hub::Api& api, const hub::RepoId& repo, const hub::RepoInfo& info) {
  if (!info.trusted_publisher) return hub::publisher_trust(api, repo.owner);
  return *info.trusted_publisher ? hub::Trust::trusted : hub::Trust::untrusted;
}

void show_info(const Options& options, const Global& global) {
  Session session(options.hub, global);
  hub::Api& api = session.api();
  const hub::Reference reference = hub::parse_reference(options.name, options.type);
  const hub::Refs refs = api.refs(reference.repo);
  const hub::RepoInfo info = api.info(reference.repo);
  const auto versions = hub::published_versions(refs);
  json document = json_of(info);
  document["versions"] = hub::versions_text(refs);
  std::vector<hub::Decision> decisions;
  if (!reference.revision.empty() || !versions.empty()) {
    const std::string wanted = reference.revision.empty() ? versions.front().ref : reference.revision;
    const hub::ResolvedRevision revision = hub::resolve_revision(
        refs, wanted, std::string(hub::name_of(options.type)) + " " + reference.repo.text());
    const auto tree = api.tree(reference.repo, revision.commit, "", hub::Depth::recursive);
    document["revision"] = revision.name;
    document["commit"] = revision.commit;
    decisions = hub::decide_variants(hub::variant_names(tree), hub::find_platform());
    if (!decisions.empty()) {
      document["metadata"] =
          metadata_of(api, reference.repo, revision.commit, decisions.front().variant.name);
    }
  }
  if (global.json) {
    document["variants"] = json_of(decisions);
    return print(document);
  }
  const json metadata = document.value("metadata", json::object());
  document.erase("metadata");
  if (options.type == hub::RepoType::kernel) {
    document.erase("trusted_publisher");
    document["publisher"] = hub::trust_text(trust_of(api, reference.repo, info), reference.repo.owner);
  }
  print_fields(document, "");
  print_fields(metadata, "  ");
  if (!decisions.empty()) std::printf("variants:\n%s\n", hub::trace_text(decisions, "  ").c_str());
}

void print_repos(const std::vector<hub::RepoInfo>& repos, const Global& global) {
  if (global.json) {
    json document = json::array();
    for (const hub::RepoInfo& info : repos) document.push_back(json_of(info));
    return print(document);
  }
  for (const hub::RepoInfo& info : repos) {
    if (global.quiet)
      std::printf("%s\n", info.id.c_str());
    else
      std::printf("%-48s %8lld downloads  %s%s\n", info.id.c_str(), static_cast<long long>(info.downloads),
                  info.last_modified.substr(0, 10).c_str(), info.is_private ? "  private" : "");
  }
}

void list(const Options& options, const Global& global) {
  Session session(options.hub, global);
  print_repos(session.api().list(options.type,
                                 {.author = options.author, .search = options.name, .limit = options.limit}),
              global);
}

/// The signed variants of the snapshot, with the key; throws for one whose signature does not hold.
json check_signatures(hub::Api& api, const hub::Reference& reference, const hub::Snapshot& snapshot,
                      const hub::RepoCache& cache, bool required) {
  json keys = json::object();
  const std::filesystem::path folder = cache.snapshot(snapshot.revision.commit);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "build", error)) {
    const std::string variant = entry.path().filename().string();
    const bool is_signed = hub::is_signed(snapshot.record, variant);
    if (!is_signed && !required) continue;
    hub::Pulled pulled;
    pulled.repo = reference.repo;
    pulled.revision = snapshot.revision.name;
    pulled.commit = snapshot.revision.commit;
    pulled.variant = variant;
    pulled.snapshot = folder;
    pulled.folder = entry.path();
    pulled.from_cache = snapshot.from_cache;
    keys[variant] = hub::require_signature(api, pulled).id();
  }
  return keys;
}

void verify(const Options& options, const Global& global) {
  Session session(options.hub, global);
  const hub::Reference reference = hub::parse_reference(options.name, options.type);
  const hub::RepoCache cache(session.environment(), reference.repo);
  hub::Snapshot snapshot = hub::find_snapshot(session.api(), reference, cache,
                                              [&](const std::string& text) { notice(global, text); });
  const hub::SnapshotCheck check = hub::check_snapshot(cache, snapshot.revision.commit, snapshot.record);
  if (check.checked == 0) {
    throw hub::HubError(hub::ErrorKind::not_found, reference.text() + " is not in the cache",
                        "`kernels pull " + reference.text() + "` brings it there");
  }
  json signatures = json::object();
  if (check.good()) {
    snapshot.record.save();
    signatures = check_signatures(session.api(), reference, snapshot, cache, options.require_signature);
  }
  if (global.json) {
    print({{"repository", reference.repo.text()},
           {"commit", snapshot.revision.commit},
           {"checked", check.checked},
           {"bytes", check.bytes},
           {"damaged", check.damaged},
           {"missing", check.missing},
           {"unknown", check.unknown},
           {"signatures", signatures}});
  } else {
    for (const std::string& path : check.damaged) std::printf("checksum mismatch: %s\n", path.c_str());
    for (const std::string& path : check.missing) std::printf("missing: %s\n", path.c_str());
    for (const std::string& path : check.unknown) std::printf("not in the package: %s\n", path.c_str());
    for (const auto& [variant, key] : signatures.items()) {
      std::printf("%s: signed by %s\n", variant.c_str(), key.get<std::string>().c_str());
    }
  }
  if (!check.good()) {
    throw hub::HubError(
        hub::ErrorKind::integrity,
        reference.text() + " in the cache differs from its commit " + snapshot.revision.commit,
        "`kernels pull " + reference.text() + "` downloads damaged and missing files again");
  }
  if (!global.json && !global.quiet) {
    std::printf("%s: %zu files, %s: ok\n", reference.text().c_str(), check.checked,
                size_text(check.bytes).c_str());
  }
}

}  // namespace

void add_query(CLI::App& app, Global& global) {
  const auto options = std::make_shared<Options>();
  const auto add = [&](const char* name, const char* text, const char* what, bool required) {
    CLI::App* command = app.add_subcommand(name, text);
    CLI::Option* option = command->add_option(
        what, options->name, std::string(what) == "WORD" ? "Part of a name" : "OWNER/NAME[@VERSION]");
    if (required) option->required();
    add_type_option(*command, options->type);
    add_hub_options(*command, options->hub);
    return command;
  };
  CLI::App* versions = add("versions", "Versions of a package: branches vN and tags X.Y.Z", "NAME", true);
  add_examples(*versions,
               "  kernels versions kernels-community/activation\n  kernels versions my-org/scale --json");
  versions->callback([options, &global] { show_versions(*options, global); });

  CLI::App* info = add("info", "What a package is, and which variant suits this machine", "NAME", true);
  add_examples(*info, "  kernels info my-org/scale\n  kernels info my-org/scale@1 --json");
  info->callback([options, &global] { show_info(*options, global); });

  CLI::App* search = add("search", "Packages with a word in their name", "WORD", true);
  search->add_option("--author", options->author, "Only of this user or organisation");
  search->add_option("--limit", options->limit, "At most so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  add_examples(*search, "  kernels search attention\n  kernels search norm --author my-org --json");
  search->callback([options, &global] { list(*options, global); });

  CLI::App* listing = app.add_subcommand("list", "Packages of the hub, or of one owner");
  listing->add_option("OWNER", options->author, "User or organisation");
  listing->add_option("--limit", options->limit, "At most so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  add_type_option(*listing, options->type);
  add_hub_options(*listing, options->hub);
  add_examples(*listing, "  kernels list my-org\n  kernels list my-org -q          names only");
  listing->callback([options, &global] { list(*options, global); });

  CLI::App* check =
      add("verify", "Compares the cached files and signatures with the hub's commit", "NAME", true);
  check->add_flag("--require-signature", options->require_signature, "Fail for a variant that is not signed");
  add_examples(*check,
               "  kernels verify my-org/scale@1\n  kernels verify my-org/scale@1.2.0 --offline --json");
  check->callback([options, &global] { verify(*options, global); });
}

}  // namespace neuron_kernels::cli
