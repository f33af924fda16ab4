// The event loop behind hub/http.hpp: queue, back-off and redirects around one curl multi handle.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hub/http.hpp"
#include "hub/http_transfer.hpp"

namespace neuron_kernels::hub {

class Http::Engine {
 public:
  explicit Engine(HttpOptions options);
  ~Engine();

  void add(Request request, Done done);
  void run(const Turn& turn);
  int requests() const { return requests_; }

 private:
  using Clock = std::chrono::steady_clock;
  using TransferPtr = std::unique_ptr<Transfer>;

  void start_what_may();
  void start(TransferPtr transfer);
  void finish(CURL* handle, CURLcode code);
  bool follow_redirect(TransferPtr& transfer);
  void settle(TransferPtr transfer, CURLcode code);
  bool may_retry(const Transfer& transfer, CURLcode code) const;
  bool waits_too_long(const Transfer& transfer) const;
  void queue_again(TransferPtr transfer, CURLcode code);
  Clock::time_point next_start() const;
  std::exception_ptr network_error(const Transfer& transfer, CURLcode code) const;
  void drop_all();

  HttpOptions options_;
  CURLM* multi_;
  std::vector<CURL*> idle_handles_;
  std::deque<TransferPtr> waiting_;
  std::map<CURL*, TransferPtr> active_;
  std::map<std::string, Clock::time_point> paused_until_;  // by origin, after a 429
  int requests_ = 0;
};

}  // namespace neuron_kernels::hub
