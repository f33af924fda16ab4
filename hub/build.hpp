// Builds the variants of a package that kernel.toml names into a folder, laid out as on the hub.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/manifest.hpp"

namespace neuron_kernels::hub {

struct BuildOptions {
  std::filesystem::path into;         // gets kernel.toml and build/<variant>/
  std::vector<std::string> variants;  // "header", "torch", "c"; empty: all that kernel.toml names
  std::function<void(const std::string&)> on_progress = [](const std::string&) {};
};

struct BuiltVariant {
  std::string name;              // "neuron-header"
  std::filesystem::path folder;  // into/build/<name>
};

/// Variants that are not asked for stay in `into` as they are; one that fails leaves the others whole.
/// errors: HubError usage, failed (with what the compiler said), storage
std::vector<BuiltVariant> build_package(const std::filesystem::path& folder, const Manifest& manifest,
                                        const BuildOptions& options);

/// The variants that lie in a folder that build_package made, by name. Errors: HubError not_found if there is
/// none.
std::vector<BuiltVariant> built_variants(const std::filesystem::path& into);

/// "x86_64-linux". Errors: HubError incompatible on a system for which nothing is built.
std::string host_platform();

}  // namespace neuron_kernels::hub
