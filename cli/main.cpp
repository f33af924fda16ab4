// kernels: the command line of the hub. Groups of commands are in the files beside this one.
#include <cstdio>
#include <exception>

#include "cli/command.hpp"
#include "hub/error.hpp"
#include "neuron_kernels/version.hpp"

namespace neuron_kernels::cli {
namespace {

int report(const hub::HubError& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  if (!error.url.empty()) {
    std::fprintf(stderr, "  from %s%s\n", error.url.c_str(),
                 error.status != 0 ? (" (HTTP " + std::to_string(error.status) + ")").c_str() : "");
  }
  if (!error.hint.empty()) std::fprintf(stderr, "hint: %s\n", error.hint.c_str());
  return hub::exit_code(error.kind);
}

}  // namespace

void add_examples(CLI::App& command, const std::string& examples) {
  command.footer("Examples:\n" + examples);
}

int run(int argc, char** argv) {
  CLI::App app{"kernels: packages of kernels by version, from and to a hub", "kernels"};
  app.require_subcommand(1);
  app.fallthrough();
  Global global;
  global.arguments = argv;
  app.add_flag("--json", global.json, "Answer with one JSON document on stdout");
  app.add_flag("-q,--quiet", global.quiet, "No progress and no notes on stderr");
  app.set_version_flag("--version", std::string(version));
  try {
    add_pull(app, global);
    add_query(app, global);
    add_cache(app, global);
    add_account(app, global);
    add_package(app, global);
    add_key(app, global);
    add_chip(app, global);
    add_serve(app, global);
    add_completion(app, global);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return report(hub::HubError(hub::ErrorKind::usage, error.what(),
                                "`kernels --help` and `kernels COMMAND --help` show how"));
  } catch (const hub::HubError& error) {
    return report(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return hub::exit_code(hub::ErrorKind::failed);
  }
  return 0;
}

}  // namespace neuron_kernels::cli

int main(int argc, char** argv) { return neuron_kernels::cli::run(argc, argv); }
