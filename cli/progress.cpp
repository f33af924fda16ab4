#include "cli/progress.hpp"

#include <unistd.h>

#include <cstdio>

#include "cli/session.hpp"

namespace neuron_kernels::cli {

namespace {

constexpr auto between_updates = std::chrono::milliseconds(100);

}  // namespace

ProgressLine::ProgressLine(const Global& global, const hub::Environment& environment)
    : on_(!global.quiet && environment.progress_bars && ::isatty(STDERR_FILENO) == 1),
      started_(std::chrono::steady_clock::now()),
      last_(started_) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const hub::Progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (!on_ || now - last_ < between_updates) return;
  last_ = now;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(progress.bytes) / seconds);
  std::fprintf(stderr, "\r\033[K%zu of %zu files, %s of %s, %s/s", progress.files, progress.total_files,
               size_text(progress.bytes).c_str(), size_text(progress.total_bytes).c_str(),
               size_text(rate).c_str());
}

void ProgressLine::clear() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

}  // namespace neuron_kernels::cli
