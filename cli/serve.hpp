// What the files of `kernels serve` share: its options, and the commands below it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "cli/command.hpp"
#include "hub/registry/http_server.hpp"
#include "hub/registry/service.hpp"

namespace neuron_kernels::cli {

struct ServeOptions {
  std::filesystem::path root;
  std::string listen = "127.0.0.1:8085", rate;
  hub::registry::ServiceLimits limits;
  hub::registry::ServerOptions server;
  int part_mib = 0;  // 0: as ServiceLimits has it
  int grace_s = 30;
};

void add_account_commands(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options,
                          Global& global);  // user, org, token
void add_store_commands(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options,
                        Global& global);  // gc, backup, restore

}  // namespace neuron_kernels::cli
