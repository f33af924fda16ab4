// Words and sizes as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace neuron_kernels::hub {

/// "1.2 MB"
std::string size_text(std::uint64_t bytes);

/// "a, b, c" of words that are std::string or std::string_view
template <class Words>
std::string joined(const Words& words, std::string_view separator = ", ") {
  std::string all;
  bool first = true;
  for (const std::string_view word : words) {
    if (!first) all += separator;
    first = false;
    all += word;
  }
  return all;
}

}  // namespace neuron_kernels::hub
