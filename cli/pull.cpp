// kernels pull: the snapshot's path alone on stdout, so that scripts can use it.
#include "hub/pull.hpp"

#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "cli/command.hpp"
#include "cli/progress.hpp"
#include "cli/session.hpp"
#include "hub/error.hpp"
#include "hub/pull_locked.hpp"
#include "hub/signature_check.hpp"

namespace neuron_kernels::cli {
namespace {

using nlohmann::json;

struct Options {
  HubOptions hub;
  std::string name;
  std::optional<std::string> revision;
  std::optional<std::filesystem::path> dir;
  hub::RepoType type = hub::RepoType::kernel;
  hub::PullOptions pull;
  std::filesystem::path package = ".";
  bool locked = false, frozen = false;
  bool no_dependencies = false, dry_run = false, require_signature = false, print_variant = false;
};

json json_of(const hub::Pulled& pulled) {
  json decisions = json::array(), dependencies = json::array();
  for (const hub::Decision& decision : pulled.decisions) {
    decisions.push_back(
        {{"variant", decision.variant.name}, {"accepted", decision.accepted()}, {"reason", decision.reason}});
  }
  for (const hub::Pulled& dependency : pulled.dependencies) dependencies.push_back(json_of(dependency));
  return {{"repository", pulled.repo.text()},
          {"revision", pulled.revision},
          {"commit", pulled.commit},
          {"variant", pulled.variant},
          {"snapshot", pulled.snapshot},
          {"folder", pulled.folder},
          {"files", pulled.files},
          {"bytes", pulled.total_bytes},
          {"received", pulled.received_bytes},
          {"from_cache", pulled.from_cache},
          {"publisher", pulled.trust ? json(hub::name_of(*pulled.trust)) : json()},
          {"variants", decisions},
          {"dependencies", dependencies}};
}

void print_plan(const hub::Pulled& plan, const Global& global) {
  if (global.json) return print(json_of(plan));
  for (const std::string& file : plan.files) std::printf("%s\n", file.c_str());
  std::fprintf(stderr, "%zu files, %s, of %s@%s%s%s; nothing was downloaded\n", plan.files.size(),
               size_text(plan.total_bytes).c_str(), plan.repo.text().c_str(), plan.revision.c_str(),
               plan.variant.empty() ? "" : ", variant ", plan.variant.c_str());
}

void print_path(const Options& options, const hub::Pulled& pulled) {
  const std::filesystem::path& path = options.dir             ? *options.dir
                                      : options.print_variant ? pulled.folder
                                                              : pulled.snapshot;
  std::printf("%s\n", path.c_str());
}

void run_locked(const Options& options, Session& session, const Global& global) {
  if (!std::filesystem::exists(options.package / hub::Manifest::file_name)) {
    throw hub::HubError(
        hub::ErrorKind::usage,
        "no package is named, and " + options.package.string() + " has no kernel.toml with dependencies",
        "`kernels pull OWNER/NAME@VERSION`; `kernels search WORD` finds names");
  }
  const hub::LockPolicy policy{.locked = options.locked || options.frozen,
                               .offline = session.environment().offline};
  json document = json::array();
  for (const hub::Pulled& pulled : hub::pull_locked(session.api(), options.package, policy, options.pull)) {
    if (options.require_signature && !options.dry_run) hub::require_signature(session.api(), pulled);
    if (global.json)
      document.push_back(json_of(pulled));
    else if (options.dry_run)
      print_plan(pulled, global);
    else
      print_path(options, pulled);
  }
  if (global.json) print(document);
}

void run_named(Options& options, Session& session, const Global& global) {
  hub::Reference reference = hub::parse_reference(options.name, options.type);
  if (options.revision) reference.revision = *options.revision;
  if (options.dir && options.pull.variant.empty()) options.pull.all_files = true;
  if (options.pull.all_files && reference.revision.empty()) reference.revision = "main";
  const hub::Pulled pulled = hub::pull(session.api(), reference, options.pull);
  if (options.dry_run) return print_plan(pulled, global);
  if (options.require_signature) hub::require_signature(session.api(), pulled);
  if (options.dir) hub::export_files(pulled, *options.dir);
  if (global.json) return print(json_of(pulled));
  print_path(options, pulled);
}

void run(Options& options, const Global& global) {
  if (options.frozen) options.hub.offline = true;
  if (options.name.empty() && (options.dir || options.revision || options.pull.all_files)) {
    throw hub::HubError(hub::ErrorKind::usage,
                        "--dir, --revision and --all are for one package, and none is named",
                        "`kernels pull OWNER/NAME@VERSION --dir FOLDER`");
  }
  if (!options.name.empty() && (options.locked || options.frozen)) {
    throw hub::HubError(
        hub::ErrorKind::usage,
        "--locked and --frozen are for the packages of kernel.lock; given was " + options.name,
        "without a name `kernels pull --locked` pulls them all");
  }
  options.pull.dependencies = !options.no_dependencies;
  options.pull.plan_only = options.dry_run;
  options.pull.download.parallel = options.hub.parallel;
  Session session(options.hub, global);
  ProgressLine line(global, session.environment());
  options.pull.download.on_progress = [&](const hub::Progress& progress) { line.show(progress); };
  std::set<std::string> told;
  options.pull.download.on_notice = [&](const std::string& text) {
    if (!told.insert(text).second) return;
    line.clear();
    notice(global, text);
  };
  if (options.name.empty())
    run_locked(options, session, global);
  else
    run_named(options, session, global);
}

void add_platform_options(CLI::App& command, hub::PlatformOverrides& platform) {
  const auto group = "Platform (found by itself)";
  command.add_option("--python", platform.python, "Python environment to pull for")->group(group);
  command.add_option("--torch", platform.torch, "Version of PyTorch, such as 2.13, or none")->group(group);
  command.add_option("--backend", platform.backend, "cpu, cu130, rocm71, xpu20253, neuron, ...")
      ->group(group);
  command.add_option("--device", platform.device_arch, "Device, such as 9.0 (CUDA) or gfx942")->group(group);
  command.add_option("--arch", platform.arch, "Processor: x86_64, aarch64")->group(group);
  command.add_option("--os", platform.os, "System: linux, darwin, windows")->group(group);
}

}  // namespace

void add_pull(CLI::App& app, Global& global) {
  CLI::App* command = app.add_subcommand("pull", "Downloads a version of a package; prints where it is");
  const auto options = std::make_shared<Options>();
  command->add_option("NAME", options->name,
                      "OWNER/NAME[@VERSION]: 1, 1.2, ^1, a tag, a branch or a commit; "
                      "without it, what kernel.lock of --package names");
  command->add_option("--package", options->package, "Folder with kernel.toml and kernel.lock")
      ->capture_default_str();
  command->add_flag("--locked", options->locked, "Fail unless kernel.lock is current; never write it");
  command->add_flag("--frozen", options->frozen, "--locked and --offline");
  command->add_option("--revision", options->revision, "The same as @VERSION");
  command->add_option("--variant", options->pull.variant, "Folder below build/, or header-only");
  command->add_flag("--all", options->pull.all_files, "All files of the revision (main if none is named)");
  command->add_option("--dir", options->dir,
                      "Also as plain files into this folder: all, or those of --variant");
  command->add_flag("--variant-path", options->print_variant, "Print the folder of the variant instead");
  command->add_flag("--dry-run", options->dry_run, "List the files and their size, download nothing");
  command->add_flag("--no-deps", options->no_dependencies, "Without the kernels it depends on");
  command->add_flag("--require-signature", options->require_signature,
                    "Fail unless a trusted key signed it (`kernels key trust`)");
  command->add_option("--parallel", options->hub.parallel, "Files at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  add_type_option(*command, options->type);
  add_hub_options(*command, options->hub);
  add_platform_options(*command, options->pull.platform);
  add_examples(*command,
               "  kernels pull kernels-community/activation@1       the newest of version branch v1\n"
               "  kernels pull my-org/scale@^1.2                    the highest release in a range\n"
               "  kernels pull my-org/scale@1 --variant header-only --variant-path\n"
               "  kernels pull my-org/scale@1 --torch 2.12 --backend cu130 --dry-run\n"
               "  kernels pull my-org/scale@1 --offline --json\n"
               "  kernels pull --locked                             all that kernel.lock pins, for CI");
  command->callback([options, &global] { run(*options, global); });
}

}  // namespace neuron_kernels::cli
