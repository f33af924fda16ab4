#include "hub/api.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hub/api_error.hpp"
#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/url.hpp"

namespace neuron_kernels::hub {

namespace {

using Json = nlohmann::json;

constexpr int most_pages = 10'000;

/// Runs `read` on the JSON of an answer; anything of another shape is an error that names the URL.
template <class Read>
auto read_json(const Response& response, const std::string& subject, Read read) {
  try {
    return read(Json::parse(response.body));
  } catch (const Json::exception&) {
    throw HubError(ErrorKind::network, "the answer about " + subject + " is not what a hub sends",
                   "check that HF_ENDPOINT names a hub, and that no proxy answers in its place")
        .at(url_without_secrets(response.url), response.status);
  }
}

std::string subject_of(const RepoId& repo) { return std::string(name_of(repo.type)) + " " + repo.text(); }

/// Without control characters, which a terminal would obey.
std::string printable(std::string text) {
  std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
  return text;
}

/// A field that may be absent, null, or of another type.
std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? printable(found->get<std::string>()) : std::string();
}
bool flag_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return false;
  return found->is_boolean() ? found->get<bool>()
                             : found->is_string();  // "gated" is false, "auto" or "manual"
}
std::int64_t number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<std::int64_t>() : 0;
}
std::vector<std::string> texts_of(const Json& object, const char* key) {
  std::vector<std::string> texts;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return texts;
  for (const Json& item : *found) {
    if (item.is_string()) texts.push_back(printable(item.get<std::string>()));
  }
  return texts;
}

RepoInfo repo_info(const Json& object) {
  RepoInfo info{.id = printable(object.at("id").get<std::string>()),
                .author = text_of(object, "author"),
                .commit = text_of(object, "sha"),
                .last_modified = text_of(object, "lastModified"),
                .is_private = flag_of(object, "private"),
                .is_gated = flag_of(object, "gated"),
                .downloads = number_of(object, "downloads"),
                .likes = number_of(object, "likes"),
                .tags = texts_of(object, "tags"),
                .trusted_publisher = {}};
  if (object.contains("trustedKernelPublisher")) {
    info.trusted_publisher = flag_of(object, "trustedKernelPublisher");
  }
  return info;
}

std::vector<Ref> ref_list(const Json& list) {
  std::vector<Ref> refs;
  for (const Json& item : list) {
    Ref ref{.name = printable(item.at("name").get<std::string>()),
            .commit = item.at("targetCommit").get<std::string>()};
    if (!is_hex(ref.commit, 40)) {
      throw HubError(ErrorKind::network, "the server gives '" + ref.commit.substr(0, 80) +
                                             "' as the commit of '" + ref.name +
                                             "'; a commit is 40 hex digits");
    }
    refs.push_back(std::move(ref));
  }
  return refs;
}

TreeEntry tree_entry(const Json& item, const std::string& subject) {
  TreeEntry entry;
  entry.path = item.at("path").get<std::string>();
  entry.is_folder = item.at("type").get<std::string>() == "directory";
  entry.oid = text_of(item, "oid");
  if (entry.is_folder) return entry;
  require_safe_path(entry.path, subject);
  entry.size = item.at("size").get<std::uint64_t>();
  if (const auto lfs = item.find("lfs"); lfs != item.end() && lfs->is_object()) {
    entry.sha256 = lfs->at("oid").get<std::string>();
    entry.size = lfs->at("size").get<std::uint64_t>();
  }
  const bool valid = entry.sha256.empty() ? is_hex(entry.oid, 40) : is_hex(entry.sha256, 64);
  if (!valid) {
    throw HubError(ErrorKind::integrity, subject + " gives no digest for " + entry.path +
                                             ": expected 40 hex digits (git) or 64 (SHA-256)");
  }
  return entry;
}

}  // namespace

std::string next_link(std::string_view link) {
  while (!link.empty()) {
    const std::size_t open = link.find('<'), close = link.find('>', open);
    if (close == link.npos) return {};
    const std::string_view url = link.substr(open + 1, close - open - 1);
    const std::string_view rest = link.substr(close + 1);
    const std::string_view parameters = rest.substr(0, std::min(rest.find(",<"), rest.find(", <")));
    if (parameters.find("rel=\"next\"") != parameters.npos ||
        parameters.find("rel=next") != parameters.npos) {
      return std::string(url);
    }
    link = rest.substr(parameters.size());
  }
  return {};
}

Request Api::request(std::string method, const std::string& path) const {
  Request request;
  request.method = std::move(method);
  request.url = environment_.endpoint + "/" + path;
  request.token = environment_.token;
  return request;
}

Request Api::file_request(const RepoId& repo, const std::string& commit, const std::string& path) const {
  return request("GET", repo.file_path() + "/resolve/" + encode_segment(commit) + "/" + encode_path(path));
}

Response Api::send(Request what, const std::string& subject) {
  Response response = http_.send(std::move(what));
  if (!response.ok()) throw api_error(response, subject, environment_.token_source);
  return response;
}

