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
description = "scale: a factor times a matrix"

[[kernel]]
name = "scale"
header = "@IDENT@/scale.hpp"
entry = "@IDENT@::scale"
dtypes = ["bf16", "f16", "f32"]
# For `kernels check`, `profile` and `emit`: what the kernel is at a shape.
program = "@IDENT@::scale_program"
program-header = "@IDENT@/scale_program.hpp"

# What `kernels build` makes. Others: [variants.torch] (PyTorch operators), [variants.c] (a C library).
[variants.header]
include = "include"

# Other packages, by repository and range of versions: "owner/name" = "^1.0"
[dependencies]
)text"},
    {"include/@IDENT@/scale_kernel.hpp",
     R"text(// scale as a tile program: dst = factor src. neuron_kernels/core/target.hpp is the page of all tile ops.
#pragma once

#include "neuron_kernels/core/target.hpp"

namespace @IDENT@ {

namespace nk = neuron_kernels;

constexpr int scale_rows = 1024;  // of one program

/// dst = factor src, rounded to dst's dtype.
/// shapes: dst, src [rows, n]
template <nk::Target T>
void scale_kernel(T& nc, const typename T::Hbm& dst, const typename T::Hbm& src, float factor) {
  for (auto program : nc.programs(src.dim(0), scale_rows)) {
    for (auto rows : nc.tiles(program.size, 128)) {
      for (auto cols : nc.tiles(src.dim(1), 2048)) {
        const auto part = [&](const typename T::Hbm& h) {
          return h.rows(program.begin + rows.begin, rows.size).cols(cols.begin, cols.size);
        };
        const auto x = nc.load("x", part(src));                  // [rows, cols]
        auto y = nc.staged("y", part(dst));                      // [rows, cols]
        nc.tensor_scalar(y, x, nk::Alu::multiply, factor);       // y = factor x
        nc.store(part(dst), y);
      }
    }
  }
}

}  // namespace @IDENT@
)text"},
    {"include/@IDENT@/scale.hpp", R"text(// scale on the caller's tensors, on this machine's CPU.
#pragma once

#include "@IDENT@/scale_kernel.hpp"
#include "neuron_kernels/host/launch.hpp"

namespace @IDENT@ {

/// dst = factor src. Shapes: dst, src [rows, n], any strides, f32, bf16 or f16. Errors: ShapeError
inline void scale(nk::View dst, nk::ConstView src, float factor) {
  if (src.rank() != 2 || dst.rank() != 2 || dst.dim(0) != src.dim(0) || dst.dim(1) != src.dim(1))
    nk::shape_error("scale", "dst", "is not of src's shape; both must be [rows, n]");
  nk::host::launch(nullptr, (src.dim(0) + scale_rows - 1) / scale_rows, [&](nk::Host& nc) {
    scale_kernel(nc, nk::Host::Hbm(dst), nk::Host::Hbm(src), factor);
  });
}

}  // namespace @IDENT@
)text"},
    {"include/@IDENT@/scale_program.hpp",
     R"text(// scale at a shape, for `kernels check scale`, `kernels profile scale` and `kernels emit scale`.
#pragma once

#include "@IDENT@/scale_kernel.hpp"
#include "neuron_kernels/programs/request.hpp"

namespace @IDENT@ {

/// Asks for sizes by name, with defaults; makes the tensors; calls the kernel.
inline void scale_program(nk::Recorder& nc, nk::Request& request) {
  const auto rows = request.size("rows", 4096, "of src"), n = request.size("n", 4096, "columns of src");
  const auto src = nc.hbm("src", request.dtype(), {rows, n}), dst = nc.hbm("dst", request.dtype(), {rows, n});
  scale_kernel(nc, dst, src, 0.5f);
  request.reference("def reference(src):\n    return 0.5 * np.asarray(src, np.float64)\n");
}

}  // namespace @IDENT@
)text"},
    {"tests/test_scale.cpp",
     R"text(// scale against its definition, with rows and columns left over, and its refusal of shapes that differ.
#include <cstdio>
#include <vector>

#include "@IDENT@/scale.hpp"

namespace nk = neuron_kernels;

int main() {
  const int rows = 131, n = 2051;
  std::vector<float> src(rows * n), dst(rows * n, -1.f);
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i % 1000);
  @IDENT@::scale(nk::View(dst.data(), {rows, n}), nk::ConstView(src.data(), {rows, n}), 0.5f);
  bool good = true;
  for (std::size_t i = 0; i < src.size(); ++i) good = good && dst[i] == 0.5f * src[i];
  try {
    @IDENT@::scale(nk::View(dst.data(), {n, rows}), nk::ConstView(src.data(), {rows, n}), 0.5f);
    good = false;
  } catch (const nk::ShapeError&) {
  }
  std::puts(good ? "passed" : "FAILED");
  return good ? 0 : 1;
}
)text"},
    {"CMakeLists.txt", R"text(cmake_minimum_required(VERSION 3.25)
project(@IDENT@ LANGUAGES CXX)

# The headers of neuron_kernels: -D NEURON_KERNELS_INCLUDE=..., else where the command `kernels` has them.
if(NOT NEURON_KERNELS_INCLUDE)
  find_program(kernels_command kernels REQUIRED)
  execute_process(COMMAND ${kernels_command} include OUTPUT_VARIABLE NEURON_KERNELS_INCLUDE
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
find_package(Threads REQUIRED)

add_library(@IDENT@ INTERFACE)
target_compile_features(@IDENT@ INTERFACE cxx_std_20)
target_include_directories(@IDENT@ INTERFACE include ${NEURON_KERNELS_INCLUDE})
target_link_libraries(@IDENT@ INTERFACE Threads::Threads)

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
