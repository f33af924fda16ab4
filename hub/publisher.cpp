#include "hub/publisher.hpp"

#include <algorithm>

#include "hub/error.hpp"

namespace neuron_kernels::hub {

Trust publisher_trust(Api& api, const std::string& owner) {
  try {
    const auto organization = api.organization(owner);
    return organization && organization->trusted_publisher ? Trust::trusted : Trust::untrusted;
  } catch (const HubError&) {  // the package itself is still to be had
    return Trust::unknown;
  }
}

std::string_view name_of(Trust trust) {
  switch (trust) {
    case Trust::trusted:
      return "trusted";
    case Trust::untrusted:
      return "untrusted";
    case Trust::unknown:
      break;
  }
  return "unknown";
}

std::string trust_text(Trust trust, const std::string& owner) {
  switch (trust) {
    case Trust::trusted:
      return owner + " is trusted by the hub";
    case Trust::untrusted:
      return owner +
             " is not trusted by the hub: read the code before you import it (get_kernel asks for "
             "trust_remote_code=True)";
    case Trust::unknown:
      break;
  }
  return "whether " + owner + " is trusted, the hub did not say: read the code before you import it";
}

bool has_python(const std::vector<std::string>& files) {
  return std::any_of(files.begin(), files.end(),
                     [](const std::string& file) { return file.ends_with(".py"); });
}

}  // namespace neuron_kernels::hub
