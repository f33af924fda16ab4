// What the client does with URLs: percent-encoding, the origin that a token belongs to, and forms fit for
// messages.
#pragma once

#include <string>
#include <string_view>

namespace neuron_kernels::hub {

/// Percent-encodes everything but letters, digits and "-._~": one path segment, or a value in a query.
std::string encode_segment(std::string_view text);
/// The same with '/' kept: the path of a file.
std::string encode_path(std::string_view path);

/// "scheme://host:port" in lower case, with the default port filled in; what decides whether a token goes
/// along. errors: HubError network if `url` is not an http or https URL
std::string origin_of(std::string_view url);

/// `reference` (a Location or Link value) as an absolute URL, relative to `base`.
std::string resolve_url(const std::string& base, const std::string& reference);

/// For messages: without user, password, query (signed URLs hold secrets there) and fragment.
std::string url_without_secrets(std::string_view url);

}  // namespace neuron_kernels::hub
