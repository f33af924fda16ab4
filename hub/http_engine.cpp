#include "hub/http_engine.hpp"

#include <algorithm>
#include <ctime>
#include <random>
#include <string_view>

#include "hub/error.hpp"
#include "hub/url.hpp"

namespace neuron_kernels::hub {

namespace {

constexpr int most_redirects = 10;
constexpr int most_attempts = 100;  // of one transfer that makes progress each time
constexpr auto first_pause = std::chrono::milliseconds(500);
constexpr auto longest_pause = std::chrono::milliseconds(8000);

bool no_connection(CURLcode code) {
  return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
         code == CURLE_COULDNT_RESOLVE_PROXY;
}

bool certificate_problem(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_SSL_CERTPROBLEM;
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/// 501: it cannot at all. 507: it has no place to store this, and asks not to be tried again (RFC 4918,
/// 11.5).
bool asks_for_retry(int status) {
  return status == 408 || status == 429 || (status >= 500 && status != 501 && status != 507);
}

/// Spreads clients that failed together: 80 % to 120 %.
std::chrono::milliseconds jittered(std::chrono::milliseconds pause) {
  static std::minstd_rand generator{std::random_device{}()};
  return pause * std::uniform_int_distribution<int>(80, 120)(generator) / 100;
}

}  // namespace

Http::Engine::Engine(HttpOptions options) : options_(std::move(options)) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  multi_ = ready == CURLE_OK ? curl_multi_init() : nullptr;
  if (multi_ == nullptr) throw HubError(ErrorKind::failed, "libcurl cannot start");
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.parallel + 4));
}

Http::Engine::~Engine() {
  drop_all();
  for (CURL* handle : idle_handles_) curl_easy_cleanup(handle);
  curl_multi_cleanup(multi_);
}

void Http::Engine::add(Request request, Done done) {
  waiting_.push_back(std::make_unique<Transfer>(std::move(request), std::move(done)));
}

void Http::Engine::run(const Turn& turn) {
  try {
    while (!waiting_.empty() || !active_.empty()) {
      start_what_may();
      int running = 0;
      curl_multi_perform(multi_, &running);
      int left = 0;
      bool finished = false;
      while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        finished = true;
        finish(message->easy_handle, message->data.result);
      }
      if (finished) continue;  // free places first
      auto pause = std::chrono::ceil<std::chrono::milliseconds>(next_start() - Clock::now());
      if (turn) pause = std::min(pause, turn());
      curl_multi_poll(multi_, nullptr, 0, static_cast<int>(std::clamp<long>(pause.count(), 0, 1000)),
                      nullptr);
    }
  } catch (...) {
    drop_all();
    throw;
  }
}

void Http::Engine::drop_all() {
  for (auto& [handle, transfer] : active_) {
    curl_multi_remove_handle(multi_, handle);
    idle_handles_.push_back(handle);
  }
  active_.clear();
  waiting_.clear();
}

Http::Engine::Clock::time_point Http::Engine::next_start() const {
  const auto never = Clock::now() + std::chrono::seconds(1);
  if (active_.size() >= static_cast<std::size_t>(options_.parallel)) return never;
  auto soonest = never;
  for (const TransferPtr& transfer : waiting_) {
    auto at = transfer->not_before;
    const auto pause = paused_until_.find(origin_of(transfer->url));
    if (pause != paused_until_.end()) at = std::max(at, pause->second);
    soonest = std::min(soonest, at);
  }
  return soonest;
}

