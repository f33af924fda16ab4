// What the files of the `kernels` command share: how a group adds its commands, and where output goes.
//
// Data goes to stdout (with --json as one JSON document), progress and errors to stderr. A command that fails
// throws HubError; main.cpp prints "error: ..." and "hint: ..." and turns the kind into the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace neuron_kernels::cli {

/// Options that every command takes.
struct Global {
  bool json = false;
  bool quiet = false;          // no progress
  char** arguments = nullptr;  // of the program, as they came
};

// Each adds the commands of one group to the program; callbacks run them. One file each.
void add_pull(CLI::App& app, Global& global);     // pull
void add_query(CLI::App& app, Global& global);    // versions, info, search, list, verify
void add_cache(CLI::App& app, Global& global);    // cache ls|rm|prune|verify
void add_account(CLI::App& app, Global& global);  // login, logout, whoami
void add_package(CLI::App& app, Global& global);  // new, build, push, lock
void add_key(CLI::App& app, Global& global);      // key new|trust|list

// Of `kernels-serve` and `kernels-chip`; where they are not, elsewhere*.cpp has them and starts that program.
inline constexpr const char* serve_description = "a registry that speaks the Hugging Face Hub protocol";
inline constexpr const char* completion_description = "Prints a script that completes commands in a shell";
inline constexpr const char* check_description = "Whether a kernel obeys a chip's rules";
inline constexpr const char* profile_description = "How long a kernel takes on a chip, and why";
inline constexpr const char* emit_description = "A kernel as NKI source, to run on a chip";
inline constexpr const char* include_description = "Prints the folder of neuron_kernels' C++ headers";
void add_serve(CLI::App& app, Global& global);       // serve and its administration
void add_completion(CLI::App& app, Global& global);  // completion bash|zsh|fish
void add_chip(CLI::App& app, Global& global);        // check, profile, emit, include

/// Starts another program with the same arguments if the command `name` is asked for; else adds it for --help.
void add_elsewhere(CLI::App& app, const Global& global, const char* program, const char* name,
                   const char* description);

/// Ends a command's --help: worked examples, one per line.
void add_examples(CLI::App& command, const std::string& examples);

}  // namespace neuron_kernels::cli
