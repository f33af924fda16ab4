#include "hub/registry/tickets.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "hub/digest.hpp"
#include "hub/registry/secrets.hpp"

namespace neuron_kernels::hub::registry {

using nlohmann::json;

Tickets::Tickets(const std::filesystem::path& file) : secret_(kept_random_hex(file, 32, 0600)) {}

std::string Tickets::authenticator(std::string_view content) const {
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()),
       reinterpret_cast<const unsigned char*>(content.data()), content.size(), mac, &size);
  return to_hex({reinterpret_cast<const char*>(mac), size});
}

std::string Tickets::issue(json right, int seconds) const {
  right["until"] = static_cast<std::int64_t>(std::time(nullptr)) + seconds;
  const std::string content = to_hex(right.dump());
  return content + "." + authenticator(content);
}

std::optional<json> Tickets::open(std::string_view ticket) const {
  const std::size_t dot = ticket.find('.');
  if (dot == ticket.npos || ticket.size() > 4096) return std::nullopt;
  const std::string_view content = ticket.substr(0, dot), given = ticket.substr(dot + 1);
  const std::string wanted = authenticator(content);
  if (given.size() != wanted.size() || CRYPTO_memcmp(given.data(), wanted.data(), wanted.size()) != 0) {
    return std::nullopt;
  }
  json right = json::parse(from_hex(content));
  if (right.at("until").get<std::int64_t>() < std::time(nullptr)) return std::nullopt;
  return right;
}

}  // namespace neuron_kernels::hub::registry
