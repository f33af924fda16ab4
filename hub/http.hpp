// HTTP for the hub: parallel transfers over libcurl's multi interface, with retries, resumed bodies, and
// tokens that stay with the origin they are for. It knows nothing of the Hub's routes: hub/api.hpp does.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hub/digest.hpp"

namespace neuron_kernels::hub {

/// Header fields; names compare without case.
class Headers {
 public:
  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  void clear() { fields_.clear(); }
  /// The value of the last field of that name; empty if there is none.
  std::string_view get(std::string_view name) const;
  bool has(std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct Response {
  int status = 0;
  Headers headers;
  std::string body;  // empty if a sink took it; of an answer of 300 and above at most 64 KiB
  std::string url;   // where the answer came from, after redirects; may hold secrets: url_without_secrets()
  bool ok() const { return status >= 200 && status < 300; }
};

/// What a request sends. `read` fills `dst` from byte `offset` on and returns how much; it may be called
/// again from an earlier offset, after a redirect or for a retry.
struct Body {
  std::uint64_t size = 0;
  std::string type;  // Content-Type
  std::function<std::size_t(std::uint64_t offset, std::span<std::byte> dst)> read;

  static Body text(std::string content, std::string type);
  static Body json(std::string content) { return text(std::move(content), "application/json"); }
  static Body ndjson(std::string content) { return text(std::move(content), "application/x-ndjson"); }
  /// `size` bytes of a file from `offset` on. Errors: HubError storage when it cannot be read.
  static Body file(const std::filesystem::path& path, std::uint64_t offset, std::uint64_t size,
                   std::string type = "application/octet-stream");
};

/// Takes the body of a successful answer in pieces. An exception that leaves it ends the transfer with that
/// error.
class Sink {
 public:
  virtual ~Sink() = default;
  /// The first byte still wanted, asked before each attempt; above 0 it becomes a Range request.
  virtual std::uint64_t offset() const = 0;
  /// A body begins at this byte: offset(), or 0 if the server sends it from the start; drop what lies behind.
  virtual void begin(std::uint64_t first_byte, const Response& response) = 0;
  virtual void write(Bytes data) = 0;
};

struct Request {
  std::string method = "GET";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string token;     // sent as bearer token to the origin of `url`, never to another one
  Body body;             // without `read` there is none
  Sink* sink = nullptr;  // must live until `done` was called
  /// Whether it may be sent again after it may have had its effect. GET, HEAD, PUT and DELETE may in any
  /// case.
  bool repeatable = false;
  /// Tries after the first when no connection can be made. 0 where the caller has another way.
  int connect_retries = 2;
  /// Longest silence of the server; 0: that of HttpOptions. For requests that make a server work.
  std::chrono::seconds idle_timeout{0};
};

struct HttpOptions {
  std::string user_agent = default_user_agent();
  int parallel = 8;  // transfers at a time
  int retries = 5;   // tries after the first without progress, on 408, 429, 5xx and network errors
  std::chrono::seconds connect_timeout{10};
  std::chrono::seconds idle_timeout{10};
  std::chrono::seconds longest_wait{
      300};  // a server that asks for more (Retry-After, RateLimit) ends the transfer
  /// Told about waits and retries, in one line without secrets.
  std::function<void(const std::string&)> on_notice = {};

  static std::string default_user_agent();
};

/// One pool of connections. Not for several threads at a time.
class Http {
 public:
  /// Exactly one of the two is set. An answer of 400 and above is a response: hub/api_error.hpp turns it into
  /// an error.
  struct Result {
    Response response;
    std::exception_ptr error;
  };
  using Done = std::function<void(Result)>;

  explicit Http(HttpOptions options = {});
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  /// Sends one request and waits for it (and for all that were added).
  /// errors: HubError network when there is no answer after all retries; what the sink throws
  Response send(Request request);

  /// Queues a request; run() sends it. `done` may add more; an exception from it ends run() and drops what is
  /// left.
  void add(Request request, Done done);
  /// What else the thread of run() has to do, between answers; returns how long it can wait until the next
  /// time.
  using Turn = std::function<std::chrono::milliseconds()>;
  void run(const Turn& turn = {});

  /// Requests on the wire so far, retries and redirects included.
  int requests() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

/// Seconds that a 429 or 503 asks to wait, from `RateLimit: "api";r=0;t=55`, or Retry-After in seconds or as
/// a date; negative if it does not say.
std::chrono::seconds wait_asked_for(const Headers& headers, std::int64_t now_unix_s);

}  // namespace neuron_kernels::hub
