// The certificate and the key of an HTTPS server: read, and checked before a client finds out.
#pragma once

#include <filesystem>
#include <string>

namespace neuron_kernels::hub::registry {

struct TlsFiles {
  std::string certificate, key;  // PEM
};

/// Errors: HubError usage if a file cannot be read or is no PEM of its kind, if the key is encrypted, belongs
/// to another certificate, or may be read or written by every user of the machine.
TlsFiles read_tls_files(const std::filesystem::path& certificate, const std::filesystem::path& key);

}  // namespace neuron_kernels::hub::registry
