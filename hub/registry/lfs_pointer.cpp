#include "hub/registry/lfs_pointer.hpp"

#include <cstdlib>

#include "hub/digest.hpp"

namespace neuron_kernels::hub::registry {

std::string LfsPointer::text() const {
  return "version https://git-lfs.github.com/spec/v1\noid sha256:" + sha256 + "\nsize " +
         std::to_string(size) + "\n";
}

std::optional<LfsPointer> LfsPointer::parse(std::string_view text) {
  LfsPointer pointer;
  constexpr std::string_view head = "version https://git-lfs.github.com/spec/v1\noid sha256:";
  if (!text.starts_with(head) || text.size() < head.size() + 64) return std::nullopt;
  pointer.sha256 = text.substr(head.size(), 64);
  const std::string_view size = text.substr(head.size() + 64);
  if (!is_hex(pointer.sha256, 64) || !size.starts_with("\nsize ") || size.size() > 30) return std::nullopt;
  pointer.size = std::strtoull(std::string(size.substr(6)).c_str(), nullptr, 10);
  if (pointer.text() != text) return std::nullopt;
  return pointer;
}

}  // namespace neuron_kernels::hub::registry
