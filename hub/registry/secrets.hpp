// Random bytes, and random texts that are made once and kept.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace neuron_kernels::hub::registry {

/// From OpenSSL's generator. Errors: HubError failed.
std::string random_bytes(std::size_t count);

/// What `file` holds; made at the first call, as the hex digits of `count` random bytes, with permissions `mode`.
std::string kept_random_hex(const std::filesystem::path& file, std::size_t count, unsigned mode);

}  // namespace neuron_kernels::hub::registry
