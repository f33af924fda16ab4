// What a machine has that decides on the variant of a package: processor, system, PyTorch, accelerator. Found
// without running Python.
#pragma once

#include <compare>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuron_kernels::hub {

/// MAJOR.MINOR
struct ShortVersion {
  int major = 0, minor = 0;
  auto operator<=>(const ShortVersion&) const = default;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
  /// The first two numbers of "2.13.0+cpu"; the minor one is 0 if it is missing.
  static std::optional<ShortVersion> parse(std::string_view text);
};

/// "cpu", "cuda" 13.0, "rocm" 7.1, "xpu" 2025.3, "cann" 8.2, "metal", "neuron", "tpu"
struct Backend {
  std::string name = "cpu";
  std::optional<ShortVersion> version{};
  bool operator==(const Backend&) const = default;
  /// As in the names of variants: "cpu", "cu130", "rocm71", "xpu20253", "cann82"
  std::string text() const;
  /// From such a name; also "cuda13.0" and "cuda:13.0". Nothing if it is none.
  static std::optional<Backend> parse(std::string_view text);
};

struct Platform {
  std::string arch, os;  // "x86_64", "linux"
  Backend backend;
  std::optional<ShortVersion> torch{}, tvm_ffi{};
  std::optional<bool> cxx11_abi{};          // of that PyTorch
  std::vector<std::string> device_archs{};  // "9.0" (CUDA), "gfx942" (ROCm); empty if unknown
  bool old_free_threaded = false;  // a free-threaded Python before 3.15: it loads no compiled variant
  std::string torch_source{};      // where PyTorch was found or looked for, for messages

  std::string text() const;  // "x86_64-linux, torch 2.13, cpu"
};

/// What the command line says in place of what is found.
struct PlatformOverrides {
  std::optional<std::string> torch{}, backend{}, device_arch{}, arch{}, os{};
  std::optional<std::filesystem::path> python{};  // the interpreter, or a folder of a virtual environment
};

/// Looks at this machine: the site-packages of `python`, of $VIRTUAL_ENV or of the python3 in PATH, and its
/// devices. errors: HubError usage for an override that is malformed
Platform find_platform(const PlatformOverrides& overrides = {});

}  // namespace neuron_kernels::hub
