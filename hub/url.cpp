#include "hub/url.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "hub/error.hpp"

namespace neuron_kernels::hub {

namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using Url = std::unique_ptr<CURLU, FreeUrl>;

Url parse(std::string_view text) {
  Url url(curl_url());
  const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, std::string(text).c_str(), 0);
  if (url == nullptr || code != CURLUE_OK) {
    throw HubError(ErrorKind::network,
                   "'" + url_without_secrets(text) + "' is not a URL that starts with http:// or https://");
  }
  return url;
}

std::string part(const Url& url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), which, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

std::string encode(std::string_view text, std::string_view kept) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size() + 8);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x80 && std::isalnum(byte) != 0) || kept.find(c) != kept.npos) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += digits[byte >> 4];
      encoded += digits[byte & 15];
    }
  }
  return encoded;
}

}  // namespace

std::string encode_segment(std::string_view text) { return encode(text, "-._~"); }
std::string encode_path(std::string_view path) { return encode(path, "-._~/"); }

std::string origin_of(std::string_view text) {
  const Url url = parse(text);
  std::string origin = part(url, CURLUPART_SCHEME) + "://" + part(url, CURLUPART_HOST) + ":" +
                       part(url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::transform(origin.begin(), origin.end(), origin.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (!origin.starts_with("http://") && !origin.starts_with("https://")) {
    throw HubError(ErrorKind::network, "'" + url_without_secrets(text) + "' is neither http nor https");
  }
  return origin;
}

std::string resolve_url(const std::string& base, const std::string& reference) {
  const Url url = parse(base);
  if (curl_url_set(url.get(), CURLUPART_URL, reference.c_str(), 0) != CURLUE_OK) {
    throw HubError(ErrorKind::network, url_without_secrets(base) + " points to '" +
                                           url_without_secrets(reference) + "', which is not a URL");
  }
  return part(url, CURLUPART_URL);
}

std::string url_without_secrets(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos) return std::string(url);
  const std::size_t host = scheme + 3, path = std::min(url.find('/', host), url.size());
  const std::size_t at = url.substr(0, path).rfind('@');
  if (at == url.npos || at < host) return std::string(url);
  return std::string(url.substr(0, host)) + std::string(url.substr(at + 1));
}

}  // namespace neuron_kernels::hub
