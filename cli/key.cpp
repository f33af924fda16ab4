// kernels key new|trust|list: keys that sign packages, and those whose signatures count.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "hub/error.hpp"
#include "hub/keys.hpp"
#include "hub/manifest.hpp"

namespace neuron_kernels::cli {
namespace {

using nlohmann::json;

void add_new(CLI::App& key, Global& global) {
  CLI::App* command = key.add_subcommand("new", "Makes a signing key; prints its public part");
  const auto name = std::make_shared<std::string>("default");
  command->add_option("NAME", *name, "Name of the key")->capture_default_str();
  add_examples(*command, "  kernels key new\n  kernels key new work");
  command->callback([name, &global] {
    const hub::PublicKey made = hub::KeyStore().create(*name);
    if (global.json) return print({{"name", *name}, {"key", made.text()}, {"id", made.id()}});
    std::printf("%s\n", made.text().c_str());
  });
}

void add_trust(CLI::App& key, Global& global) {
  struct Options {
    std::string owner, key;
    bool remove = false;
  };
  CLI::App* command = key.add_subcommand("trust", "Lets a public key vouch for packages of an owner");
  const auto options = std::make_shared<Options>();
  command->add_option("OWNER", options->owner, "User or organisation on the hub")->required();
  command->add_option("KEY", options->key, "ed25519:...; the publisher finds it by `kernels key list`")
      ->required();
  command->add_flag("--remove", options->remove, "Trust it no longer");
  add_examples(*command,
               "  kernels key trust my-org ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
               "  kernels pull --require-signature my-org/scale@^1");
  command->callback([options, &global] {
    const hub::PublicKey public_key = hub::PublicKey::parse(options->key);
    if (!hub::is_repository_name(options->owner + "/x")) {
      throw hub::HubError(hub::ErrorKind::usage,
                          "owner '" + options->owner + "'; allowed is the name of a user or an organisation");
    }
    const hub::KeyStore store;
    const bool changed = options->remove ? store.distrust(options->owner, public_key)
                                         : store.trust(options->owner, public_key);
    if (global.json) return print({{"owner", options->owner}, {"id", public_key.id()}, {"changed", changed}});
    if (!global.quiet) {
      std::fprintf(stderr, "key %s %s %s\n", public_key.id().c_str(),
                   options->remove ? "is not trusted for" : "is trusted for", options->owner.c_str());
    }
  });
}

void add_list(CLI::App& key, Global& global) {
  CLI::App* command = key.add_subcommand("list", "Lists own and trusted keys");
  add_examples(*command, "  kernels key list\n  kernels key list --json");
  command->callback([&global] {
    const hub::KeyStore store;
    json own = json::array(), trusted = json::array();
    for (const auto& [name, one] : store.own()) {
      own.push_back({{"name", name}, {"key", one.text()}, {"id", one.id()}});
      if (!global.json)
        std::printf("own      %s  %s  %s\n", one.id().c_str(), name.c_str(), one.text().c_str());
    }
    for (const hub::TrustedKey& one : store.trusted()) {
      trusted.push_back({{"owner", one.owner}, {"key", one.key.text()}, {"id", one.key.id()}});
      if (global.json) continue;
      std::printf("trusted  %s  %s  %s\n", one.key.id().c_str(), one.owner.c_str(), one.key.text().c_str());
    }
    if (global.json) print({{"own", own}, {"trusted", trusted}});
  });
}

}  // namespace

void add_key(CLI::App& app, Global& global) {
  CLI::App* key = app.add_subcommand("key", "Keys that sign packages, and keys that are trusted");
  key->require_subcommand(1);
  add_new(*key, global);
  add_trust(*key, global);
  add_list(*key, global);
}

}  // namespace neuron_kernels::cli
