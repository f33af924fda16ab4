// What a request says and an answer holds: addresses, parameters, bodies in memory.
#include <algorithm>

#include "hub/registry/http_server.hpp"
#include "hub/registry/utf8.hpp"

namespace neuron_kernels::hub::registry {

namespace {

class InMemory final : public Exchange {
 public:
  InMemory(std::size_t most, std::function<Reply(std::string)> answer)
      : most_(most), answer_(std::move(answer)) {}
  void body(Bytes data) override {
    if (content_.size() + data.size() > most_) {
      throw HttpError{
          413,
          "the body is larger than " + std::to_string(most_) + " bytes, the most that is taken here",
          {},
          {}};
    }
    content_.append(reinterpret_cast<const char*>(data.data()), data.size());
  }
  Reply finish() override { return answer_(std::move(content_)); }

 private:
  std::size_t most_;
  std::function<Reply(std::string)> answer_;
  std::string content_;
};

class Bodiless final : public Exchange {
 public:
  explicit Bodiless(std::function<Reply()> answer) : answer_(std::move(answer)) {}
  void body(Bytes) override {}
  Reply finish() override { return answer_(); }

 private:
  std::function<Reply()> answer_;
};

}  // namespace

Reply Reply::of(const char* type, std::string content, int status) {
  Reply reply;
  reply.status = status;
  reply.fields.emplace_back("Content-Type", type);
  reply.body = std::move(content);
  return reply;
}

Reply Reply::json(std::string document, int status) {
  return of("application/json; charset=utf-8", std::move(document), status);
}

Reply Reply::text(std::string content, int status) {
  return of("text/plain; charset=utf-8", std::move(content), status);
}

std::unique_ptr<Exchange> with_body(std::size_t most_bytes, std::function<Reply(std::string)> answer) {
  return std::make_unique<InMemory>(most_bytes, std::move(answer));
}
std::unique_ptr<Exchange> without_body(std::function<Reply()> answer) {
  return std::make_unique<Bodiless>(std::move(answer));
}

std::vector<std::string> RequestHead::parts() const {
  std::vector<std::string> parts;
  std::size_t begin = path.starts_with('/') ? 1 : 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(percent_decoded(std::string_view(path).substr(begin, end - begin), false));
    if (!is_utf8(parts.back())) throw HttpError{400, "the address holds bytes that are not UTF-8", {}, {}};
    begin = end + 1;
  }
  return parts;
}

std::string RequestHead::parameter(std::string_view name, std::string fallback) const {
  std::size_t begin = 0;
  while (begin < query.size()) {
    const std::size_t end = std::min(query.find('&', begin), query.size());
    const std::string_view pair = std::string_view(query).substr(begin, end - begin);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (percent_decoded(pair.substr(0, equals), true) == name) {
      return equals < pair.size() ? percent_decoded(pair.substr(equals + 1), true) : "true";
    }
    begin = end + 1;
  }
  return fallback;
}

bool RequestHead::flag(std::string_view name) const {
  const std::string value = parameter(name);
  return value == "1" || value == "true" || value == "True";
}

std::string percent_decoded(std::string_view text, bool plus_is_blank) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      plain += ' ';
    } else if (text[i] != '%') {
      plain += text[i];
    } else {
      constexpr std::string_view digits = "0123456789abcdef0123456789ABCDEF";
      const std::size_t high = i + 2 < text.size() ? digits.find(text[i + 1]) : digits.npos;
      const std::size_t low = i + 2 < text.size() ? digits.find(text[i + 2]) : digits.npos;
      if (high == digits.npos || low == digits.npos) {
        throw HttpError{
            400, "the address holds a '%' that is not followed by two hexadecimal digits", {}, {}};
      }
      const std::size_t code = high % 16 * 16 + low % 16;
      if (code == 0) throw HttpError{400, "the address holds a zero byte, '%00'", {}, {}};
      plain += static_cast<char>(code);
      i += 2;
    }
  }
  return plain;
}

std::string client_behind(const std::vector<std::string>& trusted_proxies, std::string peer,
                          std::string_view forwarded_for) {
  const auto trusted = [&](const std::string& address) {
    return std::find(trusted_proxies.begin(), trusted_proxies.end(), address) != trusted_proxies.end();
  };
  while (trusted(peer) && !forwarded_for.empty()) {
    const std::size_t comma = forwarded_for.rfind(',');
    std::string_view last = comma != forwarded_for.npos ? forwarded_for.substr(comma + 1) : forwarded_for;
    last.remove_prefix(std::min(last.find_first_not_of(" \t"), last.size()));
    peer = last.substr(0, last.find_first_of(" \t"));
    forwarded_for = forwarded_for.substr(0, comma != forwarded_for.npos ? comma : 0);
  }
  return peer;
}

}  // namespace neuron_kernels::hub::registry
