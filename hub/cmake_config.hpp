// The CMake files in packages: find_package(NAME CONFIG) or include() of one gives the target NAME::NAME.
#pragma once

#include <string>

#include "hub/manifest.hpp"

namespace neuron_kernels::hub {

std::string cmake_config_name(const Manifest& manifest);   // my_scale-config.cmake
std::string cmake_version_name(const Manifest& manifest);  // my_scale-config-version.cmake

/// Headers in include/.
std::string header_config(const Manifest& manifest);
/// Header in include/, library in lib/.
std::string c_config(const Manifest& manifest);
/// Compatible as ^ has it: the same major version, or the same minor one below 1.0.
std::string config_version(const Manifest& manifest);

}  // namespace neuron_kernels::hub
