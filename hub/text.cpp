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

std::string joined(std::span<const std::string> words, std::string_view separator) {
  std::string all;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) all += separator;
    all += words[i];
  }
  return all;
}

}  // namespace neuron_kernels::hub
