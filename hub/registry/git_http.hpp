// Read-only git over HTTP ("smart" protocol): what `git clone` asks, answered by git's own upload-pack.
#pragma once

#include <filesystem>
#include <string>

#include "hub/registry/http_server.hpp"

namespace neuron_kernels::hub::registry {

/// GET .../info/refs?service=git-upload-pack. protocol: the field Git-Protocol, maybe empty.
/// errors: HttpError 403 for another service (pushing is not offered), 501 where git is not installed
Reply advertise_refs(const std::filesystem::path& repository, const std::string& service,
                     const std::string& protocol, const std::filesystem::path& temporary_folder);

/// POST .../git-upload-pack: the request is in memory, the pack goes to a temporary file and from there out.
Reply upload_pack(const std::filesystem::path& repository, const std::string& request,
                  const std::string& protocol, const std::filesystem::path& temporary_folder);

/// The content of a gzip stream of at most `most_bytes`. Errors: HttpError 400, 413.
std::string gunzipped(const std::string& packed, std::size_t most_bytes);

}  // namespace neuron_kernels::hub::registry
