// Answers of a hub that are no success, as HubError: kind, what the server said, what to do.
#pragma once

#include <string>

#include "hub/error.hpp"
#include "hub/http.hpp"

namespace neuron_kernels::hub {

/// The error for `response` (status 300 and above) to a request about `subject`, such as "kernel org/name".
/// token_source: where the token of the request came from, empty for an anonymous one.
HubError api_error(const Response& response, const std::string& subject, const std::string& token_source);

/// What the server says in its body or in X-Error-Message: one line of at most 300 characters, without
/// tokens.
std::string server_message(const Response& response);

}  // namespace neuron_kernels::hub
