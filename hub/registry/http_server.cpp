#include "hub/registry/http_server.hpp"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <thread>

#include "hub/error.hpp"
#include "hub/registry/request_check.hpp"
#include "hub/registry/tls_files.hpp"

namespace neuron_kernels::hub::registry {

namespace {

constexpr const char* tls_versions =
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";  // GnuTLS's priority string

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
  } catch (...) {
    return reply_of(current_error());
  }
}

struct Request {
  std::string target;  // path and query
  std::unique_ptr<Exchange> exchange;
  Reply reply;
  bool begun = false;    // the head was handed on; what comes now is the body
  bool refused = false;  // reply is there already; the rest of the body is read and dropped
};

}  // namespace

class HttpServer::State {
 public:
  State(const ServerOptions& server_options, Router& request_router)
      : options(server_options), router(request_router), watch(options.deadlines), at_work(options.at_work) {
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

    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_ITC;
    std::vector<MHD_OptionItem> items;
    if (!options.certificate_file.empty()) {
      tls = read_tls_files(options.certificate_file, options.key_file);
      flags |= MHD_USE_TLS;
      items.push_back({MHD_OPTION_HTTPS_MEM_CERT, 0, tls.certificate.data()});
      items.push_back({MHD_OPTION_HTTPS_MEM_KEY, 0, tls.key.data()});
      items.push_back({MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(tls_versions)});
    }
    items.push_back({MHD_OPTION_END, 0, nullptr});
    daemon = MHD_start_daemon(flags, 0, nullptr, nullptr, &State::on_request, this,  //
                              MHD_OPTION_LISTEN_SOCKET, listener.get(), MHD_OPTION_THREAD_STACK_SIZE,
                              std::size_t{512} << 10, MHD_OPTION_CONNECTION_LIMIT,
                              static_cast<unsigned>(options.most_connections),  //
                              MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(options.deadlines.idle_s),
                              MHD_OPTION_CONNECTION_MEMORY_LIMIT, std::size_t{32} << 10,
                              MHD_OPTION_URI_LOG_CALLBACK, &State::on_target, this,         //
                              MHD_OPTION_UNESCAPE_CALLBACK, &State::keep_escapes, nullptr,  //
                              MHD_OPTION_NOTIFY_COMPLETED, &State::on_completed, this,      //
                              MHD_OPTION_NOTIFY_CONNECTION, &State::on_connection, this,    //
                              MHD_OPTION_ARRAY, items.data(), MHD_OPTION_END);
    if (daemon == nullptr) {
      throw HubError(ErrorKind::failed,
                     tls.key.empty() ? "libmicrohttpd cannot start; is there no memory or thread left?"
                                     : "GnuTLS does not take the certificate of --cert and the key of --key");
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
      state.watch.connected(
          connection, MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd);
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

  static MHD_Result on_request(void* context, MHD_Connection* connection, const char* url, const char* method,
                               const char* version, const char* data, std::size_t* size, void** request) {
    auto& state = *static_cast<State*>(context);
    Request& r = *static_cast<Request*>(*request);
    if (!r.begun) return state.begin(connection, url, method, version, r);
    return state.step(connection, data, size, r);
  }

  MHD_Result begin(MHD_Connection* connection, const char* url, const char* method, const char* version,
                   Request& r) {
    r.begun = true;
    watch.receiving(connection, 0);
    guarded(r, [&] { check_request(connection, {url, version, r.target}); });
    if (r.refused) {
      r.reply.fields.emplace_back("Connection", "close");
      return send(connection, r);
    }
    guarded(r, [&] { r.exchange = router.begin(head_of(connection, method, r.target)); });
    return MHD_YES;
  }

  MHD_Result step(MHD_Connection* connection, const char* data, std::size_t* size, Request& r) {
    if (*size > 0) {
      watch.receiving(connection, *size);
      if (!r.refused) guarded(r, [&] { r.exchange->body(bytes_of({data, *size})); });
      *size = 0;
      return MHD_YES;
    }
    if (!r.refused) {
      watch.working(connection);
      finish(r);
    }
    return send(connection, r);
  }

  void finish(Request& r) {
    at_work.acquire();
    r.reply = answer_of([&] { return r.exchange->finish(); });
    at_work.release();
    r.exchange.reset();
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
    head.client = client_behind(options.trusted_proxies, peer_of(connection), head.field("X-Forwarded-For"));
    head.base_url = options.public_url;
    if (head.base_url.empty()) {
      const bool secure = !options.certificate_file.empty() || head.field("X-Forwarded-Proto") == "https";
      head.base_url = std::string(secure ? "https://" : "http://") + std::string(head.field("Host"));
    }
    return head;
  }

  static std::string peer_of(MHD_Connection* connection) {
    const sockaddr* peer =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(peer)->sin_addr, text, sizeof text);
    return text;
  }

  MHD_Result send(MHD_Connection* connection, Request& r) {
    watch.sending(connection);
    Reply& reply = r.reply;
    MHD_Response* response = nullptr;
    if (reply.file) {
      response =
          MHD_create_response_from_fd_at_offset64(reply.file_bytes, reply.file.release(), reply.file_offset);
    } else {
      // `r` lives until on_completed().
      response =
          MHD_create_response_from_buffer(reply.body.size(), reply.body.data(), MHD_RESPMEM_PERSISTENT);
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
  ConnectionWatch watch;
  std::counting_semaphore<> at_work;
  Descriptor listener;
  std::uint16_t port = 0;
  TlsFiles tls;
  MHD_Daemon* daemon = nullptr;
};

HttpError current_error() {
  try {
    throw;
  } catch (const HttpError& error) {
    return error;
  } catch (const HubError& error) {
    const bool full = error.kind == ErrorKind::storage;
    return {full ? 507 : error.kind == ErrorKind::not_found ? 404 : 400, error.what(), {}, {}};
  } catch (const nlohmann::json::exception& error) {
    return {400, std::string("the body is not the JSON that is expected here: ") + error.what(), {}, {}};
  } catch (const std::exception& error) {
    std::fprintf(stderr, "request failed: %s\n", error.what());
    return {500, "the server could not answer this request", {}, {}};
  }
}

HttpServer::HttpServer(const ServerOptions& options, Router& router)
    : state_(std::make_unique<State>(options, router)) {}
HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const { return state_->port; }
int HttpServer::connections() const { return state_->watch.count(); }

void HttpServer::stop(int seconds) {
  if (state_->daemon == nullptr) return;
  const Descriptor listener(MHD_quiesce_daemon(state_->daemon));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (state_->watch.busy() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  MHD_stop_daemon(state_->daemon);
  state_->daemon = nullptr;
}

}  // namespace neuron_kernels::hub::registry
