// kernels serve gc: housekeeping of a registry, while it runs or not.
#include <cstdio>

#include "cli/serve.hpp"
#include "cli/session.hpp"
#include "hub/error.hpp"
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

}  // namespace

void add_store_commands(CLI::App& serve_command, const std::shared_ptr<ServeOptions>& options,
                        Global& global) {
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

}  // namespace neuron_kernels::cli
