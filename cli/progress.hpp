// One line on the terminal that says how far a download is; nothing where stderr is no terminal.
#pragma once

#include <chrono>

#include "cli/command.hpp"
#include "hub/download.hpp"
#include "hub/environment.hpp"

namespace neuron_kernels::cli {

class ProgressLine {
 public:
  ProgressLine(const Global& global, const hub::Environment& environment);
  ~ProgressLine();
  void show(const hub::Progress& progress);
  /// Clears the line, for other output.
  void clear();

 private:
  bool on_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point started_, last_;
};

}  // namespace neuron_kernels::cli
