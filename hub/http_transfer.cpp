#include "hub/http_transfer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "hub/error.hpp"
#include "hub/url.hpp"

namespace neuron_kernels::hub {

namespace {

constexpr std::size_t longest_error_body_bytes = 1 << 16;
constexpr std::size_t longest_body_bytes = std::size_t{32} << 20;  // of an answer that no sink takes

const char* first_set(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

}  // namespace

Transfer::Transfer(Request what, Http::Done then)
    : request(std::move(what)), done(std::move(then)), url(request.url) {}

Transfer::~Transfer() { curl_slist_free_all(fields); }

void Transfer::prepare(CURL* handle, const HttpOptions& options) {
  curl_easy_reset(handle);
  ++attempts;
  response = {};
  sink_started = false;
  sent = 0;
  asked_from = request.sink != nullptr && !from_start ? request.sink->offset() : 0;
  furthest = std::max(furthest, asked_from);
  set_fields();
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, fields);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, options.user_agent.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // those of a proxy are no answer
  // Taken and freed for each transfer: malloc gives a larger one back to the system each time.
  curl_easy_setopt(handle, CURLOPT_BUFFERSIZE, 1L << 17);
  if (url.starts_with("https")) {
    curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
    curl_easy_setopt(handle, CURLOPT_PIPEWAIT, 1L);
  } else if (const char* proxy = first_set({"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"})) {
    curl_easy_setopt(handle, CURLOPT_PROXY, proxy);  // libcurl alone reads only the lower-case name for http
  }
  if (const char* file = first_set({"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"})) {
    curl_easy_setopt(handle, CURLOPT_CAINFO, file);
  }
  if (const char* folder = first_set({"SSL_CERT_DIR"})) curl_easy_setopt(handle, CURLOPT_CAPATH, folder);
  const auto idle = request.idle_timeout.count() > 0 ? request.idle_timeout : options.idle_timeout;
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options.connect_timeout.count()));
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(idle.count()));
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Transfer::on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, this);
  if (request.method == "HEAD") {
    curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else if (request.body.read || request.method != "GET") {
    curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size));
    curl_easy_setopt(handle, CURLOPT_READFUNCTION, &Transfer::on_read);
    curl_easy_setopt(handle, CURLOPT_READDATA, this);
    curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, &Transfer::on_seek);
    curl_easy_setopt(handle, CURLOPT_SEEKDATA, this);
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

void Transfer::set_fields() {
  curl_slist_free_all(std::exchange(fields, nullptr));
  const auto field = [&](const std::string& text) { fields = curl_slist_append(fields, text.c_str()); };
  field("Accept-Encoding: identity");  // digests and ranges are of the plain bytes
  if (!request.token.empty() && origin_of(url) == origin_of(request.url)) {
    field("Authorization: Bearer " + request.token);
  }
  if (asked_from > 0) field("Range: bytes=" + std::to_string(asked_from) + "-");
  if (!request.body.type.empty()) field("Content-Type: " + request.body.type);
  for (const auto& [name, value] : request.headers) field(name + ": " + value);
}

std::size_t Transfer::on_header(char* data, std::size_t size, std::size_t count, void* context) {
  auto& t = *static_cast<Transfer*>(context);
  std::string_view line(data, size * count);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {
    t.response = {};
    const std::size_t space = std::min(line.find(' '), line.size());
    t.response.status = std::atoi(std::string(line.substr(space)).c_str());
    return size * count;
  }
  if (const std::size_t colon = line.find(':'); colon != line.npos) {
    const std::size_t begin = std::min(line.find_first_not_of(" \t", colon + 1), line.size());
    t.response.headers.add(std::string(line.substr(0, colon)), std::string(line.substr(begin)));
    return size * count;
  }
  if (!line.empty() || !t.response.ok() || t.request.sink == nullptr || t.request.method == "HEAD") {
    return size * count;
  }
  try {  // the empty line behind the header of a body that the sink takes
    const std::string_view encoding = t.response.headers.get("Content-Encoding");
    if (!encoding.empty() && encoding != "identity") {
      throw HubError(ErrorKind::network,
                     "the server sent " + url_without_secrets(t.url) + " encoded as '" +
                         std::string(encoding) + "', but only 'identity' was asked for",
                     "check the proxy or mirror in between");
    }
    std::uint64_t first = 0;
    if (t.response.status == 206) {
      const std::string range(t.response.headers.get("Content-Range"));
      unsigned long long from = 0;
      if (std::sscanf(range.c_str(), "bytes %llu-", &from) != 1 || from != t.asked_from) {
        t.from_start = true;
        return 0;  // not the range that was asked for: again, from the start
      }
      first = from;
    }
    t.response.url = t.url;
    t.request.sink->begin(first, t.response);
    t.sink_started = true;
  } catch (...) {
    t.error = std::current_exception();
    return 0;
  }
  return size * count;
}

std::size_t Transfer::on_body(char* data, std::size_t size, std::size_t count, void* context) {
  auto& t = *static_cast<Transfer*>(context);
  const std::size_t bytes = size * count;
  try {
    if (t.sink_started) {
      t.request.sink->write(bytes_of({data, bytes}));
    } else {
      const std::size_t most = t.response.ok() ? longest_body_bytes : longest_error_body_bytes;
      if (t.response.ok() && t.response.body.size() + bytes > most) {
        throw HubError(ErrorKind::network, url_without_secrets(t.url) + " answers with more than " +
                                               std::to_string(most >> 20) +
                                               " MiB where a short text is expected");
      }
      t.response.body.append(data, std::min(bytes, most - t.response.body.size()));
    }
  } catch (...) {
    t.error = std::current_exception();
    return 0;
  }
  return bytes;
}

std::size_t Transfer::on_read(char* data, std::size_t size, std::size_t count, void* context) {
  auto& t = *static_cast<Transfer*>(context);
  const Body& body = t.request.body;
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size * count, body.size - t.sent));
  if (wanted == 0) return 0;
  try {
    const std::size_t n = body.read(t.sent, std::as_writable_bytes(std::span(data, wanted)));
    if (n == 0) throw HubError(ErrorKind::storage, "the file being sent became shorter meanwhile");
    t.sent += n;
    return n;
  } catch (...) {
    t.error = std::current_exception();
    return CURL_READFUNC_ABORT;
  }
}

int Transfer::on_seek(void* context, curl_off_t offset, int origin) {
  if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Transfer*>(context)->sent = static_cast<std::uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

}  // namespace neuron_kernels::hub
