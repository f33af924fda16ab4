// What gc and backup share: both work on the root of a registry while its server runs, one at a time.
#pragma once

#include <filesystem>

#include "hub/files.hpp"

namespace neuron_kernels::hub::registry {

/// Errors: HubError not_found unless `root` is one of a registry.
void require_registry(const std::filesystem::path& root);

/// The right to do housekeeping, as long as it lives; what a killed one left is cleared.
/// errors: HubError not_found as above, usage if the root belongs to another user, conflict if another process
///         has it
Descriptor begin_housekeeping(const std::filesystem::path& root);

/// A folder below the root for whoever has that right.
std::filesystem::path housekeeping_folder(const std::filesystem::path& root);

}  // namespace neuron_kernels::hub::registry
