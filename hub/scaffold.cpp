#include "hub/scaffold.hpp"

#include <string_view>

#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/manifest.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

// In all of them @NAME@ is the package's name and @IDENT@ the same as an identifier.
struct Template {
  const char *path, *text;
};

constexpr Template templates[] = {
    {"kernel.toml", R"text(# Describes this package to the `kernels` command.
schema = 1

[package]
name = "@NAME@"
version = "0.1.0"
license = "Apache-2.0"
description = "scale: a factor times a row of numbers"

[[kernel]]
name = "scale"
header = "@IDENT@/scale.hpp"
entry = "@IDENT@::scale"
dtypes = ["f32"]

# What `kernels build` makes. Others: [variants.torch] (PyTorch operators), [variants.c] (a C library).
[variants.header]
include = "include"

# Other packages, by repository and range of versions: "owner/name" = "^1.0"
[dependencies]
)text"},
    {"include/@IDENT@/scale.hpp", R"text(// scale: a factor times a row of numbers.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>

namespace @IDENT@ {

/// dst = factor src, element by element; dst may be src.
/// errors: std::invalid_argument unless both have the same size
inline void scale(std::span<float> dst, std::span<const float> src, float factor) {
  if (dst.size() != src.size()) throw std::invalid_argument("scale: dst and src must have the same size");
  for (std::size_t i = 0; i < src.size(); ++i) dst[i] = factor * src[i];
}

}  // namespace @IDENT@
)text"},
    {"tests/test_scale.cpp", R"text(// scale against its definition, and its refusal of sizes that differ.
#include <cstdio>
#include <vector>

#include "@IDENT@/scale.hpp"

int main() {
  const std::vector<float> src{1.f, -2.f, 0.5f};
  std::vector<float> dst(3);
  @IDENT@::scale(dst, src, 2.f);
  bool good = dst == std::vector<float>{2.f, -4.f, 1.f};
  try {
    @IDENT@::scale(dst, std::vector<float>(2), 2.f);
    good = false;
  } catch (const std::invalid_argument&) {
  }
  std::puts(good ? "passed" : "FAILED");
  return good ? 0 : 1;
}
)text"},
    {"CMakeLists.txt", R"text(cmake_minimum_required(VERSION 3.25)
project(@IDENT@ LANGUAGES CXX)

add_library(@IDENT@ INTERFACE)
target_compile_features(@IDENT@ INTERFACE cxx_std_20)
target_include_directories(@IDENT@ INTERFACE include)

enable_testing()
add_executable(test_scale tests/test_scale.cpp)
target_link_libraries(test_scale PRIVATE @IDENT@)
add_test(NAME scale COMMAND test_scale)
)text"},
    {".gitignore", "/build/\n"},
};

std::string filled(std::string_view text, const std::string& name, const std::string& identifier) {
  std::string result(text);
  for (const auto& [mark, value] :
       {std::pair<std::string_view, std::string>{"@NAME@", name}, {"@IDENT@", identifier}}) {
    for (std::size_t at = 0; (at = result.find(mark, at)) != result.npos; at += value.size()) {
      result.replace(at, mark.size(), value);
    }
  }
  return result;
}

}  // namespace

std::vector<fs::path> make_package(const fs::path& folder, const std::string& name) {
  if (!is_package_name(name)) {
    throw HubError(ErrorKind::usage,
                   "package name '" + name +
                       "'; allowed are lower-case letters, digits and '-', from a letter to a "
                       "letter or digit, 2 to 64 characters");
  }
  const fs::path root = folder / name;
  std::error_code error;
  if (fs::exists(root, error)) {
    throw HubError(ErrorKind::conflict, root.string() + " exists", "choose another name or folder");
  }
  Manifest manifest;
  manifest.name = name;
  std::vector<fs::path> files;
  for (const Template& one : templates) {
    files.push_back(root / filled(one.path, name, manifest.identifier()));
    write_file(files.back(), filled(one.text, name, manifest.identifier()));
  }
  return files;
}

}  // namespace neuron_kernels::hub
