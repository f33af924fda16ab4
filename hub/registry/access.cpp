// Who asks, what may be seen, what may be changed.
#include <unistd.h>

#include "hub/error.hpp"
#include "hub/registry/service.hpp"

namespace neuron_kernels::hub::registry {

namespace {

bool is_hidden(const Identity& who, const RepositoryKey& key, const RepositorySettings& settings) {
  return settings.is_private && !who.member_of(key.owner());
}

}  // namespace

HttpError no_write_right(const Identity& who, const RepositoryKey& key, std::string to_strangers) {
  if (who.member_of(key.owner())) {
    return {403, "This token may only read; a token with the role 'write' is needed.", {}, {}};
  }
  return {403, std::move(to_strangers), {}, {}};
}

std::optional<Identity> Service::identify(const RequestHead& head) const {
  const std::string_view field = head.field("Authorization");
  if (field.empty()) return Identity();
  std::string_view token;
  std::string password;
  if (field.size() > 7 && (field.starts_with("Bearer ") || field.starts_with("bearer "))) {
    token = field.substr(7);
  } else if (field.starts_with("Basic ")) {  // git: the token is the password
    password = from_base64(field.substr(6));
    const std::size_t colon = password.find(':');
    token = colon != password.npos ? std::string_view(password).substr(colon + 1) : std::string_view();
  }
  return accounts_.identify(token);
}

Identity Service::admit(const RequestHead& head) {
  const auto who = identify(head);
  // Made-up credentials count for the address that sends them.
  const bool known = who && !who->anonymous();
  count(known ? "token " + who->name + " " + who->token.name : network_of(head.client));
  if (!who) throw HttpError{401, "Invalid credentials in Authorization header", {}, {}};
  return *who;
}

void Service::count(const std::string& who) {
  const int wait_s = limiter_.take(who);
  if (wait_s == 0) return;
  ++refused_;
  const std::string most = std::to_string(limiter_.rate().requests);
  const std::string window = std::to_string(limiter_.rate().seconds), wait = std::to_string(wait_s);
  throw HttpError{
      429,
      "Too many requests: " + most + " in " + window + " s are allowed; try again in " + wait + " s",
      {},
      {{"RateLimit", "\"api\";r=0;t=" + wait},
       {"RateLimit-Policy", "\"fixed window\";\"api\";q=" + most + ";w=" + window},
       {"Retry-After", wait}}};
}

std::optional<RepositorySettings> Service::readable(const Call& call, const RepositoryKey& key) const {
  auto found = repositories_.find(key);
  if (found && is_hidden(call.who, key, *found)) found.reset();
  return found;
}

RepositorySettings Service::require(const Call& call, const RepositoryKey& key, Right right) const {
  const auto found = readable(call, key);
  if (!found) {  // the same answer for a private one: existence stays private
    if (call.who.anonymous()) throw HttpError{401, "Invalid username or password.", "RepoNotFound", {}};
    throw HttpError{404, "Repository not found", "RepoNotFound", {}};
  }
  if (right == Right::write && !call.who.may_write(key.owner())) {
    if (call.who.anonymous()) throw HttpError{401, "Invalid username or password.", "RepoNotFound", {}};
    throw no_write_right(call.who, key,
                         "You don't have the required permissions to write to " + key.id + ".");
  }
  if (right == Right::write) require_writable();
  return *found;
}

std::vector<Repositories::Entry> Service::visible(const Call& call, RepositoryType type,
                                                  std::string_view search, std::string_view owner) const {
  auto entries = repositories_.list(type, search, owner);
  std::erase_if(entries, [&](const auto& entry) { return is_hidden(call.who, entry.first, entry.second); });
  return entries;
}

bool Service::passes_gate(const Call& call, const RepositoryKey& key, const RepositorySettings& settings) {
  return settings.gated.empty() || call.who.member_of(key.owner());
}

bool Service::writable() const { return ::access(root_.c_str(), W_OK) == 0; }

void Service::require_writable() const {
  if (writable()) return;
  throw HttpError{
      507, "This registry is read-only at present: it can be read from, and nothing can be changed.", {}, {}};
}

std::filesystem::path Service::temporary_folder() const {
  return writable() ? root_ / "tmp" : std::filesystem::temp_directory_path();
}

void Service::require_gate(const Call& call, const RepositoryKey& key,
                           const RepositorySettings& settings) const {
  if (passes_gate(call, key, settings)) return;
  throw HttpError{call.who.anonymous() ? 401 : 403,
                  "Access to " + std::string(name_of(key.type)) + " " + key.id +
                      " is restricted and you are not in the authorized list.",
                  "GatedRepo",
                  {}};
}

GitRepository Service::open(const RepositoryKey& key) const {
  const std::filesystem::path folder = repositories_.folder(key);
  return GitRepository(
      folder, [this, folder](const LfsPointer& pointer) { return objects_.owned_by(pointer.sha256, folder); },
      &known_blobs_);
}

std::string Service::require_revision(const GitRepository& repository, const std::string& revision) {
  if (auto commit = repository.resolve(revision)) return *commit;
  throw HttpError{404, "Invalid rev id: " + revision, "RevisionNotFound", {}};
}

std::string Service::require_whole_revision(const GitRepository& repository, const std::string& revision) {
  const std::string commit = require_revision(repository, revision);
  if (repository.is_whole(commit)) return commit;
  throw HttpError{404,
                  "Invalid rev id: " + revision +
                      ": nothing led to this commit any more, and housekeeping removed a part of it",
                  "RevisionNotFound",
                  {}};
}

}  // namespace neuron_kernels::hub::registry
