// kernel.toml: what a package is, what it can be built into, and what it needs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hub/version.hpp"

namespace neuron_kernels::hub {

/// Another package by repository, "org/name", and the versions of it that will do.
struct Dependency {
  std::string repository;
  Range range;
};

/// Paths are relative to the manifest's folder, with '/'; in `sources` the last part may hold '*'.
struct Manifest {
  static constexpr std::string_view file_name = "kernel.toml";

  struct Kernel {
    std::string name;    // identifier
    std::string header;  // as users include it
    std::string entry;   // qualified C++ name
    std::vector<std::string> dtypes, chips;
    std::string program;         // qualified C++ name of its program function; may be empty
    std::string program_header;  // that declares it; `header` unless it is named
  };
  struct HeaderVariant {  // neuron-header
    std::string include;  // folder that users put on their include path
  };
  struct TorchVariant {                 // torch-stable-abi<abi>-cpu-<arch>-linux
    std::string package;                // Python package; its files become the variant
    std::vector<std::string> sources;   // C++ that registers the operators
    std::vector<std::string> include;   // include path for them
    int abi_major = 2, abi_minor = 10;  // lowest PyTorch
    std::vector<std::string> python_depends;
  };
  struct CVariant {                    // neuron-c-<arch>-linux
    std::string header;                // goes to include/
    std::vector<std::string> sources;  // C++ behind it
    std::vector<std::string> include;
  };

  std::string name;  // lower case letters, digits, '-'; begins by a letter
  Version version;
  std::string license, description, repository;  // repository may be empty
  std::vector<Kernel> kernels;
  std::optional<HeaderVariant> header;
  std::optional<TorchVariant> torch;
  std::optional<CVariant> c;
  std::vector<Dependency> dependencies;  // by repository

  /// Errors: HubError usage "FILE:LINE: key is ...; allowed is ...", for any text at all.
  static Manifest parse(std::string_view text, const std::string& file = std::string(file_name));
  /// From a package's folder. Errors: as parse; not_found with how to make one.
  static Manifest read(const std::filesystem::path& folder);

  /// "v1": the branch on which versions with this major number live.
  std::string branch() const { return "v" + std::to_string(version.major); }
  /// The name as an identifier of C, C++ and Python: '-' becomes '_'.
  std::string identifier() const;
};

/// Whether `text` is "owner/name" as the Hub allows it.
bool is_repository_name(std::string_view text);

/// Whether `text` can be a package's name.
bool is_package_name(std::string_view text);

}  // namespace neuron_kernels::hub
