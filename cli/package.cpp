// kernels new, build, push, lock: what the author of a package does.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "hub/build.hpp"
#include "hub/error.hpp"
#include "hub/hub_source.hpp"
#include "hub/manifest.hpp"
#include "hub/push.hpp"
#include "hub/scaffold.hpp"

namespace neuron_kernels::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* default_into = "build/kernel-package";  // below the package's folder

std::function<void(const std::string&)> progress(const Global& global) {
  if (global.quiet) return [](const std::string&) {};
  return [](const std::string& what) { std::fprintf(stderr, "%s\n", what.c_str()); };
}

struct BuildFlags {
  std::string folder = ".", into;
  std::vector<std::string> variants;

  void add_to(CLI::App& command) {
    command.add_option("DIR", folder, "Folder of the package, with kernel.toml")->capture_default_str();
    command.add_option("--into", into, "Folder that gets build/<variant>; default DIR/build/kernel-package");
    command
        .add_option("--variant", variants, "header, torch or c; may be repeated; default: all of kernel.toml")
        ->allow_extra_args(false);
  }
  fs::path destination() const { return into.empty() ? fs::path(folder) / default_into : fs::path(into); }
  std::vector<hub::BuiltVariant> build(const hub::Manifest& manifest, const Global& global) const {
    return hub::build_package(folder, manifest, {destination(), variants, progress(global)});
  }
};

void add_new(CLI::App& app, Global& global) {
  CLI::App* command = app.add_subcommand("new", "Makes a package that builds, with a kernel and its test");
  const auto name = std::make_shared<std::string>();
  command->add_option("NAME", *name, "Name of the package; its folder is made here")->required();
  add_examples(*command,
               "  kernels new my-scale\n"
               "  cmake -S my-scale -B my-scale/build && cmake --build my-scale/build && ctest --test-dir "
               "my-scale/build\n"
               "  kernels profile scale --package my-scale --chip trn2\n"
               "  kernels emit scale --package my-scale --shape rows=4096,n=1024\n"
               "  kernels push my-scale --to my-name/my-scale --dry-run");
  command->callback([name, &global] {
    json files = json::array();
    for (const fs::path& file : hub::make_package(".", *name)) {
      files.push_back(file.lexically_normal().string());
      if (!global.json) std::printf("%s\n", files.back().get<std::string>().c_str());
    }
    if (global.json) print({{"name", *name}, {"files", files}});
  });
}

void add_build(CLI::App& app, Global& global) {
  CLI::App* command = app.add_subcommand("build", "Builds the variants that kernel.toml names");
  const auto flags = std::make_shared<BuildFlags>();
  flags->add_to(*command);
  add_examples(*command,
               "  kernels build\n"
               "  kernels build --variant header --into staged\n"
               "  PYTHON=.venv/bin/python CXX='ccache g++' kernels build my-package\n"
               "C++ is compiled with $CXX (g++) and $CXXFLAGS; $PYTHON (python3) finds PyTorch.\n"
               "Left out are names that begin with '.' and products of builds (*.o, *.a, *.so, *.pyc);\n"
               ".gitignore is not read, and links are errors.");
  command->callback([flags, &global] {
    const hub::Manifest manifest = hub::Manifest::read(flags->folder);
    json list = json::array();
    for (const hub::BuiltVariant& built : flags->build(manifest, global)) {
      list.push_back({{"variant", built.name}, {"folder", built.folder.string()}});
      if (!global.json) std::printf("%s\n", built.folder.c_str());
    }
    if (global.json) print(list);
  });
}

struct PushFlags {
  BuildFlags build;
  HubOptions hub;
  std::string to, key = "default";
  bool dry_run = false, sign = false, built = false, is_private = false, retag = false;
};

json plan_json(const hub::PushPlan& plan, const hub::PushOptions& options) {
  json files = json::array();
  for (const hub::LocalFile& file : plan.files) {
    files.push_back(
        {{"path", file.path}, {"size", file.size}, {"sha256", file.sha256}, {"revision", plan.branch}});
  }
  files.push_back({{"path", plan.card.path},
                   {"size", plan.card.size},
                   {"sha256", plan.card.sha256},
                   {"revision", "main"}});
  return {{"repository", options.repo.text()}, {"branch", plan.branch}, {"tag", plan.tag},
          {"variants", plan.variants},         {"bytes", plan.bytes()}, {"files", files}};
}

void show_plan(const hub::PushPlan& plan, const hub::PushOptions& options, const Global& global) {
  const json document = plan_json(plan, options);
  if (global.json) return print(document);
  for (const json& file : document["files"]) {
    std::printf("%12llu  %s  %s\n", static_cast<unsigned long long>(file["size"].get<std::uint64_t>()),
                file["revision"].get<std::string>().c_str(), file["path"].get<std::string>().c_str());
  }
  std::printf("%12llu  in %zu files would go to %s: branch %s, tag %s\n",
              static_cast<unsigned long long>(plan.bytes()), document["files"].size(),
              options.repo.text().c_str(), plan.branch.c_str(), plan.tag.c_str());
}

