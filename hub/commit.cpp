#include "hub/commit.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "hub/api_error.hpp"
#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/lfs_upload.hpp"
#include "hub/ndjson_body.hpp"
#include "hub/url.hpp"

namespace neuron_kernels::hub {
namespace {

using nlohmann::json;

constexpr std::size_t preupload_files = 256;  // the Hub's limit
constexpr std::uint64_t sample_bytes = 512;   // by which the server tells text from binary
constexpr std::chrono::seconds commit_timeout{120};

std::string subject(const RepoId& repo) { return "kernel " + repo.text(); }

Request post(Api& api, const std::string& path, const json& content) {
  Request request = api.request("POST", path);
  request.body = Body::json(content.dump());
  return request;
}

/// Sends it; false on 409, which says that there is one already.
bool send_new(Api& api, Request request, const std::string& what) {
  const Response response = api.http().send(std::move(request));
  if (response.status == 409) return false;
  if (!response.ok()) throw api_error(response, what, api.environment().token_source);
  return true;
}

struct Modes {
  std::set<std::string> lfs, ignored;  // paths
};

Modes ask_modes(Api& api, const RepoId& repo, const std::string& branch,
                const std::vector<const LocalFile*>& files) {
  Modes modes;
  for (std::size_t i = 0; i < files.size(); i += preupload_files) {
    json list = json::array();
    for (std::size_t j = i; j < std::min(files.size(), i + preupload_files); ++j) {
      const LocalFile& file = *files[j];
      list.push_back(
          {{"path", file.path}, {"size", file.size}, {"sample", to_base64(file.read(0, sample_bytes))}});
    }
    Request request =
        post(api, "api/" + repo.api_path() + "/preupload/" + encode_segment(branch), {{"files", list}});
    request.repeatable = true;
    const Response response = api.send(std::move(request), subject(repo));
    try {
      const json answer = json::parse(response.body);
      for (const json& file : answer.at("files")) {
        const auto path = file.at("path").get<std::string>();
        if (file.at("uploadMode") == "lfs") modes.lfs.insert(path);
        if (file.value("shouldIgnore", false)) modes.ignored.insert(path);
      }
    } catch (const json::exception&) {
      throw HubError(ErrorKind::network, "the server does not say how to send files to " + repo.text())
          .at(url_without_secrets(response.url), response.status);
    }
  }
  return modes;
}

}  // namespace

bool create_repository(Api& api, const RepoId& repo, Visibility visibility) {
  json content{{"name", repo.name}, {"organization", repo.owner}, {"type", name_of(repo.type)}};
  if (visibility == Visibility::owner) content["visibility"] = "private";
  const Response response = api.http().send(post(api, "api/repos/create", content));
  if (response.status == 409) return false;
  if (response.status == 403) {
    throw HubError(ErrorKind::auth, "you may not create " + repo.text() + ": " + server_message(response),
                   "push under your own name, or ask for the right to write in '" + repo.owner +
                       "'; the token from " + api.environment().token_source + " must allow writing, too")
        .at(url_without_secrets(response.url), response.status);
  }
  if (!response.ok()) throw api_error(response, subject(repo), api.environment().token_source);
  return true;
}

bool create_branch(Api& api, const RepoId& repo, const std::string& branch) {
  return send_new(api,
                  post(api, "api/" + repo.api_path() + "/branch/" + encode_segment(branch), json::object()),
                  subject(repo) + ", branch " + branch);
}

void create_tag(Api& api, const RepoId& repo, const std::string& tag, const std::string& commit) {
  const json content{{"tag", tag}, {"message", "Version " + tag}};
  if (send_new(api, post(api, "api/" + repo.api_path() + "/tag/" + encode_segment(commit), content),
               subject(repo) + ", tag " + tag)) {
    return;
  }
  throw HubError(ErrorKind::conflict,
                 repo.text() + " got a tag " + tag + " from someone else in the meantime",
                 "`kernels versions " + repo.text() + "` shows what is there");
}

void delete_tag(Api& api, const RepoId& repo, const std::string& tag) {
  api.send(api.request("DELETE", "api/" + repo.api_path() + "/tag/" + encode_segment(tag)),
           subject(repo) + ", tag " + tag);
}

std::string commit_files(Api& api, const RepoId& repo, const std::string& branch, const Change& change,
                         const std::function<void(const std::string&)>& on_progress) {
  const Modes modes = ask_modes(api, repo, branch, change.files);
  std::vector<const LocalFile*> lfs, regular;
  for (const LocalFile* file : change.files) {
    if (modes.ignored.contains(file->path)) {
      on_progress("left out, as the server asks: " + file->path);
    } else {
      (modes.lfs.contains(file->path) && file->size > 0 ? lfs : regular).push_back(file);
    }
  }
  upload_lfs(api, repo, branch, lfs, on_progress);

  NdjsonBody lines;
  json header{{"summary", change.summary}, {"description", ""}};
  if (!change.parent.empty()) header["parentCommit"] = change.parent;
  lines.add({{"key", "header"}, {"value", header}});
  for (const std::string& path : change.gone) {
    lines.add({{"key", "deletedFile"}, {"value", {{"path", path}}}});
  }
  for (const LocalFile* file : regular) lines.add_file(*file);
  for (const LocalFile* file : lfs) {
    lines.add(
        {{"key", "lfsFile"},
         {"value", {{"path", file->path}, {"algo", "sha256"}, {"oid", file->sha256}, {"size", file->size}}}});
  }
  Request request = api.request("POST", "api/" + repo.api_path() + "/commit/" + encode_segment(branch));
  request.body = lines.body();
  request.idle_timeout = commit_timeout;
  const Response response = api.http().send(std::move(request));
  if (response.status == 412) {
    throw HubError(
        ErrorKind::conflict,
        "branch " + branch + " of " + repo.text() + " moved while this was sent: " + server_message(response),
        "nothing was changed; push again to put this on top of what is there now")
        .at(url_without_secrets(response.url), response.status);
  }
  if (!response.ok()) throw api_error(response, subject(repo), api.environment().token_source);
  const json answer = json::parse(response.body, nullptr, false);
  const std::string commit = answer.is_object() ? answer.value("commitOid", json("")).dump() : "";
  if (commit.size() != 42 || !is_hex(std::string_view(commit).substr(1, 40), 40)) {
    throw HubError(ErrorKind::network, "the server does not say which commit it made on " + repo.text(),
                   "see what is there by: kernels info " + repo.text())
        .at(url_without_secrets(response.url), response.status);
  }
  return commit.substr(1, 40);
}

}  // namespace neuron_kernels::hub
