#include "hub/registry/request_check.hpp"

#include <microhttpd.h>
#include <strings.h>

#include <cstdint>
#include <utility>

#include "hub/registry/http_server.hpp"

namespace neuron_kernels::hub::registry {

namespace {

struct Framing {
  int hosts = 0, lengths = 0, codings = 0;
  std::string_view host, coding;
};

MHD_Result note(void* context, MHD_ValueKind, const char* name, const char* value) {
  auto& framing = *static_cast<Framing*>(context);
  const std::string_view text = value != nullptr ? value : std::string_view();
  if (::strcasecmp(name, "Host") == 0) {
    ++framing.hosts;
    framing.host = text;
  } else if (::strcasecmp(name, "Content-Length") == 0) {
    ++framing.lengths;
  } else if (::strcasecmp(name, "Transfer-Encoding") == 0) {
    ++framing.codings;
    framing.coding = text;
  }
  return MHD_YES;
}

[[noreturn]] void refuse(std::string message, int status = 400) {
  throw HttpError{status, std::move(message), {}, {}};
}

/// A zero byte ends the address for libmicrohttpd, and hides what follows. In its buffer the version follows
/// the address after one blank.
bool hides_bytes(const RequestLine& line) {
  const auto url = reinterpret_cast<std::uintptr_t>(line.url);
  const auto version = reinterpret_cast<std::uintptr_t>(line.version);
  return version - url != line.target.size() + 1;
}

}  // namespace

void check_request(MHD_Connection* connection, const RequestLine& line) {
  if (hides_bytes(line))
    refuse("the address holds a zero byte, or is not followed by one blank and the version");
  Framing framing;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, note, &framing);
  if (framing.hosts > 1 || (framing.hosts == 0 && std::string_view(line.version) != "HTTP/1.0")) {
    refuse("the request has " + std::to_string(framing.hosts) + " Host fields; expected one");
  }
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";
  if (framing.host.find_first_not_of(allowed) != framing.host.npos) {
    refuse("the Host field holds more than a name or address and a port");
  }
  if (framing.lengths + framing.codings > 1) {
    refuse(
        "the request says more than once how long its body is; expected one Content-Length or "
        "Transfer-Encoding");
  }
  if (framing.codings == 1 && ::strcasecmp(std::string(framing.coding).c_str(), "chunked") != 0) {
    refuse("the body comes in the transfer coding '" + std::string(framing.coding) + "'; allowed is chunked",
           501);
  }
}

}  // namespace neuron_kernels::hub::registry
