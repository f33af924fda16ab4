// kernels serve user|org|token: the accounts of a registry.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/serve.hpp"
#include "hub/error.hpp"
#include "hub/registry/accounts.hpp"

namespace neuron_kernels::cli {

namespace {

using nlohmann::ordered_json;

hub::registry::Accounts accounts(const ServeOptions& options) {
  return hub::registry::Accounts(options.root / "accounts.json");
}

void add_user_commands(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options,
                       Global& global) {
  CLI::App* user = serve_command.add_subcommand("user", "users of the registry")->require_subcommand(1);
  auto name = std::make_shared<std::string>();
  CLI::App* add = user->add_subcommand("add", "make a user");
  add->add_option("NAME", *name, "name of the user, and of the namespace")->required();
  add->callback([=] { accounts(*options).add_user(*name); });
  user->add_subcommand("list", "names of all users")->callback([=, &global] {
    const auto users = accounts(*options).users();
    if (global.json) {
      std::cout << ordered_json(users).dump() << '\n';
    } else {
      for (const std::string& one : users) std::cout << one << '\n';
    }
  });
}

void add_organisation_commands(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options,
                               Global& global) {
  CLI::App* org = serve_command.add_subcommand("org", "organisations of the registry")->require_subcommand(1);
  struct Names {
    std::string organisation, user;
    bool trusted = false;
  };
  auto names = std::make_shared<Names>();
  CLI::App* add = org->add_subcommand("add", "make an organisation");
  add->add_option("NAME", names->organisation, "name of the organisation, and of the namespace")->required();
  add->add_flag("--trusted", names->trusted, "clients load its kernels without asking");
  add->callback([=] { accounts(*options).add_organisation(names->organisation, names->trusted); });
  CLI::App* member = org->add_subcommand("member", "make a user a member");
  member->add_option("NAME", names->organisation, "organisation")->required();
  member->add_option("USER", names->user, "user")->required();
  member->callback([=] { accounts(*options).add_member(names->organisation, names->user); });
  CLI::App* trust = org->add_subcommand("trust", "whether clients load its kernels without asking");
  auto answer = std::make_shared<std::string>();
  trust->add_option("NAME", names->organisation, "organisation")->required();
  trust->add_option("ANSWER", *answer, "yes or no")->required()->check(CLI::IsMember({"yes", "no"}));
  trust->callback([=] { accounts(*options).set_trusted(names->organisation, *answer == "yes"); });
  org->add_subcommand("list", "all organisations with their members")->callback([=, &global] {
    ordered_json all = ordered_json::array();
    for (const auto& [name, o] : accounts(*options).organisations()) {
      all.push_back({{"name", name}, {"trusted", o.trusted}, {"members", o.members}});
    }
    if (global.json) {
      std::cout << all.dump() << '\n';
      return;
    }
    for (const auto& o : all) {
      std::cout << o["name"].get<std::string>() << (o["trusted"].get<bool>() ? " (trusted)" : "") << ':';
      for (const auto& one : o["members"]) std::cout << ' ' << one.get<std::string>();
      std::cout << '\n';
    }
  });
}

void add_token_commands(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options,
                        Global& global) {
  CLI::App* token = serve_command.add_subcommand("token", "tokens of users; only their SHA-256 is kept");
  token->require_subcommand(1);
  struct Names {
    std::string user, name = "token";
    bool read_only = false;
  };
  auto names = std::make_shared<Names>();
  CLI::App* add = token->add_subcommand("add", "make a token; it is printed this once");
  add->add_option("USER", names->user, "whose")->required();
  add->add_option("--name", names->name, "by which to revoke it");
  add->add_flag("--read-only", names->read_only, "it may not change anything");
  add->callback([=] {
    std::cout << accounts(*options).add_token(names->user, names->name, !names->read_only) << '\n';
  });
  CLI::App* revoke = token->add_subcommand("revoke", "end the tokens of a user that have that name");
  revoke->add_option("USER", names->user, "whose")->required();
  revoke->add_option("--name", names->name, "as it was made");
  revoke->callback([=] {
    if (accounts(*options).revoke(names->user, names->name) == 0) {
      throw hub::HubError(hub::ErrorKind::not_found,
                          "there is no token '" + names->name + "' of '" + names->user + "'",
                          "`kernels serve token list` shows what there is");
    }
  });
  token->add_subcommand("list", "tokens by user and name")->callback([=, &global] {
    ordered_json all = ordered_json::array();
    for (const auto& t : accounts(*options).tokens()) {
      all.push_back(
          {{"user", t.user}, {"name", t.name}, {"role", t.write ? "write" : "read"}, {"created", t.created}});
    }
    if (global.json) {
      std::cout << all.dump() << '\n';
      return;
    }
    for (const auto& t : all) {
      std::cout << t["user"].get<std::string>() << '\t' << t["name"].get<std::string>() << '\t'
                << t["role"].get<std::string>() << '\t' << t["created"].get<std::string>() << '\n';
    }
  });
}

}  // namespace

void add_account_commands(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options,
                          Global& global) {
  add_user_commands(serve_command, options, global);
  add_organisation_commands(serve_command, options, global);
  add_token_commands(serve_command, options, global);
}

}  // namespace neuron_kernels::cli
