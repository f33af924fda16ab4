// The card of a package: README.md on main, with the front matter that the Hub reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hub/manifest.hpp"

namespace neuron_kernels::hub {

/// CARD.md of the package's folder, with front matter put before it unless it has some; if there is none, a
/// card made from kernel.toml: how to pull the package from the command line, CMake and Python, its kernels
/// and variants.
std::string card_text(const std::filesystem::path& folder, const Manifest& manifest,
                      const std::string& repository, const std::vector<std::string>& variants);

}  // namespace neuron_kernels::hub
