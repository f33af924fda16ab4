#include "hub/registry/http_server.hpp"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <unordered_map>

#include "hub/error.hpp"

namespace neuron_kernels::hub::registry {

namespace {

using Clock = std::chrono::steady_clock;

Reply reply_of(const HttpError& error) {
  using nlohmann::json;  // a message may quote bytes that are no UTF-8
  const std::string body =
      json{{"error", error.message}}.dump(-1, ' ', false, json::error_handler_t::replace);
  Reply reply = Reply::json(body, error.status);
  reply.fields.insert(reply.fields.end(), error.fields.begin(), error.fields.end());
  if (!error.code.empty()) reply.fields.emplace_back("X-Error-Code", error.code);
  reply.fields.emplace_back("X-Error-Message", error.message);
  return reply;
}

/// Calls work(); what it throws becomes an answer.
template <class Work>
Reply answer_of(const Work& work) {
  try {
    return work();
  } catch (const HttpError& error) {
    return reply_of(error);
  } catch (const HubError& error) {
    const bool full = error.kind == ErrorKind::storage;
    return reply_of({full ? 507 : error.kind == ErrorKind::not_found ? 404 : 400, error.what(), {}, {}});
  } catch (const nlohmann::json::exception& error) {
    return reply_of(
        {400, std::string("the body is not the JSON that is expected here: ") + error.what(), {}, {}});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "request failed: %s\n", error.what());
    return reply_of({500, "the server could not answer this request", {}, {}});
  }
}

/// Threads that work out answers.
class Workers {
 public:
  explicit Workers(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~Workers() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
  }
  void post(std::function<void()> job) {
    {
      const std::scoped_lock lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;  // last: joined first
};

/// Ends connections whose client sends too slowly. A connection is watched from its start, and from each
/// answer, until a request's header is there; then while its body comes in.
class Watch {
 public:
  explicit Watch(const ServerOptions& options)
      : options_(options), thread_([this](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          while (!stop.stop_requested()) {
            tick_.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
            look();
          }
        }) {}

  void connected(MHD_Connection* connection) {
    const std::scoped_lock lock(mutex_);
    watched_[connection] = {Clock::now(), 0, Phase::header, descriptor(connection)};
  }
  void closed(MHD_Connection* connection) {
    const std::scoped_lock lock(mutex_);
    watched_.erase(connection);
  }
  void body(MHD_Connection* connection, std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    Watched& w = watched_[connection];
    if (w.phase != Phase::body) w = {Clock::now(), 0, Phase::body, w.fd};
    w.bytes += bytes;
  }
  void answering(MHD_Connection* connection) {
    const std::scoped_lock lock(mutex_);
    watched_[connection].phase = Phase::answer;
  }
  /// Idle connections that are kept alive are ended by libmicrohttpd's own time-out.
  void answered(MHD_Connection* connection) {
    const std::scoped_lock lock(mutex_);
    if (const auto found = watched_.find(connection); found != watched_.end())
      found->second.phase = Phase::idle;
  }
  int count() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(watched_.size());
  }
  int busy() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(std::count_if(watched_.begin(), watched_.end(), [](const auto& entry) {
      return entry.second.phase == Phase::body || entry.second.phase == Phase::answer;
    }));
  }

 private:
  enum class Phase { header, body, answer, idle };
  struct Watched {
    Clock::time_point since{};
    std::uint64_t bytes = 0;
    Phase phase = Phase::header;
    int fd = -1;
  };

  static int descriptor(MHD_Connection* connection) {
    const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != nullptr ? info->connect_fd : -1;
  }
  void look() {
    for (auto& [connection, w] : watched_) {
      const auto age = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - w.since).count();
      if (age < options_.header_deadline_s) continue;
      const auto wanted =
          static_cast<std::uint64_t>(age) * static_cast<std::uint64_t>(options_.least_bytes_per_s);
      const bool slow = w.phase == Phase::header || (w.phase == Phase::body && w.bytes < wanted);
      if (slow && w.fd >= 0) ::shutdown(w.fd, SHUT_RDWR);
    }
  }

