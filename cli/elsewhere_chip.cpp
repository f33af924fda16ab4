// The commands that `kernels` leaves to `kernels-chip`.
#include "cli/command.hpp"

namespace neuron_kernels::cli {

void add_chip(CLI::App& app, Global& global) {
  add_elsewhere(app, global, "kernels-chip", "check", check_description);
  add_elsewhere(app, global, "kernels-chip", "profile", profile_description);
  add_elsewhere(app, global, "kernels-chip", "emit", emit_description);
  add_elsewhere(app, global, "kernels-chip", "include", include_description);
}

}  // namespace neuron_kernels::cli
