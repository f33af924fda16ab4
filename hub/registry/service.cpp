#include "hub/registry/service.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "hub/error.hpp"
#include "hub/registry/git_http.hpp"
#include "hub/registry/secrets.hpp"
#include "hub/registry/store_lock.hpp"
#include "hub/registry/web_layout.hpp"
#include "hub/text.hpp"

namespace neuron_kernels::hub::registry {

using nlohmann::json;

namespace {

std::string busy(const std::filesystem::path& root) {
  return "another `kernels serve` works on " + root.string();
}
constexpr const char* stop_it = "stop it, or name another --root";

/// Servers may share a root that is read-only.
Descriptor locked_read_only(const std::filesystem::path& root) {
  const std::filesystem::path file = root / "serve.lock";
  Descriptor lock(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock) {
    throw HubError(ErrorKind::storage, "cannot open " + file.string() + ": " + std::strerror(errno),
                   root.string() + " is read-only; only what was a registry before can be served so");
  }
  if (::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw HubError(ErrorKind::conflict, busy(root), stop_it);
  return lock;
}

/// The root for this process alone, without what an earlier one left half done.
Descriptor locked(const std::filesystem::path& root) {
  if (std::filesystem::exists(root) && ::access(root.c_str(), W_OK) != 0) return locked_read_only(root);
  make_folders(root / "tmp");
  Descriptor lock = lock_or_conflict(root / "serve.lock", busy(root), stop_it);
  for (const auto& entry : std::filesystem::directory_iterator(root / "tmp")) {
    if (!entry.path().filename().string().starts_with("parts-")) std::filesystem::remove_all(entry.path());
  }
  return lock;
}

[[noreturn]] void no_such_route() {
  throw HttpError{404, "Sorry, we can't find the page you are looking for.", {}, {}};
}

/// The parts from `from` on as a path.
std::string path_of(const std::vector<std::string>& parts, std::size_t from) {
  return joined(std::span(parts).subspan(std::min(from, parts.size())), "/");
}
std::string without_last_slashes(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  return path;
}

/// git sends what it knows only when asked for Basic; a browser that was asked so would show a window of its
/// own.
const char* challenge_for(std::string_view path) {
  const bool git = path.ends_with("/info/refs") || path.ends_with("/git-upload-pack") ||
                   path.ends_with(".git/info/lfs/objects/batch");
  return git ? "Basic realm=\"user and token\", charset=\"UTF-8\"" : "Bearer";
}

bool is_id(const std::string& owner, const std::string& name) {
  return is_owner_or_repository_name(owner) && is_owner_or_repository_name(name);
}

}  // namespace

Service::Service(const std::filesystem::path& root, const ServiceLimits& limits)
    : root_(root),
      lock_(locked(root)),
      limits_(limits),
      accounts_(root / "accounts.json"),
      objects_(root),
      repositories_(root),
      tickets_(root / "secret"),
      limiter_(limits.rate),
      store_id_(kept_random_hex(root / "store-id", 8, 0644)) {
  make_folders(root_ / "xorbs");
}

std::unique_ptr<Exchange> Service::begin(const RequestHead& head) {
  ++requests_;
  return wants_page(head) ? with_error_pages([&] { return route(head); }) : route(head);
}

std::unique_ptr<Exchange> Service::route(const RequestHead& head) {
  Call call{head, head.parts(), {}};
  const std::string& first = call.parts.front();
  const bool get = head.is_get();
  if (first == "health" && call.parts.size() == 1 && get)
    return without_body([] { return Reply::text("ok\n"); });
  if (first == "metrics" && call.parts.size() == 1 && get) return metrics();
  if (first == "_web" && call.parts.size() == 2 && get) {
    return without_body([name = call.parts[1], known = std::string(head.field("If-None-Match"))] {
      return asset_reply(name, known);
    });
  }
  if (first == "_lfs" || first == "_xet") {  // their right is in the address, or a ticket of their own
    count(network_of(head.client));
    const Parts rest{call.parts.begin() + 1, call.parts.end()};
    return first == "_lfs" ? lfs_transfer(call, rest) : xet(call, rest);
  }
  try {
    call.who = admit(head);
    return first == "api" ? api(call) : outside_api(call);
  } catch (HttpError& error) {
    if (error.status == 401) error.fields.emplace_back("WWW-Authenticate", challenge_for(head.path));
    throw;
  }
}

std::unique_ptr<Exchange> Service::api(const Call& call) {
  const Parts& p = call.parts;
  const std::string& what = p.size() > 1 ? p[1] : p[0];
  const std::string& method = call.head.method;
  const bool get = call.head.is_get();
  if (what == "whoami-v2" && get) return whoami(call);
  if (what == "organizations" && p.size() == 4 && p[3] == "overview" && get)
    return organisation_overview(p[2]);
  if (what == "agent-harnesses" && get)
    return without_body([] { return Reply::json(R"({"standardEnvVars":[],"harnesses":{}})"); });
  if (what == "validate-yaml" && method == "POST") {
    return with_body(limits_.json_bytes, [](const std::string& body) {
      if (!json::accept(body)) throw HttpError{400, "the body is not JSON", {}, {}};
      return Reply::json(R"({"errors":[],"warnings":[]})");
    });
  }
  if (what == "repos" && p.size() == 3) {
    require_writable();
    if (p[2] == "create" && method == "POST") return create_repository(call);
    if (p[2] == "delete" && method == "DELETE") return delete_repository(call);
    if (p[2] == "move" && method == "POST") return move_repository(call);
  }
  if (const auto type = type_of_plural(what)) {
    if (p.size() == 2 && get) return list_repositories(call, *type);
    if (p.size() >= 4 && is_id(p[2], p[3])) {
      return repository_api(call, {*type, p[2] + "/" + p[3]}, {p.begin() + 4, p.end()});
    }
    if (p.size() >= 3) {  // a name that no repository can have
      require(call, {*type, p.size() > 3 ? p[2] + "/" + p[3] : p[2]}, Right::read);
    }
  }
  no_such_route();
}

std::unique_ptr<Exchange> Service::repository_api(const Call& call, const RepositoryKey& key,
                                                  const Parts& rest) {
  const std::string verb = rest.empty() ? "" : rest[0];
  return call.head.is_get() || verb == "paths-info" ? read_api(call, key, verb, rest)
                                                    : write_api(call, key, verb, rest);
}

std::unique_ptr<Exchange> Service::read_api(const Call& call, const RepositoryKey& key,
                                            const std::string& verb, const Parts& rest) {
  const std::string revision = rest.size() > 1 ? rest[1] : "main";
  if (verb.empty() || verb == "revision") return info(call, key, revision);
  if (verb == "refs") return refs(call, key);
  if (verb == "tree") return tree(call, key, revision, without_last_slashes(path_of(rest, 2)));
  if (verb == "paths-info") return paths_info(call, key, revision);
  if (verb == "commits") return commits(call, key, revision);
  if (verb == "auth-check") {
    const Right right = rest.back() == "write" ? Right::write : Right::read;
    require_gate(call, key, require(call, key, right));
    return without_body([] { return Reply::json(R"({"ok":true})"); });
  }
  if (verb == "xet-write-token") return xet_token(call, key, Right::write);
  if (verb == "xet-read-token") return xet_token(call, key, Right::read);
  no_such_route();
}

std::unique_ptr<Exchange> Service::write_api(const Call& call, const RepositoryKey& key,
                                             const std::string& verb, const Parts& rest) {
  const std::string argument = rest.size() > 1 ? without_last_slashes(path_of(rest, 1)) : "main";
  const std::string& method = call.head.method;
  if (verb == "preupload" && method == "POST") return preupload(call, key, argument);
  if (verb == "commit" && method == "POST") return commit(call, key, argument);
  if (verb == "branch" && (method == "POST" || method == "DELETE")) return branch(call, key, argument);
  if (verb == "tag" && (method == "POST" || method == "DELETE")) return tag(call, key, argument);
  if (verb == "settings" && method == "PUT") return settings(call, key);
  no_such_route();
}

RepositoryType take_type(std::vector<std::string>& parts) {
  const auto named = type_of_plural(parts.front());
  if (!named || *named == RepositoryType::model) return RepositoryType::model;
  parts.erase(parts.begin());
  return *named;
}

std::unique_ptr<Exchange> Service::outside_api(const Call& call) {
  Parts p = call.parts;
  const bool get = call.head.is_get();
  if (auto page = get ? web(call, p) : nullptr) return page;
  const RepositoryType type = take_type(p);
  if (p.size() < 3) no_such_route();
  std::string name = p[1];
  const bool git = name.ends_with(".git");
  if (git) name.resize(name.size() - 4);
  const RepositoryKey key{type, p[0] + "/" + name};
  const std::string rest = without_last_slashes(path_of(p, 2));
  if (git && call.head.method == "POST" && rest == "info/lfs/objects/batch") return lfs_batch(call, key);
  if (get && rest == "info/refs") {
    require_gate(call, key, require(call, key, Right::read));
    return without_body([this, folder = repositories_.folder(key), service = call.head.parameter("service"),
                         protocol = std::string(call.head.field("Git-Protocol"))] {
      return advertise_refs(folder, service, protocol, temporary_folder());
    });
  }
  if (call.head.method == "POST" && rest == "git-upload-pack") {
    require_gate(call, key, require(call, key, Right::read));
    const bool packed = call.head.field("Content-Encoding") == "gzip";  // git does so from 1 KiB on
    return with_body(limits_.json_bytes,
                     [this, packed, folder = repositories_.folder(key),
                      protocol = std::string(call.head.field("Git-Protocol"))](const std::string& body) {
                       return upload_pack(folder, packed ? gunzipped(body, limits_.json_bytes) : body,
                                          protocol, temporary_folder());
                     });
  }
  if (get && p[2] == "resolve" && p.size() > 4) {
    return resolve(call, key, p[3], path_of(p, 4));
  }
  no_such_route();
}

std::size_t page_start(const RequestHead& head) {
  const std::string cursor = head.parameter("cursor");
  return std::strtoul(cursor.c_str(), nullptr, 10);
}

std::size_t page_length(const RequestHead& head, std::size_t usual) {
  const std::string limit = head.parameter("limit");
  if (limit.empty()) return usual;
  return std::clamp<std::size_t>(std::strtoul(limit.c_str(), nullptr, 10), 1, 10000);
}

std::string next_link(const RequestHead& head, std::size_t start) {
  std::string query;
  std::size_t begin = 0;
  while (begin < head.query.size()) {
    const std::size_t end = std::min(head.query.find('&', begin), head.query.size());
    const std::string pair = head.query.substr(begin, end - begin);
    if (!pair.starts_with("cursor=")) query += pair + "&";
    begin = end + 1;
  }
  return "<" + head.base_url + head.path + "?" + query + "cursor=" + std::to_string(start) +
         ">; rel=\"next\"";
}

}  // namespace neuron_kernels::hub::registry
