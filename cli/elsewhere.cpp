// Commands that are left to another program beside this one, with the same arguments; those of `kernels-serve`.
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

}  // namespace

void add_elsewhere(CLI::App& app, const Global& global, const char* program, const char* name,
                   const char* description) {
  if (command_in(global.arguments) != name) {
    app.add_subcommand(name, description);
    return;
  }
  const std::filesystem::path file = std::filesystem::read_symlink("/proc/self/exe").parent_path() / program;
  ::execv(file.c_str(), global.arguments);
  throw hub::HubError(
      hub::ErrorKind::failed, "cannot start " + file.string() + ": " + std::strerror(errno),
      std::string("this command needs ") + program + " in the folder of kernels; install both");
}

void add_serve(CLI::App& app, Global& global) {
  add_elsewhere(app, global, "kernels-serve", "serve", serve_description);
}

void add_completion(CLI::App& app, Global& global) {
  add_elsewhere(app, global, "kernels-serve", "completion", completion_description);
}

}  // namespace neuron_kernels::cli
