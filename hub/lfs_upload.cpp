#include "hub/lfs_upload.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "hub/api_error.hpp"
#include "hub/error.hpp"
#include "hub/url.hpp"

namespace neuron_kernels::hub {
namespace {

using nlohmann::json;

constexpr std::size_t batch_objects = 100;  // in one request, as git-lfs
constexpr const char* lfs_type = "application/vnd.git-lfs+json";
constexpr std::chrono::seconds store_timeout{120};  // a store checks a whole file before it answers

struct Part {
  std::string url;
  std::uint64_t offset = 0, size = 0;
  std::string etag;  // once it is sent
};

struct Upload {
  const LocalFile* file = nullptr;
  std::string url;          // PUT of all of it; with parts: POST of their list
  json headers;             // to send along
  std::vector<Part> parts;  // empty: basic
  std::string verify_url;
  json verify_headers;
};

class Uploads {
 public:
  Uploads(Api& api, const RepoId& repo, const std::string& branch,
          const std::function<void(const std::string&)>& on_progress)
      : api_(api), repo_(repo), branch_(branch), on_progress_(on_progress) {}

  void run(const std::vector<const LocalFile*>& files) {
    for (std::size_t i = 0; i < files.size(); i += batch_objects) {
      const std::size_t end = std::min(files.size(), i + batch_objects);
      ask({files.begin() + static_cast<std::ptrdiff_t>(i), files.begin() + static_cast<std::ptrdiff_t>(end)});
    }
    for (Upload& upload : uploads_) send(upload);
    api_.http().run();
    for (Upload& upload : uploads_) {
      if (!upload.parts.empty()) complete(upload);
    }
    api_.http().run();
    for (Upload& upload : uploads_) {
      if (!upload.verify_url.empty()) verify(upload);
    }
    api_.http().run();
  }

 private:
  void ask(const std::vector<const LocalFile*>& files) {
    json objects = json::array();
    std::map<std::string, const LocalFile*> by_oid;
    for (const LocalFile* file : files) {
      if (by_oid.emplace(file->sha256, file).second)
        objects.push_back({{"oid", file->sha256}, {"size", file->size}});
    }
    const json question{{"operation", "upload"},
                        {"transfers", {"basic", "multipart"}},
                        {"objects", objects},
                        {"hash_algo", "sha256"},
                        {"ref", {{"name", branch_}}}};
    Request request = api_.request("POST", repo_.file_path() + ".git/info/lfs/objects/batch");
    request.body = Body::text(question.dump(), lfs_type);
    request.headers.emplace_back("Accept", lfs_type);
    request.repeatable = true;
    const Response response = api_.send(std::move(request), "kernel " + repo_.text());
    try {
      const json answer = json::parse(response.body);
      for (const json& object : answer.at("objects")) {
        const auto at = by_oid.find(object.at("oid").get<std::string>());
        if (at == by_oid.end()) continue;
        take(*at->second, object);
        by_oid.erase(at);
      }
    } catch (const json::exception&) {
      throw HubError(ErrorKind::network,
                     "the answer about large files of " + repo_.text() + " is not git-lfs's",
                     "check that HF_ENDPOINT names a hub")
          .at(url_without_secrets(response.url), response.status);
    }
    if (!by_oid.empty()) {
      throw HubError(ErrorKind::network, "the server says nothing about " + by_oid.begin()->second->path)
          .at(url_without_secrets(response.url), response.status);
    }
  }

  void take(const LocalFile& file, const json& object) {
    if (const auto error = object.find("error"); error != object.end()) {
      throw HubError(ErrorKind::failed, "the server does not take " + file.path + ": " +
                                            error->value("message", std::string("no reason")));
    }
    const auto actions = object.find("actions");
    if (actions == object.end() || !actions->contains("upload")) return;  // the store has it
    Upload upload;
    upload.file = &file;
    const json& action = actions->at("upload");
    upload.url = resolve_url(api_.environment().endpoint, action.at("href").get<std::string>());
    upload.headers = action.value("header", json::object());
    if (upload.headers.contains("chunk_size")) split(upload);
    if (const auto verify = actions->find("verify"); verify != actions->end()) {
      upload.verify_url = resolve_url(api_.environment().endpoint, verify->at("href").get<std::string>());
      upload.verify_headers = verify->value("header", json::object());
    }
    uploads_.push_back(std::move(upload));
  }

