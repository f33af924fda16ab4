// Commands that `kernels` leaves to `kernels-serve` beside it, with the same arguments.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "cli/command.hpp"
#include "hub/error.hpp"

namespace neuron_kernels::cli {

namespace {

/// The first word; options before a command take no values.
std::string_view command_in(char** arguments) {
  while (*++arguments != nullptr && **arguments == '-') {
  }
  return *arguments != nullptr ? *arguments : "";
}

/// Starts kernels-serve if this command is asked for; otherwise adds it for --help.
void add_elsewhere(CLI::App& app, const Global& global, const char* name, const char* description) {
  if (command_in(global.arguments) != name) {
    app.add_subcommand(name, description);
    return;
  }
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "kernels-serve";
  ::execv(program.c_str(), global.arguments);
  throw hub::HubError(hub::ErrorKind::failed,
                      "cannot start " + program.string() + ": " + std::strerror(errno),
                      "this command needs kernels-serve in the folder of kernels; install both");
}

}  // namespace

void add_serve(CLI::App& app, Global& global) { add_elsewhere(app, global, "serve", serve_description); }

void add_completion(CLI::App& app, Global& global) {
  add_elsewhere(app, global, "completion", completion_description);
}

}  // namespace neuron_kernels::cli
