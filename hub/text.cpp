#include "hub/text.hpp"

#include <cstdio>

namespace neuron_kernels::hub {

std::string size_text(std::uint64_t bytes) {
  char text[32];
  const double value = static_cast<double>(bytes);
  if (bytes < 1000)
    std::snprintf(text, sizeof text, "%d B", static_cast<int>(bytes));
  else if (bytes < 1'000'000)
    std::snprintf(text, sizeof text, "%.1f kB", value / 1e3);
  else if (bytes < 1'000'000'000)
    std::snprintf(text, sizeof text, "%.1f MB", value / 1e6);
  else
    std::snprintf(text, sizeof text, "%.2f GB", value / 1e9);
  return text;
}

}  // namespace neuron_kernels::hub
