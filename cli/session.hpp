// What commands that talk to a hub have in common: their options, the connection, and notices on stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "hub/api.hpp"
#include "hub/environment.hpp"
#include "hub/http.hpp"
#include "hub/text.hpp"

namespace neuron_kernels::cli {

struct HubOptions {
  std::optional<std::string> endpoint, cache;
  bool offline = false;
  int retries = 5, parallel = 8;
};

/// --endpoint, --cache, --offline, --retries
void add_hub_options(CLI::App& command, HubOptions& options);

/// The environment with what the options say in its place.
hub::Environment environment_of(const HubOptions& options);

/// A connection, made when a command runs, not before.
class Session {
 public:
  Session(const HubOptions& options, const Global& global);
  hub::Api& api() { return api_; }
  const hub::Environment& environment() const { return environment_; }
  int requests() const { return http_.requests(); }

 private:
  hub::Environment environment_;
  hub::Http http_;
  hub::Api api_;
};

/// One line on stderr, unless --quiet.
void notice(const Global& global, const std::string& text);

/// A document on stdout.
void print(const nlohmann::json& document);

using hub::size_text;

/// --type kernel|model|dataset
void add_type_option(CLI::App& command, hub::RepoType& type);

}  // namespace neuron_kernels::cli
