// The registry's HTTP server over libmicrohttpd: hands requests to a Router and sends what it answers.
//
// Each connection has a thread (more bytes/s than few threads that wait on all, by a tenth, and half the p99);
// only some of them work out answers at a time, which bounds memory. Bodies of files go out by sendfile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hub/digest.hpp"
#include "hub/files.hpp"
#include "hub/registry/connection_watch.hpp"

namespace neuron_kernels::hub::registry {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// What is known of a request before its body.
struct RequestHead {
  std::string method;
  std::string path;      // as it came, percent-encoded, without the query
  std::string query;     // as it came, without '?'
  std::string base_url;  // "http://host:port", as the client named this server
  std::string client;    // its address
  std::function<std::string_view(const char* name)> field;  // header field; empty if there is none

  bool is_get() const { return method == "GET" || method == "HEAD"; }
  /// The parts of `path` between slashes, each decoded. Errors: HttpError 400 for a wrong escape or a zero
  /// byte.
  std::vector<std::string> parts() const;
  /// Decoded value of a query parameter; `fallback` if it is absent.
  std::string parameter(std::string_view name, std::string fallback = {}) const;
  /// Whether a query parameter is 1, true or True.
  bool flag(std::string_view name) const;
};

struct Reply {
  int status = 200;
  Fields fields;
  std::string body;
  // Instead of body: `file_bytes` bytes of a file.
  Descriptor file;
  std::uint64_t file_offset = 0, file_bytes = 0;

  static Reply of(const char* type, std::string content, int status = 200);
  static Reply json(std::string document, int status = 200);
  static Reply text(std::string content, int status = 200);
};

/// An answer other than the one that was hoped for; becomes {"error": message} with X-Error-Code and
/// -Message.
struct HttpError {
  int status;
  std::string message;
  std::string code;  // X-Error-Code; may be empty
  Fields fields;
};

/// What is being thrown, as an answer. To be called in a catch block.
HttpError current_error();

/// One request on its way: takes the body in pieces, then answers. What either throws becomes the answer.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void body(Bytes data) = 0;
  virtual Reply finish() = 0;
};

/// An exchange for a body of at most `most_bytes`, kept in memory; 413 beyond.
std::unique_ptr<Exchange> with_body(std::size_t most_bytes, std::function<Reply(std::string body)> answer);
/// One for a request whose body does not matter.
std::unique_ptr<Exchange> without_body(std::function<Reply()> answer);

class Router {
 public:
  virtual ~Router() = default;
  /// Called for each request on any thread. Errors: HttpError.
  virtual std::unique_ptr<Exchange> begin(const RequestHead& head) = 0;
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;                  // 0: any free one
  std::string certificate_file, key_file;  // PEM; both or none
  int at_work = 8;                         // answers that are worked out at a time
  int most_connections = 2048;
  Deadlines deadlines;
  std::string public_url;  // base of the addresses in answers; empty: as each client named the server
  std::vector<std::string> trusted_proxies;  // addresses whose X-Forwarded-For is believed
};

class HttpServer {
 public:
  /// Errors: HubError usage if the address is taken or the certificate does not fit.
  HttpServer(const ServerOptions& options, Router& router);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  /// Takes no more connections, waits until the running requests have ended (at most `seconds`), then stops.
  void stop(int seconds);
  int connections() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

std::string percent_decoded(std::string_view text, bool plus_is_blank);

/// Who asks, when `peer` is a proxy that is trusted: the last of the X-Forwarded-For that is not one itself.
std::string client_behind(const std::vector<std::string>& trusted_proxies, std::string peer,
                          std::string_view forwarded_for);

}  // namespace neuron_kernels::hub::registry
