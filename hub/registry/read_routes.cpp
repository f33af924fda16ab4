// Routes that read: lists, information, references, trees, histories.
#include <map>

#include "hub/digest.hpp"
#include "hub/registry/service.hpp"

namespace neuron_kernels::hub::registry {

using json = nlohmann::ordered_json;

namespace {

json entry_json(const TreeEntry& entry, const CommitInfo* last) {
  json j{{"type", entry.folder ? "directory" : "file"},
         {"oid", entry.oid},
         {"size", entry.size},
         {"path", entry.path}};
  if (entry.lfs) {
    j["lfs"] = {
        {"oid", entry.lfs->sha256}, {"size", entry.lfs->size}, {"pointerSize", entry.lfs->text().size()}};
  }
  if (last != nullptr) {
    j["lastCommit"] = {{"id", last->id}, {"title", last->title}, {"date", last->date}};
    if (!entry.folder)
      j["securityFileStatus"] = {{"status", "safe"}, {"avScan", nullptr}, {"pickleImportScan", nullptr}};
  }
  return j;
}

/// The commit that last changed each of `entries`, found by walking back from `head`.
std::map<std::string, CommitInfo> last_commits(const GitRepository& repository, const std::string& head,
                                               const std::vector<TreeEntry>& entries) {
  std::map<std::string, CommitInfo> found;
  std::size_t total = 0;
  const auto history = repository.commits(head, 0, 10000, total);
  for (std::size_t i = 0; i < history.size() && found.size() < entries.size(); ++i) {
    const bool first = i + 1 == history.size();
    for (const TreeEntry& entry : entries) {
      if (found.contains(entry.path)) continue;
      const auto before = first ? std::nullopt : repository.entry(history[i + 1].id, entry.path);
      if (!before || before->oid != entry.oid) found.emplace(entry.path, history[i]);
    }
  }
  return found;
}

json references_json(const std::vector<Reference>& references, const std::string& prefix) {
  json list = json::array();
  for (const Reference& r : references) {
    list.push_back({{"name", r.name}, {"ref", prefix + r.name}, {"targetCommit", r.commit}});
  }
  return list;
}

}  // namespace

json Service::info_of(const RepositoryKey& key, const RepositorySettings& settings,
                      const GitRepository& repository, const std::string& commit, bool files,
                      bool blobs) const {
  const CommitInfo head = repository.commit_info(commit);
  const auto organisation = accounts_.organisation(key.owner());
  json j{{"_id", sha256_hex(key.id).substr(0, 24)},
         {"id", key.id},
         {"author", key.owner()},
         {"sha", commit},
         {"lastModified", head.date},
         {"createdAt", settings.created},
         {"private", settings.is_private},
         {"gated", settings.gated.empty() ? json(false) : json(settings.gated)},
         {"disabled", false},
         {"downloads", 0},
         {"likes", 0},
         {"tags", json::array()},
         {"trustedKernelPublisher", organisation && organisation->trusted}};
  if (key.type == RepositoryType::model) j["modelId"] = key.id;
  if (!files) return j;
  std::uint64_t used = 0;
  json siblings = json::array();
  const auto entries = repository.list(commit, "", true);
  for (const TreeEntry& entry : *entries) {
    if (entry.folder) continue;
    used += entry.size;
    json sibling{{"rfilename", entry.path}};
    if (blobs) {
      sibling["size"] = entry.size;
      sibling["blobId"] = entry.oid;
      if (entry.lfs) {
        sibling["lfs"] = {{"sha256", entry.lfs->sha256},
                          {"size", entry.lfs->size},
                          {"pointerSize", entry.lfs->text().size()}};
      }
    }
    siblings.push_back(std::move(sibling));
  }
  j["siblings"] = std::move(siblings);
  j["usedStorage"] = used;
  return j;
}

std::unique_ptr<Exchange> Service::list_repositories(const Call& call, RepositoryType type) {
  return without_body([this, call, type] {
    const auto entries = visible(call, type, call.head.parameter("search"), call.head.parameter("author"));
    Fields fields;
    json list = json::array();
    for (const auto& [key, settings] : page_of(call.head, entries, 100, fields)) {
      if (!repositories_.find(key)) continue;  // deleted meanwhile
      const GitRepository repository = open(key);
      if (const auto head = repository.resolve("main")) {
        list.push_back(info_of(key, settings, repository, *head, false, false));
      }
    }
    Reply reply = Reply::json(list.dump());
    reply.fields.insert(reply.fields.end(), fields.begin(), fields.end());
    return reply;
  });
}

std::unique_ptr<Exchange> Service::info(const Call& call, const RepositoryKey& key,
                                        const std::string& revision) {
  const RepositorySettings settings = require(call, key, Right::read);
  return without_body([this, call, key, revision, settings] {
    const GitRepository repository = open(key);
    const std::string commit = require_revision(repository, revision);
    if (call.head.query.find("expand=xetEnabled") != std::string::npos) {
      return Reply::json(json{{"id", key.id}, {"xetEnabled", false}}.dump());
    }
    return Reply::json(info_of(key, settings, repository, commit, true, call.head.flag("blobs")).dump());
  });
}

std::unique_ptr<Exchange> Service::refs(const Call& call, const RepositoryKey& key) {
  require(call, key, Right::read);
  return without_body([this, call, key] {
    const GitRepository repository = open(key);
    json j{{"branches", references_json(repository.branches(), "refs/heads/")},
           {"tags", references_json(repository.tags(), "refs/tags/")},
           {"converts", json::array()}};
    if (call.head.flag("include_prs")) {
      json requests = json::array();
      for (const Reference& r : repository.pull_requests()) {
        const std::string name = "refs/pr/" + r.name;
        requests.push_back({{"name", name}, {"ref", name}, {"targetCommit", r.commit}});
      }
      j["pullRequests"] = std::move(requests);
    }
    return Reply::json(j.dump());
  });
}

std::unique_ptr<Exchange> Service::tree(const Call& call, const RepositoryKey& key,
                                        const std::string& revision, const std::string& folder) {
  require_gate(call, key, require(call, key, Right::read));
  return without_body([this, call, key, revision, folder] {
    const GitRepository repository = open(key);
    const std::string commit = require_revision(repository, revision);
    const auto entries = repository.list(commit, folder, call.head.flag("recursive"));
    if (!entries) {
      throw HttpError{404,
                      folder + " does not exist on \"" + revision + "\"",
                      "EntryNotFound",
                      {{"X-Repo-Commit", commit}}};
    }
    const bool expand = call.head.flag("expand");
    Fields fields{{"X-Repo-Commit", commit}};
    const auto page =
        page_of(call.head, *entries, static_cast<std::size_t>(expand ? 50 : limits_.page_entries), fields);
    std::map<std::string, CommitInfo> last;
    if (expand) last = last_commits(repository, commit, page);
    json list = json::array();
    for (const TreeEntry& entry : page)
      list.push_back(entry_json(entry, expand ? &last[entry.path] : nullptr));
    Reply reply = Reply::json(list.dump());
    reply.fields.insert(reply.fields.end(), fields.begin(), fields.end());
    return reply;
  });
}

std::unique_ptr<Exchange> Service::paths_info(const Call& call, const RepositoryKey& key,
                                              const std::string& revision) {
  require_gate(call, key, require(call, key, Right::read));
  const bool is_json = call.head.field("Content-Type").find("json") != std::string_view::npos;
  return with_body(limits_.json_bytes, [this, key, revision, is_json](const std::string& body) {
    std::vector<std::string> paths;
    bool expand = false;
    if (is_json) {
      const json j = json::parse(body);
      paths = j.at("paths").get<std::vector<std::string>>();
      expand = j.value("expand", false);
    } else {
      std::size_t begin = 0;
      while (begin < body.size()) {
        const std::size_t end = std::min(body.find('&', begin), body.size());
        const std::string pair = body.substr(begin, end - begin);
        if (pair.starts_with("paths=")) paths.push_back(percent_decoded(pair.substr(6), true));
        if (pair == "expand=true" || pair == "expand=True" || pair == "expand=1") expand = true;
        begin = end + 1;
      }
    }
    const GitRepository repository = open(key);
    const std::string commit = require_revision(repository, revision);
    std::vector<TreeEntry> entries;
    for (std::string path : paths) {
      while (path.ends_with('/')) path.pop_back();
      if (auto entry = repository.entry(commit, path)) entries.push_back(std::move(*entry));
    }
    std::map<std::string, CommitInfo> last;
    if (expand) last = last_commits(repository, commit, entries);
    json list = json::array();
    for (const TreeEntry& entry : entries)
      list.push_back(entry_json(entry, expand ? &last[entry.path] : nullptr));
    Reply reply = Reply::json(list.dump());
    reply.fields.emplace_back("X-Repo-Commit", commit);
    return reply;
  });
}

std::unique_ptr<Exchange> Service::commits(const Call& call, const RepositoryKey& key,
                                           const std::string& revision) {
  require(call, key, Right::read);
  return without_body([this, call, key, revision] {
    const GitRepository repository = open(key);
    const std::string commit = require_revision(repository, revision);
    const std::size_t start = page_start(call.head), length = page_length(call.head, 50);
    std::size_t total = 0;
    json list = json::array();
    for (const CommitInfo& c : repository.commits(commit, start, length, total)) {
      list.push_back({{"id", c.id},
                      {"title", c.title},
                      {"message", c.message},
                      {"date", c.date},
                      {"authors", {{{"user", c.author}, {"avatar", ""}}}}});
    }
    Reply reply = Reply::json(list.dump());
    reply.fields.emplace_back("X-Total-Count", std::to_string(total));
    if (start + length < total) reply.fields.emplace_back("Link", next_link(call.head, start + length));
    return reply;
  });
}

}  // namespace neuron_kernels::hub::registry
