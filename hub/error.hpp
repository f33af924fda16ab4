// HubError: the one exception of the hub library, with what a person needs to act on it.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace neuron_kernels::hub {

/// What went wrong, by what the user can do about it; `kernels` turns each into an exit code (exit_code).
enum class ErrorKind {
  failed,        // anything without a kind of its own
  usage,         // wrong arguments, malformed manifest, impossible range
  auth,          // no token, a bad one, or a right that is missing
  not_found,     // repository, revision, version or file
  network,       // no connection, time-out, or a server that fails
  integrity,     // bytes that do not match their digest, a bad signature
  incompatible,  // no variant fits this machine, or dependencies contradict each other
  conflict,      // the branch moved on, the name is taken
  storage,       // disk full, read-only, permission
};

/// 0 is success, 1 failed, 2 usage; the others name their kind.
constexpr int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::failed:
      return 1;
    case ErrorKind::usage:
      return 2;
    case ErrorKind::auth:
      return 3;
    case ErrorKind::not_found:
      return 4;
    case ErrorKind::network:
      return 5;
    case ErrorKind::integrity:
      return 6;
    case ErrorKind::incompatible:
      return 7;
    case ErrorKind::conflict:
      return 8;
    case ErrorKind::storage:
      return 9;
  }
  return 1;
}

/// what() is one line: what was given, what is allowed or was expected. hint: what to do, may be empty.
/// Neither ever holds a token.
class HubError : public std::runtime_error {
 public:
  HubError(ErrorKind error_kind, const std::string& message, std::string what_to_do = {})
      : std::runtime_error(message), kind(error_kind), hint(std::move(what_to_do)) {}

  /// For answers of a server.
  HubError& at(std::string request_url, int http_status) {
    url = std::move(request_url);
    status = http_status;
    return *this;
  }

  ErrorKind kind;
  std::string hint;
  std::string url;  // without credentials; empty if no request was made
  int status = 0;   // HTTP status; 0 if there was no answer
};

}  // namespace neuron_kernels::hub
