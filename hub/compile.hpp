// Compiles the C++ sources of a package into one shared library with $CXX (g++ unless set) and $CXXFLAGS.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace neuron_kernels::hub {

struct SharedLibrary {
  std::filesystem::path root;        // of the package; sources and include are relative to it
  std::vector<std::string> sources;  // each is compiled by itself, two at a time
  std::vector<std::string> include;  // folders, besides root itself
  std::vector<std::filesystem::path> system_include;
  std::vector<std::string> flags, link;  // besides -std=c++20 -O2 -fPIC -fvisibility=hidden, and -shared
  std::filesystem::path output;
};

/// The same sources give the same bytes wherever they lie. Errors: HubError failed with what the compiler
/// said.
void compile(const SharedLibrary& library, const std::function<void(const std::string&)>& on_progress);

}  // namespace neuron_kernels::hub
