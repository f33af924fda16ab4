// `kernels new`: a package that builds, with one kernel and its test.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace neuron_kernels::hub {

/// Makes folder/NAME and returns the files in it. Errors: HubError usage for a bad name; conflict if it
/// exists.
std::vector<std::filesystem::path> make_package(const std::filesystem::path& folder, const std::string& name);

}  // namespace neuron_kernels::hub
