// The text that stands in git for a file that is kept outside it (git-lfs specification, "pointer").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace neuron_kernels::hub::registry {

struct LfsPointer {
  static constexpr std::size_t most_bytes = 200;  // a blob that is longer is none

  std::string sha256;
  std::uint64_t size = 0;

  std::string text() const;
  /// Nothing unless the whole text is a pointer of version 1.
  static std::optional<LfsPointer> parse(std::string_view text);
};

}  // namespace neuron_kernels::hub::registry
