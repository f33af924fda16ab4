// What RFC 9112 forbids in a request and libmicrohttpd lets pass: two servers that read such a request
// differently can be made to see two different requests in it.
#pragma once

#include <string>
#include <string_view>

struct MHD_Connection;

namespace neuron_kernels::hub::registry {

/// A request's line as libmicrohttpd hands it out: pointers into the buffer of its header.
struct RequestLine {
  const char *url, *version;
  std::string_view target;  // path and query
};

/// Errors: HttpError 400, or 501 for a transfer coding other than chunked. The connection has to be closed:
/// where the next request begins is not known.
void check_request(MHD_Connection* connection, const RequestLine& line);

}  // namespace neuron_kernels::hub::registry
