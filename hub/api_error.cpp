#include "hub/api_error.hpp"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>

#include "hub/url.hpp"

namespace neuron_kernels::hub {

namespace {

constexpr std::size_t longest_message = 300;  // characters

/// Some servers repeat the request in their errors.
std::string without_tokens(std::string text) {
  for (std::size_t at = 0; (at = text.find("hf_", at)) != text.npos;) {
    const std::size_t begin = at + 3;
    std::size_t end = begin;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end - begin >= 8) text.replace(begin, end - begin, "...");
    at = begin;
  }
  return text;
}

HubError auth_error(const Response& response, const std::string& subject, const std::string& token_source,
                    const std::string& said) {
  const std::string_view code = response.headers.get("X-Error-Code");
  const bool anonymous = token_source.empty();
  const std::string log_in = "`kernels login`, or set HF_TOKEN";
  if (code == "GatedRepo") {
    return {ErrorKind::auth, subject + " is gated: " + said,
            anonymous ? log_in : "ask for access on its page, then try again"};
  }
  if (response.status == 401 && anonymous) {
    const std::string what = code == "RepoNotFound" ? " does not exist, or is private" : " needs a token";
    return {code == "RepoNotFound" ? ErrorKind::not_found : ErrorKind::auth,
            subject + what + " (no token was sent)", "check the name; if it is private: " + log_in};
  }
  if (response.status == 401) {
    return {ErrorKind::auth, "the server refuses the token from " + token_source + ": " + said,
            "`kernels login` stores a new one; without a token public packages stay readable"};
  }
  return {ErrorKind::auth, "no right to " + subject + ": " + said,
          anonymous
              ? "no token was sent: " + log_in
              : "the token from " + token_source + " needs the right to this, for example write access"};
}

HubError missing_error(const Response& response, const std::string& subject, const std::string& said) {
  const std::string_view code = response.headers.get("X-Error-Code");
  if (code == "RepoNotFound") {
    return {ErrorKind::not_found, subject + " does not exist, or your token may not read it",
            "check the name; `kernels search WORD` finds packages"};
  }
  if (code == "RevisionNotFound") {
    return {ErrorKind::not_found, subject + " has no such revision: " + said,
            "`kernels versions OWNER/NAME` lists them"};
  }
  if (code == "EntryNotFound") return {ErrorKind::not_found, subject + " has no such file: " + said};
  return {ErrorKind::not_found, subject + " was not found: " + said,
          "check the name, and that HF_ENDPOINT names a hub"};
}

}  // namespace

std::string server_message(const Response& response) {
  std::string message;
  const auto body = nlohmann::json::parse(response.body, nullptr, false);
  if (body.is_object() && body.contains("error") && body["error"].is_string()) {
    message = body["error"].get<std::string>();
  }
  if (message.empty()) message = std::string(response.headers.get("X-Error-Message"));
  if (message.empty() && body.is_discarded() && response.body.find('<') == response.body.npos) {
    message = response.body;
  }
  if (message.empty()) message = "HTTP " + std::to_string(response.status);
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = ' ';
  }
  if (message.size() > longest_message) message = message.substr(0, longest_message) + "...";
  return without_tokens(message);
}

HubError api_error(const Response& response, const std::string& subject, const std::string& token_source) {
  const std::string said = server_message(response);
  const int status = response.status;
  HubError error = [&]() -> HubError {
    if (status == 401 || status == 403) return auth_error(response, subject, token_source, said);
    if (status == 404) return missing_error(response, subject, said);
    if (status == 409) return {ErrorKind::conflict, subject + ": " + said};
    if (status == 412) {
      return {ErrorKind::conflict, subject + ": the branch has moved since: " + said,
              "look at what is new there, then try again"};
    }
    if (status == 429) {
      const auto wait = wait_asked_for(response.headers, std::time(nullptr)).count();
      return {ErrorKind::network, "the server asks to slow down, and did so after all retries: " + said,
              (wait > 0 ? "wait " + std::to_string(wait) + " s" : std::string("wait some minutes")) +
                  "; with a token the limits are higher"};
    }
    if (status == 507) {
      return {ErrorKind::failed, "the server has no place to store " + subject + ": " + said,
              "tell whoever runs the server"};
    }
    if (status >= 500) {
      return {ErrorKind::network, "the server failed on " + subject + ": " + said, "try again later"};
    }
    if (status < 400) {
      return {ErrorKind::network, subject + ": unexpected answer, HTTP " + std::to_string(status),
              "check that HF_ENDPOINT names a hub"};
    }
    return {ErrorKind::failed, "the server refuses the request for " + subject + ": " + said};
  }();
  return error.at(url_without_secrets(response.url), status);
}

}  // namespace neuron_kernels::hub
