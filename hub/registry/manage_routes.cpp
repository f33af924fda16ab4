// Routes that make, change and delete repositories, branches and tags.
#include <ctime>

#include "hub/error.hpp"
#include "hub/registry/service.hpp"

namespace neuron_kernels::hub::registry {

using json = nlohmann::ordered_json;

namespace {

RepositoryType type_in(const json& body) {
  const std::string name =
      body.contains("type") && body["type"].is_string() ? body["type"].get<std::string>() : "model";
  if (const auto type = type_named(name)) return *type;
  throw HttpError{400, "type '" + name + "'; allowed are model, dataset, space, kernel", {}, {}};
}

bool wants_private(const json& body) {
  if (body.contains("visibility") && body["visibility"].is_string()) return body["visibility"] == "private";
  return body.contains("private") && body["private"].is_boolean() && body["private"].get<bool>();
}

/// owner/name of a body that names a repository; the owner is the asker unless it says otherwise.
RepositoryKey key_in(const json& body, const Identity& who) {
  std::string name = body.at("name").get<std::string>(), owner = who.name;
  if (body.contains("organization") && body["organization"].is_string())
    owner = body["organization"].get<std::string>();
  if (const std::size_t slash = name.find('/'); slash != name.npos) {
    owner = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  if (!is_owner_or_repository_name(name)) {
    throw HttpError{
        400,
        "Invalid repo name: '" + name + "'; allowed are letters, digits, '-', '_' and '.', not '--' or '..'",
        {},
        {}};
  }
  return {type_in(body), owner + "/" + name};
}

void require_member(const Identity& who, const RepositoryKey& key, const char* action) {
  if (who.anonymous()) throw HttpError{401, "Invalid username or password.", {}, {}};
  if (who.may_write(key.owner())) return;
  throw no_write_right(who, key,
                       std::string("You don't have the rights to ") + action + " a " +
                           std::string(name_of(key.type)) + " under the namespace \"" + key.owner() + "\"");
}

}  // namespace

std::unique_ptr<Exchange> Service::create_repository(const Call& call) {
  return with_body(limits_.json_bytes, [this, who = call.who,
                                        base = call.head.base_url](const std::string& text) {
    const json body = json::parse(text);
    if (who.anonymous()) throw HttpError{401, "Invalid username or password.", {}, {}};
    const RepositoryKey key = key_in(body, who);
    require_member(who, key, "create");
    const std::string url = base + "/" + path_prefix(key.type) + key.id;
    RepositorySettings settings;
    settings.is_private = wants_private(body);
    settings.created = iso_date(std::time(nullptr));
    if (!repositories_.create(key, settings)) {
      const std::string message =
          "You already created this " + std::string(name_of(key.type)) + " repo: " + key.id;
      Reply reply = Reply::json(json{{"error", message}, {"url", url}}.dump(), 409);
      reply.fields.emplace_back("X-Error-Message", message);
      return reply;
    }
    return Reply::json(json{{"url", url}, {"name", key.id}, {"id", sha256_hex(key.id).substr(0, 24)}}.dump());
  });
}

std::unique_ptr<Exchange> Service::delete_repository(const Call& call) {
  return with_body(limits_.json_bytes, [this, who = call.who, call](const std::string& text) {
    const json body = json::parse(text);
    if (who.anonymous()) throw HttpError{401, "Invalid username or password.", {}, {}};
    const RepositoryKey key = key_in(body, who);
    if (!readable(call, key)) throw HttpError{404, "Repository not found", "RepoNotFound", {}};
    require_member(who, key, "delete");
    if (!repositories_.remove(key)) throw HttpError{404, "Repository not found", "RepoNotFound", {}};
    known_files_.forget();
    return Reply::text("OK");
  });
}

std::unique_ptr<Exchange> Service::move_repository(const Call& call) {
  return with_body(limits_.json_bytes, [this, call](const std::string& text) {
    const json body = json::parse(text);
    const RepositoryType type = type_in(body);
    const RepositoryKey from{type, body.at("fromRepo").get<std::string>()};
    const RepositoryKey to{type, body.at("toRepo").get<std::string>()};
    const std::size_t slash = to.id.find('/');
    if (slash == to.id.npos || !is_owner_or_repository_name(to.id.substr(slash + 1))) {
      throw HttpError{400, "Invalid repo name: '" + to.id + "'; expected owner/name", {}, {}};
    }
    require(call, from, Right::write);
    require_member(call.who, to, "create");
    if (!repositories_.move(from, to))
      throw HttpError{409, "there is a repository " + to.id + " already", {}, {}};
    known_files_.forget();
    return Reply::text("OK");
  });
}

std::unique_ptr<Exchange> Service::settings(const Call& call, const RepositoryKey& key) {
  RepositorySettings now = require(call, key, Right::write);
  return with_body(limits_.json_bytes, [this, key, now](const std::string& text) mutable {
    const json body = json::parse(text);
    if (body.contains("gated")) {
      const json& gated = body["gated"];
      const std::string mode = gated.is_string() ? gated.get<std::string>() : "";
      if (mode != "" && mode != "auto" && mode != "manual") {
        throw HttpError{400, "gated is '" + mode + "'; allowed are false, \"auto\" and \"manual\"", {}, {}};
      }
      now.gated = mode;
    }
    if (body.contains("private") || body.contains("visibility")) now.is_private = wants_private(body);
    repositories_.change(key, now);
    return Reply::json(
        json{{"private", now.is_private}, {"gated", now.gated.empty() ? json(false) : json(now.gated)}}
            .dump());
  });
}

std::unique_ptr<Exchange> Service::branch(const Call& call, const RepositoryKey& key,
                                          const std::string& name) {
  require(call, key, Right::write);
  const bool remove = call.head.method == "DELETE";
  return with_body(limits_.json_bytes, [this, key, name, remove, who = call.who](const std::string& text) {
    GitRepository repository = open(key);
    const auto lock = repositories_.lock(key);
    if (remove) {
      if (name == "main") throw HttpError{403, "Cannot delete the default branch", {}, {}};
      if (!repository.delete_reference("refs/heads/" + name)) {
        throw HttpError{404, "Reference does not exist: " + name, "RevisionNotFound", {}};
      }
      return Reply::text("OK");
    }
    const json body = text.empty() ? json::object() : json::parse(text);
    if (name.starts_with("refs/") || name.empty()) {
      throw HttpError{400, "Invalid reference for a branch: " + name, {}, {}};
    }
    if (repository.reference("refs/heads/" + name)) {
      throw HttpError{409, "Reference already exists: refs/heads/" + name, {}, {}};
    }
    const bool empty =
        body.contains("emptyBranch") && body["emptyBranch"].is_boolean() && body["emptyBranch"].get<bool>();
    const std::string start = body.contains("startingPoint") && body["startingPoint"].is_string()
                                  ? body["startingPoint"].get<std::string>()
                                  : "main";
    const std::string commit =
        empty ? repository.empty_commit(who.name) : require_whole_revision(repository, start);
    if (!repository.create_reference("refs/heads/" + name, commit)) {
      throw HttpError{409, "Reference already exists: refs/heads/" + name, {}, {}};
    }
    return Reply::json(R"({"success":true})");
  });
}

std::unique_ptr<Exchange> Service::tag(const Call& call, const RepositoryKey& key,
                                       const std::string& argument) {
  require(call, key, Right::write);
  const bool remove = call.head.method == "DELETE";
  return with_body(limits_.json_bytes, [this, key, argument, remove](const std::string& text) {
    GitRepository repository = open(key);
    const auto lock = repositories_.lock(key);
    if (remove) {
      if (!repository.delete_reference("refs/tags/" + argument)) {
        throw HttpError{404, "Invalid rev id: " + argument, "RevisionNotFound", {}};
      }
      return Reply::text("OK");
    }
    const std::string name = json::parse(text).at("tag").get<std::string>();
    const std::string commit = require_whole_revision(repository, argument);
    if (!repository.create_reference("refs/tags/" + name, commit)) {
      throw HttpError{409, "Tag reference exists already: " + name, {}, {}};
    }
    return Reply::json(R"({"success":true})");
  });
}

}  // namespace neuron_kernels::hub::registry