  // The header of a multipart action lists "chunk_size" and, by number from 1 on, the URLs of the parts.
  void split(Upload& upload) const {
    const json& size = upload.headers["chunk_size"];
    std::uint64_t chunk = size.is_number_unsigned() ? size.get<std::uint64_t>() : 0;
    if (size.is_string()) {
      const auto text = size.get<std::string>();
      std::from_chars(text.data(), text.data() + text.size(), chunk);
    }
    std::uint64_t offset = 0;
    while (chunk > 0 && offset < upload.file->size) {
      const auto url = upload.headers.find(std::to_string(upload.parts.size() + 1));
      if (url == upload.headers.end()) break;
      upload.parts.push_back({resolve_url(api_.environment().endpoint, url->get<std::string>()),
                              offset,
                              std::min(chunk, upload.file->size - offset),
                              {}});
      offset += chunk;
    }
    if (offset < upload.file->size || upload.parts.size() + 1 != upload.headers.size()) {
      throw HubError(ErrorKind::network, "the server splits " + upload.file->path + " (" +
                                             std::to_string(upload.file->size) + " bytes) into " +
                                             std::to_string(upload.headers.size() - 1) + " parts of " +
                                             std::to_string(chunk) + " bytes, which does not fit");
    }
  }

  void send(Upload& upload) {
    if (upload.parts.empty()) {
      Request request = to_store("PUT", upload.url, upload.headers);
      request.body = upload.file->body(0, upload.file->size);
      add(std::move(request), upload,
          [this, &upload](const Response&) { on_progress_("sent " + upload.file->path); });
    }
    for (Part& part : upload.parts) {
      Request request = to_store("PUT", part.url, json::object());
      request.body = upload.file->body(part.offset, part.size);
      add(std::move(request), upload, [&upload, &part](const Response& response) {
        part.etag = std::string(response.headers.get("ETag"));
        if (!part.etag.empty()) return;
        throw HubError(ErrorKind::network, "the store sends no ETag for a part of " + upload.file->path)
            .at(url_without_secrets(response.url), response.status);
      });
    }
  }

  void complete(Upload& upload) {
    json parts = json::array();
    for (const Part& part : upload.parts)
      parts.push_back({{"partNumber", parts.size() + 1}, {"etag", part.etag}});
    Request request = to_store("POST", upload.url, json::object());
    request.body = Body::text(json{{"oid", upload.file->sha256}, {"parts", parts}}.dump(), lfs_type);
    request.idle_timeout = store_timeout;
    add(std::move(request), upload,
        [this, &upload](const Response&) { on_progress_("sent " + upload.file->path); });
  }

  void verify(Upload& upload) {
    Request request = to_store("POST", upload.verify_url, upload.verify_headers);
    request.body =
        Body::text(json{{"oid", upload.file->sha256}, {"size", upload.file->size}}.dump(), lfs_type);
    request.repeatable = true;
    request.idle_timeout = store_timeout;
    const std::string& endpoint = api_.environment().endpoint;
    if (origin_of(upload.verify_url) == origin_of(endpoint)) request.token = api_.environment().token;
    add(std::move(request), upload, [](const Response&) {});
  }

  static Request to_store(const char* method, const std::string& url, const json& headers) {
    Request request;
    request.method = method;
    request.url = url;
    for (const auto& [name, value] : headers.items()) {
      if (value.is_string()) request.headers.emplace_back(name, value.get<std::string>());
    }
    return request;
  }

  void add(Request request, const Upload& upload, std::function<void(const Response&)> done) {
    api_.http().add(std::move(request), [this, &upload, done = std::move(done)](const Http::Result& result) {
      if (result.error != nullptr) std::rethrow_exception(result.error);
      if (!result.response.ok()) {
        throw api_error(result.response, upload.file->path, api_.environment().token_source);
      }
      done(result.response);
    });
  }

  Api& api_;
  const RepoId& repo_;
  const std::string& branch_;
  const std::function<void(const std::string&)>& on_progress_;
  std::vector<Upload> uploads_;
};

}  // namespace

void upload_lfs(Api& api, const RepoId& repo, const std::string& branch,
                const std::vector<const LocalFile*>& files,
                const std::function<void(const std::string&)>& on_progress) {
  if (!files.empty()) Uploads(api, repo, branch, on_progress).run(files);
}

}  // namespace neuron_kernels::hub
