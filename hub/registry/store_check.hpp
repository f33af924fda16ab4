// Whether a store is whole: what `git fsck` checks, and that each object which a repository owns is there.
#pragma once

#include <cstddef>
#include <filesystem>

namespace neuron_kernels::hub::registry {

/// Reads everything of git that is reachable, and checks its digests; of the objects only that they are there.
/// Returns how many repositories there are. Errors: HubError integrity naming repository and object.
std::size_t check_store(const std::filesystem::path& root);

}  // namespace neuron_kernels::hub::registry