Refs Api::refs(const RepoId& repo, int connect_retries) {
  Request what = request("GET", "api/" + repo.api_path() + "/refs");
  what.connect_retries = connect_retries;
  const Response response = http_.send(std::move(what));
  if (!response.ok()) {
    const HubError error = api_error(response, subject_of(repo), environment_.token_source);
    if (error.kind == ErrorKind::not_found && repo.type == RepoType::kernel) {
      const RepoId model{.type = RepoType::model, .owner = repo.owner, .name = repo.name};
      if (exists(model)) {
        throw HubError(ErrorKind::not_found, repo.text() + " exists as a model, not as a kernel",
                       "kernel packages have repositories of their own type since kernels 0.14; ask " +
                           repo.owner + " to publish it as a kernel")
            .at(error.url, error.status);
      }
    }
    throw error;
  }
  return read_json(response, subject_of(repo), [](const Json& json) {
    return Refs{.branches = ref_list(json.at("branches")), .tags = ref_list(json.at("tags"))};
  });
}

std::vector<TreeEntry> Api::tree(const RepoId& repo, const std::string& revision, const std::string& folder,
                                 Depth depth) {
  std::string path = "api/" + repo.api_path() + "/tree/" + encode_segment(revision);
  if (!folder.empty()) path += "/" + encode_path(folder);
  std::string query =
      depth == Depth::recursive ? "?recursive=true&expand=false" : "?recursive=false&expand=false";
  const std::string subject = subject_of(repo) + " at " + revision;
  std::vector<TreeEntry> entries;
  for (int page = 0; page < most_pages; ++page) {
    const Response response = send(request("GET", path + query), subject);
    read_json(response, subject, [&](const Json& json) {
      for (const Json& item : json) entries.push_back(tree_entry(item, subject));
      return 0;
    });
    const std::string next = next_link(response.headers.get("Link"));
    if (next.empty()) return entries;
    // Only the query of the link counts: mirrors pass on links that lead to another host, or lose a path
    // prefix.
    const std::size_t mark = next.find('?');
    const std::string next_query = mark == next.npos ? std::string() : next.substr(mark);
    if (next_query.empty() || next_query == query) {
      throw HubError(ErrorKind::network, "the listing of " + subject + " links to itself as its next page")
          .at(url_without_secrets(response.url), response.status);
    }
    query = next_query;
  }
  throw HubError(ErrorKind::network, "the listing of " + subject + " has more than 10000 pages");
}

RepoInfo Api::info(const RepoId& repo, const std::string& revision) {
  const std::string path = "api/" + repo.api_path();
  const Response response =
      send(request("GET", revision.empty() ? path : path + "/revision/" + encode_segment(revision)),
           subject_of(repo));
  return read_json(response, subject_of(repo), repo_info);
}

bool Api::exists(const RepoId& repo) {
  try {
    return http_.send(request("GET", "api/" + repo.api_path())).ok();
  } catch (const HubError& error) {
    if (error.kind == ErrorKind::network) return false;
    throw;
  }
}

Account Api::whoami() {
  if (environment_.token.empty()) {
    throw HubError(ErrorKind::auth,
                   "not logged in: there is no token in HF_TOKEN or " + environment_.token_path.string(),
                   "`kernels login`, or set HF_TOKEN");
  }
  const Response response = send(request("GET", "api/whoami-v2"), "the account");
  return read_json(response, "the account", [](const Json& json) {
    Account account{.name = printable(json.at("name").get<std::string>()),
                    .full_name = text_of(json, "fullname"),
                    .token_name = {},
                    .token_role = {},
                    .organizations = {}};
    const Json::json_pointer pointer("/auth/accessToken");
    if (json.contains(pointer) && json.at(pointer).is_object()) {
      account.token_name = text_of(json.at(pointer), "displayName");
      account.token_role = text_of(json.at(pointer), "role");
    }
    if (const auto orgs = json.find("orgs"); orgs != json.end() && orgs->is_array()) {
      for (const Json& org : *orgs)
        account.organizations.push_back(printable(org.at("name").get<std::string>()));
    }
    return account;
  });
}

std::optional<Organization> Api::organization(const std::string& name) {
  const Response response =
      http_.send(request("GET", "api/organizations/" + encode_segment(name) + "/overview"));
  if (response.status == 404) return std::nullopt;
  if (!response.ok()) throw api_error(response, "organization " + name, environment_.token_source);
  return read_json(response, "organization " + name, [&](const Json& json) {
    return Organization{.name = name,
                        .full_name = text_of(json, "fullname"),
                        .trusted_publisher = flag_of(json, "trustedKernelPublisher")};
  });
}

std::vector<RepoInfo> Api::list(RepoType type, const ListOptions& options) {
  const std::string path = "api/" + std::string(name_of(type)) + "s";
  std::string query = "?limit=" + std::to_string(options.limit);
  if (!options.author.empty()) query += "&author=" + encode_segment(options.author);
  if (!options.search.empty()) query += "&search=" + encode_segment(options.search);
  std::vector<RepoInfo> repos;
  for (int page = 0; page < most_pages; ++page) {
    const Response response = send(request("GET", path + query), "the list of packages");
    read_json(response, "the list of packages", [&](const Json& json) {
      for (const Json& item : json) repos.push_back(repo_info(item));
      return 0;
    });
    const std::string next = next_link(response.headers.get("Link"));
    const std::size_t mark = next.find('?');
    if (repos.size() >= static_cast<std::size_t>(options.limit) || mark == next.npos) break;
    if (next.substr(mark) == query) break;
    query = next.substr(mark);
  }
  if (repos.size() > static_cast<std::size_t>(options.limit))
    repos.resize(static_cast<std::size_t>(options.limit));
  return repos;
}

}  // namespace neuron_kernels::hub
