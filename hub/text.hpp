// Words and sizes as people read them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace neuron_kernels::hub {

/// "1.2 MB"
std::string size_text(std::uint64_t bytes);

/// "a, b, c"
std::string joined(std::span<const std::string> words, std::string_view separator = ", ");

}  // namespace neuron_kernels::hub
