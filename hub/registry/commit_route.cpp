// preupload and commit: how files come in, and how a commit is put on a branch.
#include <algorithm>
#include <optional>

#include "hub/error.hpp"
#include "hub/registry/ndjson.hpp"
#include "hub/registry/service.hpp"

namespace neuron_kernels::hub::registry {

using json = nlohmann::ordered_json;

namespace {

constexpr std::size_t most_preupload_files = 1000;
constexpr const char* taken_meanwhile =
    "was removed by housekeeping while the commit came in. Please try again.";

/// A path in a repository; "build/x.py". Errors: HttpError 400.
std::string checked_path(const json& value) {
  std::string path = value.at("path").get<std::string>();
  try {
    require_safe_path(path, "the commit");
  } catch (const HubError& error) {
    throw HttpError{400, error.what(), {}, {}};
  }
  if (path.size() > 4096 || path == ".git" || path.starts_with(".git/") || path.find("/.git/") != path.npos) {
    throw HttpError{400, "'" + path + "' is a path that a repository cannot hold", {}, {}};
  }
  return path;
}

}  // namespace

std::unique_ptr<Exchange> Service::preupload(const Call& call, const RepositoryKey& key,
                                             const std::string& revision) {
  require(call, key, Right::write);
  return with_body(limits_.json_bytes, [this, key, revision](const std::string& text) {
    const json body = json::parse(text);
    const GitRepository repository = open(key);
    const std::string commit = require_revision(repository, revision);
    if (body.at("files").size() > most_preupload_files) {
      throw HttpError{400, "more than " + std::to_string(most_preupload_files) + " files at a time", {}, {}};
    }
    std::vector<std::string> paths;
    for (const json& file : body.at("files")) paths.push_back(file.at("path").get<std::string>());
    const std::set<std::string> attributed = repository.lfs_paths(commit, paths);
    json files = json::array();
    for (const json& file : body.at("files")) {
      const std::string path = file.at("path").get<std::string>();
      const std::string sample =
          from_base64(file.contains("sample") ? file["sample"].get<std::string>() : "");
      const bool lfs = file.at("size").get<std::uint64_t>() >= limits_.lfs_from_bytes ||
                       sample.find('\0') != sample.npos || attributed.contains(path);
      json answer{{"path", path}, {"uploadMode", lfs ? "lfs" : "regular"}, {"shouldIgnore", false}};
      if (const auto entry = repository.entry(commit, path);
          entry && !entry->folder && entry->lfs.has_value() == lfs) {
        answer["oid"] = lfs ? entry->lfs->sha256 : entry->oid;
      }
      files.push_back(std::move(answer));
    }
    return Reply::json(json{{"files", std::move(files)}, {"commitOid", commit}}.dump());
  });
}

/// Reads the lines of one commit, keeps the files, and puts the commit on its branch.
class CommitExchange final : public Exchange {
 public:
  CommitExchange(Service& service, const Call& call, RepositoryKey key, std::string revision)
      : service_(service),
        key_(std::move(key)),
        revision_(std::move(revision)),
        author_(call.who.name),
        base_(call.head.base_url),
        as_pull_request_(call.head.flag("create_pr")),
        folder_(service.repositories_.folder(key_)),
        repository_(service.open(key_)),
        reader_({[this](Bytes data) { content(data); },
                 [this](const std::string& line, bool had_content) { take(line, had_content); }}) {
    if (!as_pull_request_ && !repository_.reference(full_name())) {
      throw HttpError{404, "Invalid rev id: " + revision_, "RevisionNotFound", {}};
    }
  }

  void body(Bytes data) override {
    received_ += data.size();
    if (received_ > service_.limits_.commit_bytes) {
      throw HttpError{413,
                      "the commit is larger than " + std::to_string(service_.limits_.commit_bytes) +
                          " bytes; upload large files by LFS first",
                      {},
                      {}};
    }
    reader_.add(data);
  }

  Reply finish() override {
    reader_.finish();
    if (!header_) throw HttpError{400, "the commit has no line with the key 'header'", {}, {}};
    const std::string id = as_pull_request_ ? put_on_new_pull_request() : put_on_branch();
    json answer{{"success", true},
                {"commitOid", id},
                {"commitUrl", base_ + "/" + path_prefix(key_.type) + key_.id + "/commit/" + id},
                {"hookOutput", ""}};
    if (as_pull_request_) {
      answer["pullRequestUrl"] = base_ + "/" + path_prefix(key_.type) + key_.id + "/discussions/" + number_;
    }
    return Reply::json(answer.dump());
  }

 private:
  std::string full_name() const {
    return revision_.starts_with("refs/") ? revision_ : "refs/heads/" + revision_;
  }

  void content(Bytes data) {
    if (!incoming_) incoming_.emplace(service_.objects_);
    incoming_->write(data);
  }

