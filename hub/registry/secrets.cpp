#include "hub/registry/secrets.hpp"

#include <openssl/rand.h>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::hub::registry {

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    throw HubError(ErrorKind::failed, "OpenSSL has no random numbers");
  }
  return bytes;
}

std::string kept_random_hex(const std::filesystem::path& file, std::size_t count, unsigned mode) {
  if (!std::filesystem::exists(file)) write_file(file, to_hex(random_bytes(count)), mode, Sync::yes);
  return read_file(file);
}

}  // namespace neuron_kernels::hub::registry
