#include "hub/environment.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "hub/error.hpp"
#include "hub/files.hpp"
#include "neuron_kernels/version.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view default_endpoint = "https://huggingface.co";
constexpr std::string_view blanks = " \t\r\n\f\v";

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// Reads variables; an empty one counts as not set.
class Variables {
 public:
  explicit Variables(const Getenv& getenv) : getenv_(getenv) {}

  const char* get(const char* name) const {
    const char* value = getenv_(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
  }
  bool flag(const char* name) const { return is_true(get(name)); }
  fs::path folder(const char* name) const {
    const char* value = get(name);
    return value == nullptr ? fs::path() : expanded(value);
  }
  std::chrono::seconds seconds(const char* name, std::chrono::seconds otherwise) const {
    const char* value = get(name);
    const double number = value == nullptr ? 0 : std::atof(value);
    return number > 0 ? std::chrono::seconds(static_cast<long>(std::clamp(number, 1.0, 86400.0))) : otherwise;
  }
  /// "~" and "~/..." are in the home folder of the user, as Python's expanduser has it.
  fs::path expanded(const std::string& path) const {
    const char* home = get("HOME");
    if (path.starts_with('~') && home != nullptr && (path.size() == 1 || path[1] == '/')) {
      return fs::path(home + path.substr(1));
    }
    return path;
  }

 private:
  const Getenv& getenv_;
};

fs::path home_folder(const Variables& variables) {
  if (fs::path home = variables.folder("HF_HOME"); !home.empty()) return home;
  fs::path base = variables.folder("XDG_CACHE_HOME");
  if (base.empty()) {
    base = variables.expanded("~/.cache");
    if (base.string().starts_with('~')) {
      throw HubError(ErrorKind::usage, "there is no place for the cache: neither HOME nor HF_HOME is set",
                     "set HF_HOME to a folder");
    }
  }
  return base / "huggingface";
}

fs::path cache_folder(const Variables& variables, const fs::path& home) {
  for (const char* name : {"KERNELS_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (fs::path folder = variables.folder(name); !folder.empty()) return folder;
  }
  return home / "hub";
}

void find_token(const Variables& variables, Environment& environment) {
  if (variables.flag("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    const char* value = variables.get(name);
    if (value == nullptr || without_blanks(value).empty()) continue;
    environment.token = checked_token(value, name);
    environment.token_source = name;
    return;
  }
  std::error_code ignored;
  if (!fs::is_regular_file(environment.token_path, ignored)) return;
  const std::string source = environment.token_path.string();
  environment.token = checked_token(read_file(environment.token_path), source);
  if (!environment.token.empty()) environment.token_source = source;
}

}  // namespace

bool is_true(const char* value) {
  if (value == nullptr) return false;
  std::string text(value);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "1" || text == "on" || text == "yes" || text == "true";
}

std::string checked_token(std::string_view token, std::string_view source) {
  token = without_blanks(token);
  const bool clean = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!clean) {
    throw HubError(ErrorKind::usage,
                   "the token in " + std::string(source) +
                       " has a blank or a character inside that no HTTP header can carry (it is not shown)",
                   "copy the token again; it is one word such as hf_...");
  }
  return std::string(token);
}

std::string checked_endpoint(std::string_view url, std::string_view source) {
  std::string endpoint(without_blanks(url));
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const std::size_t host = endpoint.find("://");
  const bool http = endpoint.starts_with("http://") || endpoint.starts_with("https://");
  if (!http || host + 3 >= endpoint.size() || endpoint.find_first_of("?# \"<>") != endpoint.npos) {
    throw HubError(ErrorKind::usage,
                   std::string(source) + " is '" + std::string(url) + "', which is not a URL of a server",
                   "write it as https://host or http://host:port/prefix");
  }
  return endpoint;
}

Environment read_environment(std::optional<std::string> endpoint) {
  return read_environment(std::move(endpoint), [](const char* name) { return std::getenv(name); });
}

Environment read_environment(std::optional<std::string> endpoint, const Getenv& getenv) {
  const Variables variables(getenv);
  Environment environment;
  if (endpoint) {
    environment.endpoint = checked_endpoint(*endpoint, "--endpoint");
  } else if (const char* value = variables.get("HF_ENDPOINT")) {
    environment.endpoint = checked_endpoint(value, "HF_ENDPOINT");
  } else {
    environment.endpoint = default_endpoint;
  }
  environment.home = home_folder(variables);
  environment.cache = cache_folder(variables, environment.home);
  environment.token_path = variables.folder("HF_TOKEN_PATH");
  if (environment.token_path.empty()) environment.token_path = environment.home / "token";
  find_token(variables, environment);
  environment.offline = variables.flag("HF_HUB_OFFLINE") || variables.flag("TRANSFORMERS_OFFLINE");
  environment.symlinks = !variables.flag("HF_HUB_DISABLE_SYMLINKS");
  environment.symlinks_warning = !variables.flag("HF_HUB_DISABLE_SYMLINKS_WARNING");
  environment.telemetry = !variables.flag("HF_HUB_DISABLE_TELEMETRY") &&
                          !variables.flag("DISABLE_TELEMETRY") && !variables.flag("DO_NOT_TRACK");
  environment.progress_bars = !variables.flag("HF_HUB_DISABLE_PROGRESS_BARS");
  environment.connect_timeout = variables.seconds("HF_HUB_ETAG_TIMEOUT", environment.connect_timeout);
  environment.idle_timeout = variables.seconds("HF_HUB_DOWNLOAD_TIMEOUT", environment.idle_timeout);
  return environment;
}

std::string Environment::user_agent() const {
  std::string text = "neuron-kernels/" + std::string(version);
  utsname system{};
  if (telemetry && ::uname(&system) == 0) text += std::string("; platform/") + system.machine + "-linux";
  return text;
}

}  // namespace neuron_kernels::hub
