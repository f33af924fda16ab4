// What the environment variables of the Hugging Face tools say: server, cache folders, token, switches. Same
// names, same order as theirs, so both share one cache and one login.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuron_kernels::hub {

struct Environment {
  std::string endpoint;              // HF_ENDPOINT without '/' at its end
  std::filesystem::path home;        // HF_HOME
  std::filesystem::path cache;       // KERNELS_CACHE, HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE or HF_HOME/hub
  std::filesystem::path token_path;  // HF_TOKEN_PATH or HF_HOME/token
  std::string token;                 // empty: anonymous
  std::string token_source;          // variable or file that the token came from, for messages
  bool offline = false;              // HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE
  bool symlinks = true;              // unless HF_HUB_DISABLE_SYMLINKS
  bool symlinks_warning = true;      // unless HF_HUB_DISABLE_SYMLINKS_WARNING
  bool telemetry = true;             // false: the User-Agent names no platform
  bool progress_bars = true;         // unless HF_HUB_DISABLE_PROGRESS_BARS
  std::chrono::seconds connect_timeout{10};  // HF_HUB_ETAG_TIMEOUT
  std::chrono::seconds idle_timeout{10};     // HF_HUB_DOWNLOAD_TIMEOUT: longest silence of the server

  std::string user_agent() const;
};

/// Looks a variable up; null if it is not set. A test passes its own.
using Getenv = std::function<const char*(const char*)>;

/// errors: HubError usage for an endpoint that is no http(s) URL or a token with blanks or control characters
/// inside (it is not shown)
Environment read_environment(std::optional<std::string> endpoint = {});
Environment read_environment(std::optional<std::string> endpoint, const Getenv& getenv);

/// "1", "on", "yes", "true" in any case.
bool is_true(const char* value);

/// `token` without blanks around it. Errors: HubError usage as above; `source` says where it came from.
std::string checked_token(std::string_view token, std::string_view source);

/// `url` without '/' at its end. Errors: HubError usage.
std::string checked_endpoint(std::string_view url, std::string_view source);

}  // namespace neuron_kernels::hub
