#include "bench/machine.hpp"

#include <sched.h>

#include <cstdio>
#include <fstream>

#include "neuron_kernels/host/pages.hpp"

namespace bench {
namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  std::string model, family, number;
  // The first processor ends at a blank line.
  for (std::string line; std::getline(info, line) && !line.empty();) {
    const auto colon = line.find(':');
    const std::string value = colon + 2 < line.size() ? line.substr(colon + 2) : "";
    if (line.starts_with("model name")) model = value;
    if (line.starts_with("cpu family")) family = value;
    if (line.starts_with("model\t")) number = value;
  }
  return model + " (family " + family + ", model " + number + ")";
}

/// "unknown" outside a git work tree.
std::string commit() {
  std::string text;
  if (FILE* const git = popen("git describe --always --dirty --abbrev=12 2>/dev/null", "r"); git != nullptr) {
    char line[128] = "";
    if (std::fgets(line, sizeof line, git) != nullptr) text = line;
    pclose(git);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "unknown" : text;
}

std::string load() {
  std::string one = "unknown";
  std::ifstream("/proc/loadavg") >> one;
  return one;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> machine() {
  return {{"cpu", cpu_model()},
          {"processors", std::to_string(processors())},
          {"isa", neuron_kernels::host::best_page().name},
          {"compiler", "C++ compiler " __VERSION__},
          {"commit", commit()},
          {"load_at_start", load()}};
}

int processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::vector<int> thread_counts() {
  const int all = processors();
  return all > 1 ? std::vector{1, all} : std::vector{1};
}

}  // namespace bench
