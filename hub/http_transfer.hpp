// One request of hub/http.hpp on a curl handle: what is sent, and the callbacks that take the answer.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>

#include "hub/http.hpp"

namespace neuron_kernels::hub {

struct Transfer {
  Transfer(Request what, Http::Done then);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer();

  /// Sets up `handle` for the next attempt; both must stay until it has ended.
  void prepare(CURL* handle, const HttpOptions& options);

  Request request;
  Http::Done done;
  std::string url;  // differs from request.url after a redirect
  Response response;
  std::exception_ptr error;  // thrown by sink or body; ends the transfer
  curl_slist* fields = nullptr;
  std::chrono::steady_clock::time_point not_before{};
  std::uint64_t asked_from = 0, furthest = 0, sent = 0;  // bytes
  int redirects = 0, attempts = 0, failures = 0, connect_failures = 0;
  bool from_start = false;    // the server refused the range
  bool sink_started = false;  // in this attempt
  char reason[CURL_ERROR_SIZE] = "";

 private:
  void set_fields();
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* transfer);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* transfer);
  static std::size_t on_read(char* data, std::size_t size, std::size_t count, void* transfer);
  static int on_seek(void* transfer, curl_off_t offset, int origin);
};

}  // namespace neuron_kernels::hub
