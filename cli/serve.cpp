// kernels serve: the registry, and the accounts of one.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "hub/error.hpp"
#include "hub/registry/http_server.hpp"
#include "hub/registry/service.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace neuron_kernels::cli {

namespace {

using nlohmann::ordered_json;

struct ServeOptions {
  std::filesystem::path root;
  std::string listen = "127.0.0.1:8085", certificate, key;
  int grace_s = 30;
};

void serve(const ServeOptions& options) {
  const std::size_t colon = options.listen.rfind(':');
  const std::string port = colon == options.listen.npos ? "" : options.listen.substr(colon + 1);
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != port.npos ||
      std::stoi(port) > 65535) {
    throw hub::HubError(hub::ErrorKind::usage, "--listen is '" + options.listen + "'; expected ADDRESS:PORT",
                        "for example --listen 127.0.0.1:8085");
  }
  if (options.certificate.empty() != options.key.empty()) {
    throw hub::HubError(hub::ErrorKind::usage, "--cert and --key go together; only one of them was given");
  }
  // Before any thread: they all inherit the mask, and only sigwait() below takes these signals.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
#if defined(__GLIBC__)
  mallopt(M_ARENA_MAX, 2);  // threads are many and short of work: memory that one frees is another's
#endif

  hub::registry::Service service(options.root);
  hub::registry::ServerOptions server_options;
  server_options.address = options.listen.substr(0, colon);
  server_options.port = static_cast<std::uint16_t>(std::stoi(port));
  server_options.certificate_file = options.certificate;
  server_options.key_file = options.key;
  hub::registry::HttpServer server(server_options, service);
  const char* scheme = options.certificate.empty() ? "http" : "https";
  std::printf("%s://%s:%u\n", scheme, server_options.address.c_str(), static_cast<unsigned>(server.port()));
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  std::fprintf(stderr, "stopping: running transfers may end within %d s\n", options.grace_s);
  server.stop(options.grace_s);
}

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

void add_serve(CLI::App& app, Global& global) {
  CLI::App* command = app.add_subcommand("serve", "a registry that speaks the Hugging Face Hub protocol");
  auto options = std::make_shared<ServeOptions>();
  command->add_option("--root", options->root, "folder of the registry; made if it is not there")->required();
  command->add_option("--listen", options->listen, "ADDRESS:PORT; port 0 takes any free one")
      ->capture_default_str();
  command->add_option("--cert", options->certificate, "PEM file of a certificate, for HTTPS");
  command->add_option("--key", options->key, "PEM file of its key");
  command->add_option("--grace", options->grace_s, "seconds that running transfers get at the end")
      ->capture_default_str();
  command->require_subcommand(0, 1);
  command->fallthrough();
  add_user_commands(*command, options, global);
  add_organisation_commands(*command, options, global);
  add_token_commands(*command, options, global);
  command->callback([command, options] {
    if (command->get_subcommands().empty()) serve(*options);
  });
  add_examples(*command,
               "  kernels serve --root registry user add alice\n"
               "  kernels serve --root registry token add alice > token\n"
               "  kernels serve --root registry --listen 127.0.0.1:8085\n");
}

}  // namespace neuron_kernels::cli