void show_result(const hub::PushResult& result, const hub::PushPlan& plan, const hub::PushOptions& options,
                 const Global& global) {
  if (global.json) {
    return print({{"repository", options.repo.text()},
                  {"branch", plan.branch},
                  {"tag", plan.tag},
                  {"commit", result.commit},
                  {"changed", result.changed},
                  {"tagged", result.tagged},
                  {"card_changed", result.card_changed},
                  {"sent", result.sent},
                  {"gone", result.gone}});
  }
  std::printf("%s@%s %s\n", options.repo.text().c_str(), plan.tag.c_str(), result.commit.c_str());
  if (global.quiet) return;
  std::fprintf(stderr, "%s: %zu files sent, %zu deleted on branch %s; tag %s %s; card %s\n",
               result.changed ? "published" : "nothing to send", result.sent.size(), result.gone.size(),
               plan.branch.c_str(), plan.tag.c_str(), result.tagged ? "set" : "was there",
               result.card_changed ? "written" : "was current");
}

void run_push(const PushFlags& flags, const Global& global) {
  hub::PushOptions options;
  options.repo = hub::parse_repo_id(flags.to);
  if (flags.sign) options.signing_key = flags.key;
  options.visibility = flags.is_private ? hub::Visibility::owner : hub::Visibility::everyone;
  options.retag = flags.retag;
  options.on_progress = progress(global);
  Session session(flags.hub, global);
  const hub::Environment& environment = session.environment();
  if (!flags.dry_run && environment.offline) {
    throw hub::HubError(hub::ErrorKind::usage,
                        "pushing needs the network, which --offline or HF_HUB_OFFLINE rules out",
                        "see what would be sent by --dry-run");
  }
  if (!flags.dry_run && environment.token.empty()) {
    throw hub::HubError(hub::ErrorKind::auth,
                        "pushing to " + options.repo.text() + " needs a token that may write",
                        "`kernels login`, or set HF_TOKEN");
  }
  const hub::Manifest manifest = hub::Manifest::read(flags.build.folder);
  const auto variants =
      flags.built ? hub::built_variants(flags.build.destination()) : flags.build.build(manifest, global);
  const hub::PushPlan plan = hub::plan_push(flags.build.folder, manifest, variants, hub::KeyStore(), options);
  if (flags.dry_run) return show_plan(plan, options, global);
  show_result(hub::push(session.api(), plan, options), plan, options, global);
}

void add_push(CLI::App& app, Global& global) {
  CLI::App* command = app.add_subcommand("push", "Publishes a package: branch vN, tag X.Y.Z, card on main");
  const auto flags = std::make_shared<PushFlags>();
  flags->build.add_to(*command);
  command->add_option("--to", flags->to, "Repository, OWNER/NAME; made if it is missing")->required();
  command->add_flag("--dry-run", flags->dry_run, "List files and sizes; ask no server");
  command->add_flag("--sign", flags->sign, "Sign each variant with a key of `kernels key`");
  command->add_option("--key", flags->key, "Name of that key")->capture_default_str();
  command->add_flag("--built", flags->built, "Publish what `kernels build` left, without building");
  command->add_flag("--private", flags->is_private, "Make a missing repository private");
  add_hub_options(*command, flags->hub);
  command->add_flag("--retag", flags->retag, "Move the version's tag to the new commit");
  add_examples(
      *command,
      "  kernels push --to my-org/scale --dry-run\n"
      "  kernels push my-package --to my-org/scale --sign\n"
      "  kernels push --to my-org/scale --variant c --retag      a variant of another machine\n"
      "CARD.md is the card if there is one; files gone from a variant are deleted, other variants stay.");
  command->callback([flags, &global] { run_push(*flags, global); });
}

void add_lock(CLI::App& app, Global& global) {
  struct Flags {
    std::string folder = ".";
    bool upgrade = false, locked = false, frozen = false;
    HubOptions hub;
  };
  CLI::App* command = app.add_subcommand("lock", "Resolves [dependencies] and writes kernel.lock");
  const auto flags = std::make_shared<Flags>();
  command->add_option("DIR", flags->folder, "Folder of the package, with kernel.toml")->capture_default_str();
  command->add_flag("--upgrade", flags->upgrade, "Take the newest versions, whatever is locked");
  command->add_flag("--locked", flags->locked, "Fail unless kernel.lock is current; never write it");
  add_hub_options(*command, flags->hub);
  command->add_flag("--frozen", flags->frozen, "--locked and --offline");
  add_examples(*command, "  kernels lock\n  kernels lock --upgrade\n  kernels lock --locked      in CI");
  command->callback([flags, &global] {
    const hub::LockPolicy policy{.locked = flags->locked || flags->frozen,
                                 .offline = flags->hub.offline || flags->frozen,
                                 .upgrade = flags->upgrade};
    Session session(flags->hub, global);
    const auto [lock, written] = hub::update_lock(session.api(), flags->folder, policy);
    if (global.json) return print({{"written", written}, {"lock", json::parse(lock.text())}});
    for (const hub::LockedPackage& package : lock.packages) {
      std::printf("%s@%s %s\n", package.repository.c_str(), package.version.text().c_str(),
                  package.commit.c_str());
    }
    if (!global.quiet) std::fprintf(stderr, "kernel.lock %s\n", written ? "written" : "is current");
  });
}

}  // namespace

void add_package(CLI::App& app, Global& global) {
  add_new(app, global);
  add_build(app, global);
  add_push(app, global);
  add_lock(app, global);
}

}  // namespace neuron_kernels::cli