  const ServerOptions& options_;
  mutable std::mutex mutex_;
  std::condition_variable_any tick_;
  std::unordered_map<MHD_Connection*, Watched> watched_;
  std::jthread thread_;
};

struct Request {
  std::string target;  // path and query
  std::unique_ptr<Exchange> exchange;
  Reply reply;
  enum class Step { head, body, working, ready } step = Step::head;
  bool refused = false;  // reply is there already; the rest of the body is read and dropped
};

}  // namespace

class HttpServer::State {
 public:
  State(const ServerOptions& server_options, Router& request_router)
      : options(server_options), router(request_router), watch(options), workers(options.workers) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(options.port);
    if (::inet_pton(AF_INET, options.address.c_str(), &address.sin_addr) != 1) {
      throw HubError(ErrorKind::usage, "'" + options.address + "' is not an IPv4 address",
                     "name one such as 127.0.0.1, or 0.0.0.0 for all");
    }
    listener = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener.get(), 1024) != 0) {
      throw HubError(ErrorKind::usage,
                     "cannot listen on " + options.address + ":" + std::to_string(options.port) + ": " +
                         std::strerror(errno),
                     "choose another port by --listen");
    }
    socklen_t size = sizeof address;
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);

    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
    std::vector<MHD_OptionItem> items;
    if (!options.certificate_file.empty()) {
      certificate = read_file(options.certificate_file);
      key = read_file(options.key_file);
      flags |= MHD_USE_TLS;
      items.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, certificate.data()});
      items.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, key.data()});
    }
    items.push_back({MHD_OPTION_END, 0, nullptr});
    daemon = MHD_start_daemon(flags, 0, nullptr, nullptr, &State::on_request, this,  //
                              MHD_OPTION_LISTEN_SOCKET, listener.get(), MHD_OPTION_THREAD_POOL_SIZE,
                              static_cast<unsigned>(options.loops), MHD_OPTION_CONNECTION_LIMIT,
                              static_cast<unsigned>(options.most_connections),  //
                              MHD_OPTION_CONNECTION_TIMEOUT, 60U, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                              std::size_t{32} << 10, MHD_OPTION_URI_LOG_CALLBACK, &State::on_target, this,  //
                              MHD_OPTION_UNESCAPE_CALLBACK, &State::keep_escapes, nullptr,                  //
                              MHD_OPTION_NOTIFY_COMPLETED, &State::on_completed, this,                      //
                              MHD_OPTION_NOTIFY_CONNECTION, &State::on_connection, this,                    //
                              MHD_OPTION_ARRAY, items.data(), MHD_OPTION_END);
    if (daemon == nullptr) {
      throw HubError(
          ErrorKind::usage, "the server cannot start",
          options.certificate_file.empty() ? "" : "check that --cert and --key are PEM files that fit");
    }
    listener.release();  // libmicrohttpd closes it
  }

  ~State() {
    if (daemon != nullptr) MHD_stop_daemon(daemon);
  }

  static void* on_target(void*, const char* target, MHD_Connection*) {
    auto* request = new Request();
    request->target = target;
    return request;
  }
  static std::size_t keep_escapes(void*, MHD_Connection*, char* text) { return std::strlen(text); }

  static void on_connection(void* context, MHD_Connection* connection, void**,
                            MHD_ConnectionNotificationCode code) {
    auto& state = *static_cast<State*>(context);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
      state.watch.connected(connection);
    } else {
      state.watch.closed(connection);
    }
  }
  static void on_completed(void* context, MHD_Connection* connection, void** request,
                           MHD_RequestTerminationCode) {
    static_cast<State*>(context)->watch.answered(connection);
    delete static_cast<Request*>(*request);
    *request = nullptr;
  }

  static MHD_Result on_request(void* context, MHD_Connection* connection, const char*, const char* method,
                               const char*, const char* data, std::size_t* size, void** request) {
    return static_cast<State*>(context)->step(connection, method, data, size,
                                              *static_cast<Request*>(*request));
  }

  MHD_Result step(MHD_Connection* connection, const char* method, const char* data, std::size_t* size,
                  Request& r) {
    if (r.step == Request::Step::head) {
      r.step = Request::Step::body;
      watch.body(connection, 0);
      guarded(r, [&] { r.exchange = router.begin(head_of(connection, method, r.target)); });
      return MHD_YES;
    }
    if (*size > 0) {
      watch.body(connection, *size);
      if (!r.refused) guarded(r, [&] { r.exchange->body(bytes_of({data, *size})); });
      *size = 0;
      return MHD_YES;
    }
    if (r.step == Request::Step::body && !r.refused) {
      r.step = Request::Step::working;
      watch.answering(connection);
      MHD_suspend_connection(connection);
      workers.post([connection, &r] {
        r.reply = answer_of([&] { return r.exchange->finish(); });
        r.exchange.reset();
        r.step = Request::Step::ready;
        MHD_resume_connection(connection);
      });
      return MHD_YES;
    }
    return send(connection, r);
  }

  template <class Work>
  static void guarded(Request& r, const Work& work) {
    bool done = false;
    Reply reply = answer_of([&] {
      work();
      done = true;
      return Reply();
    });
    if (done) return;
    r.refused = true;
    r.reply = std::move(reply);
    r.exchange.reset();
  }

  RequestHead head_of(MHD_Connection* connection, const char* method, const std::string& target) const {
    RequestHead head;
    head.method = method;
    const std::size_t query = std::min(target.find('?'), target.size());
    head.path = target.substr(0, query);
    if (query < target.size()) head.query = target.substr(query + 1);
    head.field = [connection](const char* name) -> std::string_view {
      const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
      return value != nullptr ? value : std::string_view();
    };
    const std::string_view forwarded = head.field("X-Forwarded-Proto");
    const bool secure = !options.certificate_file.empty() || forwarded == "https";
    head.base_url = std::string(secure ? "https://" : "http://") + std::string(head.field("Host"));
    return head;
  }

  static MHD_Result send(MHD_Connection* connection, Request& r) {
    Reply& reply = r.reply;
    MHD_Response* response = nullptr;
    if (reply.file) {
      response =
          MHD_create_response_from_fd_at_offset64(reply.file_bytes, reply.file.release(), reply.file_offset);
    } else {
      response = MHD_create_response_from_buffer(reply.body.size(), reply.body.data(), MHD_RESPMEM_MUST_COPY);
    }
    if (response == nullptr) return MHD_NO;
    for (const auto& [name, value] : reply.fields) {
      std::string clean = value;  // a header field is one line of text
      std::replace_if(
          clean.begin(), clean.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
      MHD_add_response_header(response, name.c_str(), clean.c_str());
    }
    const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(reply.status), response);
    MHD_destroy_response(response);
    return queued;
  }

  ServerOptions options;
  Router& router;
  Watch watch;
  Workers workers;
  Descriptor listener;
  std::uint16_t port = 0;
  std::string certificate, key;
  MHD_Daemon* daemon = nullptr;
};

HttpServer::HttpServer(const ServerOptions& options, Router& router)
    : state_(std::make_unique<State>(options, router)) {}
HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const { return state_->port; }
int HttpServer::connections() const { return state_->watch.count(); }

void HttpServer::stop(int seconds) {
  if (state_->daemon == nullptr) return;
  const Descriptor listener(MHD_quiesce_daemon(state_->daemon));
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  while (state_->watch.busy() > 0 && Clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  MHD_stop_daemon(state_->daemon);
  state_->daemon = nullptr;
}

}  // namespace neuron_kernels::hub::registry
