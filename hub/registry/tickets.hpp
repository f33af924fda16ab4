// Tickets: short texts that carry a right, with an end, in an address or as a token; nobody else can make
// one.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace neuron_kernels::hub::registry {

class Tickets {
 public:
  /// The secret is made at the first start and kept in `file` (0600), so that tickets outlive a restart.
  explicit Tickets(const std::filesystem::path& file);

  /// URL-safe. `seconds` from now on it is void.
  std::string issue(nlohmann::json right, int seconds) const;
  /// What issue() was given; nothing if the ticket is not from here or has ended.
  std::optional<nlohmann::json> open(std::string_view ticket) const;

 private:
  std::string authenticator(std::string_view content) const;
  std::string secret_;
};

}  // namespace neuron_kernels::hub::registry
