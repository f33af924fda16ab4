#include "hub/registry/accounts.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/registry/git_repository.hpp"
#include "hub/registry/secrets.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub::registry {

using nlohmann::json;

bool is_owner_or_repository_name(std::string_view name) {
  constexpr std::string_view ends = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  if (name.empty() || name.size() > 96 || ends.find(name.front()) == ends.npos ||
      ends.find(name.back()) == ends.npos || name.find("..") != name.npos || name.find("--") != name.npos ||
      name.ends_with(".git")) {
    return false;
  }
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return ends.find(c) != ends.npos || c == '-' || c == '_' || c == '.'; });
}

bool Identity::member_of(std::string_view owner) const {
  return !anonymous() && (owner == name || std::find(organisations.begin(), organisations.end(), owner) !=
                                               organisations.end());
}

Accounts::Data Accounts::parse(const std::string& text) {
  const json document = json::parse(text);
  Data data;
  for (const auto& user : document.at("users")) data.users.insert(user.get<std::string>());
  for (const auto& [name, o] : document.at("organisations").items()) {
    data.organisations[name] = {o.at("members").get<std::set<std::string>>(), o.at("trusted").get<bool>()};
  }
  for (const auto& [hash, t] : document.at("tokens").items()) {
    data.tokens[hash] = {t.at("user").get<std::string>(), t.at("name").get<std::string>(),
                         t.at("created").get<std::string>(), t.at("write").get<bool>()};
  }
  return data;
}

std::string Accounts::text_of(const Data& data) {
  json document{{"users", data.users}, {"organisations", json::object()}, {"tokens", json::object()}};
  for (const auto& [name, o] : data.organisations) {
    document["organisations"][name] = {{"members", o.members}, {"trusted", o.trusted}};
  }
  for (const auto& [hash, t] : data.tokens) {
    document["tokens"][hash] = {
        {"user", t.user}, {"name", t.name}, {"created", t.created}, {"write", t.write}};
  }
  return document.dump(1) + "\n";
}

std::shared_ptr<const Accounts::Data> Accounts::current() const {
  const std::scoped_lock lock(mutex_);
  std::error_code absent;
  const auto time = std::filesystem::last_write_time(file_, absent);
  if (absent) return std::make_shared<const Data>();
  const auto size = std::filesystem::file_size(file_, absent);
  if (data_ == nullptr || time != read_at_ || size != read_size_) {
    data_ = std::make_shared<const Data>(parse(read_file(file_)));
    read_at_ = time;
    read_size_ = size;
  }
  return data_;
}

void Accounts::change(const std::function<void(Data&)>& edit) {
  make_folders(file_.parent_path());
  const std::filesystem::path lock_file = file_.string() + ".lock";
  const Descriptor lock(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) storage_error("lock", lock_file, errno);
  Data data = *current();
  edit(data);
  write_file(file_, text_of(data), 0600, Sync::yes);
}

std::optional<Identity> Accounts::identify(std::string_view token) const {
  const auto data = current();
  const auto found = data->tokens.find(sha256_hex(token));
  if (found == data->tokens.end()) return std::nullopt;
  Identity who{found->second.user, {}, found->second};
  for (const auto& [name, o] : data->organisations) {
    if (o.members.contains(who.name)) who.organisations.push_back(name);
  }
  return who;
}

std::vector<std::string> Accounts::users() const {
  const auto data = current();
  return {data->users.begin(), data->users.end()};
}
std::map<std::string, Organisation> Accounts::organisations() const { return current()->organisations; }
std::optional<Organisation> Accounts::organisation(const std::string& name) const {
  const auto data = current();
  const auto found = data->organisations.find(name);
  return found != data->organisations.end() ? std::optional(found->second) : std::nullopt;
}
std::vector<Token> Accounts::tokens() const {
  const auto data = current();
  std::vector<Token> all;
  for (const auto& [hash, token] : data->tokens) all.push_back(token);
  return all;
}

void Accounts::add_user(const std::string& name) {
  if (!is_owner_or_repository_name(name)) {
    throw HubError(ErrorKind::usage,
                   "'" + name + "' cannot be a user's name; allowed are letters, digits, '-', '_' and '.'");
  }
  change([&](Data& data) {
    if (data.organisations.contains(name) || !data.users.insert(name).second) {
      throw HubError(ErrorKind::conflict, "there is a user or organisation '" + name + "' already");
    }
  });
}

void Accounts::add_organisation(const std::string& name, bool trusted) {
  if (!is_owner_or_repository_name(name)) {
    throw HubError(
        ErrorKind::usage,
        "'" + name + "' cannot be an organisation's name; allowed are letters, digits, '-', '_' and '.'");
  }
  change([&](Data& data) {
    if (data.users.contains(name) ||
        !data.organisations.try_emplace(name, Organisation{{}, trusted}).second) {
      throw HubError(ErrorKind::conflict, "there is a user or organisation '" + name + "' already");
    }
  });
}

namespace {
[[noreturn]] void unknown(const char* kind, const std::string& name) {
  throw HubError(ErrorKind::not_found, std::string("there is no ") + kind + " '" + name + "'",
                 "`kernels serve user list` and `kernels serve org list` show what there is");
}
}  // namespace

void Accounts::set_trusted(const std::string& organisation, bool trusted) {
  change([&](Data& data) {
    const auto found = data.organisations.find(organisation);
    if (found == data.organisations.end()) unknown("organisation", organisation);
    found->second.trusted = trusted;
  });
}

void Accounts::add_member(const std::string& organisation, const std::string& user) {
  change([&](Data& data) {
    const auto found = data.organisations.find(organisation);
    if (found == data.organisations.end()) unknown("organisation", organisation);
    if (!data.users.contains(user)) unknown("user", user);
    found->second.members.insert(user);
  });
}

std::string Accounts::add_token(const std::string& user, const std::string& name, bool write) {
  constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ab";
  std::string token = "hf_";
  for (const char c : random_bytes(34)) token += alphabet[static_cast<unsigned char>(c) % alphabet.size()];
  change([&](Data& data) {
    if (!data.users.contains(user)) unknown("user", user);
    data.tokens[sha256_hex(token)] = {user, name, iso_date(std::time(nullptr)), write};
  });
  return token;
}

int Accounts::revoke(const std::string& user, const std::string& name) {
  int count = 0;
  change([&](Data& data) {
    count = static_cast<int>(std::erase_if(data.tokens, [&](const auto& entry) {
      return entry.second.user == user && entry.second.name == name;
    }));
  });
  return count;
}

}  // namespace neuron_kernels::hub::registry
