// kernels serve gc|backup|restore: housekeeping of a registry, while it runs or not.
#include <cstdio>

#include "cli/serve.hpp"
#include "cli/session.hpp"
#include "hub/error.hpp"
#include "hub/registry/backup.hpp"
#include "hub/registry/gc.hpp"

namespace neuron_kernels::cli {

namespace {

namespace registry = hub::registry;

void report(const registry::Collected& done, bool dry_run, const Global& global) {
  if (global.json) {
    return print({{"packed", done.packed},
                  {"packs", done.packs},
                  {"git_objects", done.git_objects},
                  {"objects", done.objects},
                  {"xorbs", done.xorbs},
                  {"leftovers", done.leftovers},
                  {"bytes", done.bytes},
                  {"problems", done.problems},
                  {"dry_run", dry_run}});
  }
  if (global.quiet) return;
  const char *pack = dry_run ? "would pack" : "packed", *remove = dry_run ? "would remove" : "removed";
  std::printf("%s %zu git objects\n", pack, done.packed);
  std::printf("%s %zu git objects, %zu packs, %zu stored files, %zu xorbs, %zu leftovers: %s\n", remove,
              done.git_objects, done.packs, done.objects, done.xorbs, done.leftovers,
              size_text(done.bytes).c_str());
}

void gc(const std::filesystem::path& root, const registry::GcOptions& options, const Global& global) {
  const registry::Collected done = registry::collect_garbage(root, options);
  report(done, options.dry_run, global);
  if (done.problems.empty()) return;
  for (const std::string& problem : done.problems) std::fprintf(stderr, "%s\n", problem.c_str());
  throw hub::HubError(hub::ErrorKind::integrity,
                      std::to_string(done.problems.size()) +
                          " repositories could not be cleaned; what they hold was left as it is",
                      "mend what is named above, or restore it from a backup");
}

void report(const char* what, const std::string& where, const registry::BackedUp& done,
            const Global& global) {
  if (global.json) {
    return print({{"repositories", done.repositories}, {"objects", done.objects}, {"bytes", done.bytes}});
  }
  if (global.quiet) return;
  std::printf("%s %s: %zu repositories, %zu stored files, %s\n", what, where.c_str(), done.repositories,
              done.objects, size_text(done.bytes).c_str());
}

void add_gc(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options, Global& global) {
  CLI::App* collect =
      serve_command.add_subcommand("gc", "pack git objects, remove what nothing names any more");
  const auto gc_options = std::make_shared<registry::GcOptions>();
  const auto hours = std::make_shared<int>(24);
  collect->add_flag("--dry-run", gc_options->dry_run, "say what would go");
  collect->add_option("--grace", *hours, "hours for which what was sent or named stays; 7 and more")
      ->capture_default_str();
  add_examples(*collect,
               "  kernels serve --root registry gc --dry-run\n"
               "  kernels serve --root registry gc --grace 72 --json\n");
  collect->callback([=, &global] {
    gc_options->grace_s = std::int64_t{*hours} * 3600;
    gc(options->root, *gc_options, global);
  });
}

void add_backup(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options, Global& global) {
  CLI::App* backup = serve_command.add_subcommand("backup", "write everything to one tar file");
  const auto file = std::make_shared<std::string>();
  backup->add_option("FILE", *file, "the archive; it holds secrets, and must not be there yet")->required();
  add_examples(*backup, "  kernels serve --root registry backup registry-$(date +%F).tar\n");
  backup->callback([=, &global] { report("wrote", *file, registry::back_up(options->root, *file), global); });
}

void add_restore(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options, Global& global) {
  CLI::App* restore =
      serve_command.add_subcommand("restore", "make --root, absent or empty, what a backup holds");
  const auto file = std::make_shared<std::string>();
  restore->add_option("FILE", *file, "what `kernels serve backup` wrote")->required();
  add_examples(*restore, "  kernels serve --root restored restore registry-2026-01-31.tar\n");
  restore->callback([=, &global] {
    report("restored", options->root.string(), registry::restore(*file, options->root), global);
  });
}

}  // namespace

void add_store_commands(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options,
                        Global& global) {
  add_gc(serve_command, options, global);
  add_backup(serve_command, options, global);
  add_restore(serve_command, options, global);
}

}  // namespace neuron_kernels::cli
