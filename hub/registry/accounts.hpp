// Users, organisations and tokens of a registry, in one JSON file. Tokens are kept as SHA-256 only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace neuron_kernels::hub::registry {

struct Token {
  std::string user, name, created;
  bool write = false;
};

struct Organisation {
  std::set<std::string> members;
  bool trusted = false;  // its kernels are loaded without asking: trustedKernelPublisher
};

/// Who asks. No name: nobody in particular.
struct Identity {
  std::string name;
  std::vector<std::string> organisations;
  Token token;

  bool anonymous() const { return name.empty(); }
  bool member_of(std::string_view owner) const;
  bool may_write(std::string_view owner) const { return token.write && member_of(owner); }
};

/// The accounts of one registry. Changes by another process (kernels serve user ...) are seen at the next
/// question.
class Accounts {
 public:
  explicit Accounts(std::filesystem::path file) : file_(std::move(file)) {}

  /// Whose token this is; nothing if it is nobody's.
  std::optional<Identity> identify(std::string_view token) const;
  std::optional<Organisation> organisation(const std::string& name) const;
  std::vector<std::string> users() const;
  std::map<std::string, Organisation> organisations() const;
  std::vector<Token> tokens() const;

  // Administration. Each is on the disk when it returns. Errors: HubError usage for a name that is malformed
  // or taken.
  void add_user(const std::string& name);
  void add_organisation(const std::string& name, bool trusted);
  void set_trusted(const std::string& organisation, bool trusted);
  void add_member(const std::string& organisation, const std::string& user);
  /// A new token, "hf_" and 34 characters; it is shown this once.
  std::string add_token(const std::string& user, const std::string& name, bool write);
  /// Drops the tokens of that user and name; how many there were.
  int revoke(const std::string& user, const std::string& name);

 private:
  struct Data {
    std::set<std::string> users;
    std::map<std::string, Organisation> organisations;
    std::map<std::string, Token> tokens;  // by SHA-256
  };

  std::shared_ptr<const Data> current() const;
  void change(const std::function<void(Data&)>& edit);
  static Data parse(const std::string& text);
  static std::string text_of(const Data& data);

  std::filesystem::path file_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Data> data_;
  mutable std::filesystem::file_time_type read_at_{};
  mutable std::uintmax_t read_size_ = 0;
};

/// Whether `name` can be the name of a user, organisation or repository: letters, digits, '-', '_', '.', at
/// most 96.
bool is_owner_or_repository_name(std::string_view name);

}  // namespace neuron_kernels::hub::registry
