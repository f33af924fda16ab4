// kernels login, logout, whoami: the token file that Hugging Face's tools use too.
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::cli {
namespace {

struct Options {
  HubOptions hub;
  bool token_stdin = false;
};

/// One line from the terminal that is not shown while it is typed.
std::string ask_for_token(const std::string& endpoint) {
  std::fprintf(stderr, "Token for %s (it is not shown): ", endpoint.c_str());
  termios shown{};
  ::tcgetattr(STDIN_FILENO, &shown);
  termios hidden = shown;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  std::string token;
  std::getline(std::cin, token);
  ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
  std::fprintf(stderr, "\n");
  return token;
}

std::string read_token(const Options& options, const std::string& endpoint) {
  if (options.token_stdin) return {std::istreambuf_iterator<char>(std::cin), {}};
  if (::isatty(STDIN_FILENO) == 1) return ask_for_token(endpoint);
  throw hub::HubError(hub::ErrorKind::usage,
                      "no token: standard input is no terminal, and --token-stdin is not given",
                      "`kernels login --token-stdin < FILE`");
}

void log_in(const Options& options, const Global& global) {
  hub::Environment environment = environment_of(options.hub);
  environment.token = hub::checked_token(read_token(options, environment.endpoint), "standard input");
  environment.token_source = "standard input";
  if (environment.token.empty()) {
    throw hub::HubError(hub::ErrorKind::usage, "standard input holds no token",
                        "it is one word such as hf_...");
  }
  hub::Http http({.user_agent = environment.user_agent()});
  const hub::Account account = hub::Api(environment, http).whoami();  // before anything is stored
  hub::write_file(environment.token_path, environment.token, 0600);
  if (global.json) return print({{"name", account.name}, {"token_file", environment.token_path}});
  std::fprintf(stderr, "logged in as %s; the token is in %s\n", account.name.c_str(),
               environment.token_path.c_str());
}

void log_out(const Options& options, const Global& global) {
  const hub::Environment environment = environment_of(options.hub);
  std::error_code error;
  const bool removed = std::filesystem::remove(environment.token_path, error);
  if (error) {
    throw hub::HubError(hub::ErrorKind::storage,
                        "cannot remove " + environment.token_path.string() + ": " + error.message());
  }
  if (global.json) return print({{"removed", removed}, {"token_file", environment.token_path}});
  notice(global, removed ? "removed " + environment.token_path.string()
                         : "there was no token in " + environment.token_path.string());
  if (!environment.token_source.empty() && environment.token_source != environment.token_path.string()) {
    notice(global, "the token in " + environment.token_source + " is still used");
  }
}

void show_account(const Options& options, const Global& global) {
  Session session(options.hub, global);
  const hub::Account account = session.api().whoami();
  if (global.json) {
    return print({{"name", account.name},
                  {"full_name", account.full_name},
                  {"organizations", account.organizations},
                  {"token_name", account.token_name},
                  {"token_role", account.token_role},
                  {"token_source", session.environment().token_source},
                  {"endpoint", session.environment().endpoint}});
  }
  std::printf("%s\n", account.name.c_str());
  for (const std::string& organization : account.organizations) std::printf("  %s\n", organization.c_str());
}

}  // namespace

void add_account(CLI::App& app, Global& global) {
  const auto options = std::make_shared<Options>();
  CLI::App* login = app.add_subcommand("login", "Checks a token and stores it for all tools");
  login->add_flag("--token-stdin", options->token_stdin, "Read the token from standard input");
  login->add_option("--endpoint", options->hub.endpoint, "URL of the hub (HF_ENDPOINT)");
  add_examples(*login,
               "  kernels login                           asks for the token\n"
               "  kernels login --token-stdin < token.txt\n"
               "  printenv CI_TOKEN | kernels login --token-stdin");
  login->callback([options, &global] { log_in(*options, global); });

  CLI::App* logout = app.add_subcommand("logout", "Removes the stored token");
  add_examples(*logout, "  kernels logout");
  logout->callback([options, &global] { log_out(*options, global); });

  CLI::App* whoami = app.add_subcommand("whoami", "Whose token it is, and the organisations");
  whoami->add_option("--endpoint", options->hub.endpoint, "URL of the hub (HF_ENDPOINT)");
  add_examples(*whoami, "  kernels whoami\n  kernels whoami --json");
  whoami->callback([options, &global] { show_account(*options, global); });
}

}  // namespace neuron_kernels::cli
