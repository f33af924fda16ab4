// Whether a hub vouches for those who published a package. Hugging Face's get_kernel asks the same before it
// imports Python code. Only an organization can be trusted, never a user.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hub/api.hpp"

namespace neuron_kernels::hub {

enum class Trust { trusted, untrusted, unknown };

/// One request; unknown if the hub does not answer it.
Trust publisher_trust(Api& api, const std::string& owner);

/// "trusted", "untrusted", "unknown"
std::string_view name_of(Trust trust);

/// "alice is not trusted by the hub: ...": what that means for who imports code of hers.
std::string trust_text(Trust trust, const std::string& owner);

bool has_python(const std::vector<std::string>& files);

}  // namespace neuron_kernels::hub