  void take(const std::string& line, bool had_content) {
    const json j = json::parse(line);
    const std::string kind = j.at("key").get<std::string>();
    const json& value = j.at("value");
    if (had_content != (kind == "file")) {
      throw HttpError{
          400, "a line with the key '" + kind + "' " + (had_content ? "has" : "has no") + " content", {}, {}};
    }
    if (kind == "header") {
      header_ = value;
    } else if (kind == "file") {
      if (value.value("encoding", "base64") != "base64") {
        throw HttpError{400, "the encoding of a file is not base64, the only one that is taken", {}, {}};
      }
      changes_.files[checked_path(value)] = keep_inline();
    } else if (kind == "lfsFile") {
      pointers_.push_back(pointer_of(value));
      changes_.files[checked_path(value)] = repository_.write_blob(pointers_.back().text());
    } else if (kind == "deletedFile") {
      changes_.deleted_files.push_back(checked_path(value));
    } else if (kind == "deletedFolder") {
      std::string folder = value.at("path").get<std::string>();
      while (folder.ends_with('/')) folder.pop_back();
      changes_.deleted_folders.push_back(folder);
    } else {
      throw HttpError{
          400,
          "a line has the key '" + kind + "'; allowed are header, file, lfsFile, deletedFile, deletedFolder",
          {},
          {}};
    }
  }

  /// The blob for content that came within the commit: itself, or a pointer to an object if it is large.
  std::string keep_inline() {
    if (!incoming_) return repository_.write_blob("");
    Objects::Incoming incoming = std::move(*incoming_);
    incoming_.reset();
    if (incoming.size() < service_.limits_.lfs_from_bytes) {
      return repository_.write_blob(read_file(incoming.path()));
    }
    const LfsPointer pointer{incoming.finish(), incoming.size()};
    incoming.keep_for(folder_);
    pointers_.push_back(pointer);
    return repository_.write_blob(pointer.text());
  }

  LfsPointer pointer_of(const json& value) const {
    const std::string oid = value.at("oid").get<std::string>(), path = value.at("path").get<std::string>();
    if (value.value("algo", "sha256") != "sha256" || !is_hex(oid, 64)) {
      throw HttpError{400, "the LFS object of '" + path + "' is not named by a SHA-256", {}, {}};
    }
    const auto size = service_.objects_.claim(oid, folder_);
    if (!size) {
      throw HttpError{
          400, "LFS object " + oid + " for " + path + " was not uploaded to this repository", {}, {}};
    }
    if (value.contains("size") && value["size"].get<std::uint64_t>() != *size) {
      throw HttpError{
          400,
          "LFS object " + oid + " has " + std::to_string(*size) + " bytes, not those that " + path + " names",
          {},
          {}};
    }
    return {oid, *size};
  }

  std::string text_in_header(const char* name) const {
    return header_->contains(name) && (*header_)[name].is_string() ? (*header_)[name].get<std::string>()
                                                                   : std::string();
  }

  void require_parent(const std::string& head) const {
    const std::string wanted = text_in_header("parentCommit");
    if (!wanted.empty() && !head.starts_with(wanted)) {
      throw HttpError{412,
                      "A commit has happened since " + wanted + ": the branch is at " + head +
                          ". Please refresh and try again.",
                      {},
                      {}};
    }
  }

  /// Under the lock of the repository, so that what is there stays. Housekeeping takes nothing that was sent or
  /// named lately: only a commit that took days can miss something.
  void require_all_there() const {
    const GitRepository now = service_.open(key_);
    for (const auto& [path, blob] : changes_.files) {
      if (!now.has(blob)) throw HttpError{409, "'" + path + "' " + taken_meanwhile, {}, {}};
    }
    for (const LfsPointer& pointer : pointers_) {
      if (!service_.objects_.owned_by(pointer.sha256, folder_)) {
        throw HttpError{409, "LFS object " + pointer.sha256 + " " + taken_meanwhile, {}, {}};
      }
    }
  }

  std::string put_on_branch() {
    const auto lock = service_.repositories_.lock(key_);
    require_all_there();
    const auto head = repository_.reference(full_name());
    if (!head) throw HttpError{404, "Invalid rev id: " + revision_, "RevisionNotFound", {}};
    require_parent(*head);
    const auto id = repository_.commit(full_name(), *head, changes_, text_in_header("summary"),
                                       text_in_header("description"), author_, false);
    if (!id) throw HttpError{409, "The branch moved on while the commit was made. Please try again.", {}, {}};
    return *id;
  }

  std::string put_on_new_pull_request() {
    const auto lock = service_.repositories_.lock(key_);
    require_all_there();
    const std::string head = Service::require_whole_revision(repository_, revision_);
    require_parent(head);
    int next = 1;
    for (const Reference& r : repository_.pull_requests())
      next = std::max(next, std::atoi(r.name.c_str()) + 1);
    number_ = std::to_string(next);
    return *repository_.commit("refs/pr/" + number_, head, changes_, text_in_header("summary"),
                               text_in_header("description"), author_, true);
  }

  Service& service_;
  RepositoryKey key_;
  std::string revision_, author_, base_;
  bool as_pull_request_;
  std::filesystem::path folder_;
  GitRepository repository_;
  NdjsonReader reader_;
  std::uint64_t received_ = 0;
  std::optional<json> header_;
  std::optional<Objects::Incoming> incoming_;  // the content of the line that is being read
  Changes changes_;
  std::vector<LfsPointer> pointers_;  // whose blobs are among the changes
  std::string number_;
};

std::unique_ptr<Exchange> Service::commit(const Call& call, const RepositoryKey& key,
                                          const std::string& revision) {
  require(call, key, Right::write);
  return std::make_unique<CommitExchange>(*this, call, key, revision);
}

}  // namespace neuron_kernels::hub::registry