void Http::Engine::start_what_may() {
  const auto now = Clock::now();
  for (std::size_t i = 0;
       i < waiting_.size() && active_.size() < static_cast<std::size_t>(options_.parallel);) {
    const auto pause =
        paused_until_.empty() ? paused_until_.end() : paused_until_.find(origin_of(waiting_[i]->url));
    if (waiting_[i]->not_before > now || (pause != paused_until_.end() && pause->second > now)) {
      ++i;
      continue;
    }
    TransferPtr transfer = std::move(waiting_[i]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    start(std::move(transfer));
  }
}

void Http::Engine::start(TransferPtr transfer) {
  CURL* handle = idle_handles_.empty() ? curl_easy_init() : idle_handles_.back();
  if (!idle_handles_.empty()) idle_handles_.pop_back();
  if (handle == nullptr) throw HubError(ErrorKind::failed, "libcurl cannot make a transfer");
  Transfer& t = *active_.emplace(handle, std::move(transfer)).first->second;
  t.prepare(handle, options_);
  ++requests_;
  curl_multi_add_handle(multi_, handle);
}

void Http::Engine::finish(CURL* handle, CURLcode code) {
  const auto found = active_.find(handle);
  TransferPtr transfer = std::move(found->second);
  active_.erase(found);
  curl_multi_remove_handle(multi_, handle);
  idle_handles_.push_back(handle);
  transfer->response.url = transfer->url;
  if (transfer->error == nullptr && code == CURLE_OK && is_redirect(transfer->response.status) &&
      follow_redirect(transfer)) {
    return;
  }
  settle(std::move(transfer), code);
}

bool Http::Engine::follow_redirect(TransferPtr& transfer) {
  const std::string location(transfer->response.headers.get("Location"));
  if (location.empty()) return false;
  try {
    if (++transfer->redirects > most_redirects) {
      throw HubError(ErrorKind::network, url_without_secrets(transfer->request.url) +
                                             " redirects more than " + std::to_string(most_redirects) +
                                             " times");
    }
    transfer->url = resolve_url(transfer->url, location);
    origin_of(transfer->url);  // http and https only
  } catch (...) {
    transfer->error = std::current_exception();
    return false;
  }
  if (transfer->response.status <= 303 && transfer->request.method == "POST") {
    transfer->request.method = "GET";
    transfer->request.body = {};
  }
  waiting_.push_front(std::move(transfer));
  return true;
}

void Http::Engine::settle(TransferPtr transfer, CURLcode code) {
  Transfer& t = *transfer;
  if (t.request.sink != nullptr && t.error == nullptr) {
    const std::uint64_t reached = t.request.sink->offset();
    if (reached > t.furthest) t.failures = 0;  // progress: the count of tries starts anew
    t.furthest = std::max(t.furthest, reached);
  }
  if (code == CURLE_OK && t.response.status == 416 && t.asked_from > 0) t.from_start = true;
  Result result;
  if (t.error != nullptr) {
    result.error = t.error;
  } else if (may_retry(t, code) && !waits_too_long(t)) {
    return queue_again(std::move(transfer), code);
  } else if (code != CURLE_OK) {
    result.error = network_error(t, code);
  } else {
    result.response = std::move(t.response);
  }
  if (t.done) t.done(std::move(result));
}

bool Http::Engine::may_retry(const Transfer& t, CURLcode code) const {
  if (t.attempts >= most_attempts || t.failures >= options_.retries) return false;
  const bool safe = t.request.repeatable || t.request.method != "POST";
  if (code == CURLE_OK) {
    const int status = t.response.status;
    if (status == 416 && t.asked_from > 0) return true;
    return status == 429 || status == 503 || (asks_for_retry(status) && safe);
  }
  if (certificate_problem(code) || code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
    return false;
  if (no_connection(code)) return t.connect_failures < t.request.connect_retries;
  return safe;
}

bool Http::Engine::waits_too_long(const Transfer& t) const {
  return wait_asked_for(t.response.headers, std::time(nullptr)) > options_.longest_wait;
}

void Http::Engine::queue_again(TransferPtr transfer, CURLcode code) {
  Transfer& t = *transfer;
  auto pause = std::min(longest_pause, first_pause * (1 << std::min(t.failures, 8)));
  pause = jittered(pause);
  ++t.failures;
  if (no_connection(code)) ++t.connect_failures;
  const auto asked = wait_asked_for(t.response.headers, std::time(nullptr));
  if (code == CURLE_OK && asked.count() >= 0) {
    pause = asked + std::chrono::milliseconds(100);  // clocks differ a little
    if (t.response.status == 429) paused_until_[origin_of(t.url)] = Clock::now() + pause;
  }
  if (code == CURLE_OK && t.response.status == 416) pause = {};
  if (options_.on_notice && pause >= first_pause) {
    const std::string why = code == CURLE_OK ? "HTTP " + std::to_string(t.response.status)
                                             : std::string(curl_easy_strerror(code));
    options_.on_notice(url_without_secrets(t.url) + ": " + why + "; next try in " +
                       std::to_string((pause.count() + 999) / 1000) + " s");
  }
  t.not_before = Clock::now() + pause;
  if (t.redirects > 0) {  // signed URLs expire: ask the origin for a new one
    t.url = t.request.url;
    t.redirects = 0;
  }
  waiting_.push_back(std::move(transfer));
}

std::exception_ptr Http::Engine::network_error(const Transfer& t, CURLcode code) const {
  const std::string url = url_without_secrets(t.url);
  std::string hint = "check the connection, the proxy settings and HF_ENDPOINT";
  if (certificate_problem(code)) hint = "name the CA certificates of your network in SSL_CERT_FILE";
  std::string reason = t.reason[0] != '\0' ? t.reason : curl_easy_strerror(code);
  if (code == CURLE_OPERATION_TIMEDOUT) hint = "HF_HUB_DOWNLOAD_TIMEOUT sets the longest silence in seconds";
  if (t.attempts > 1) reason += ", after " + std::to_string(t.attempts) + " tries";
  HubError error(ErrorKind::network, "no answer from " + origin_of(t.url) + ": " + reason, hint);
  error.at(url, 0);
  return std::make_exception_ptr(error);
}

}  // namespace neuron_kernels::hub
