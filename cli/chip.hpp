// What the commands of `kernels-chip` share: which kernel, shape and chip is meant, and the Program that it is.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "hub/error.hpp"
#include "hub/manifest.hpp"
#include "neuron_kernels/programs/request.hpp"

namespace neuron_kernels::cli {

/// KERNEL, --package, --program, --chip, --dtype, --shape, --list
struct ChipOptions {
  std::string kernel, package = ".", program_file;
  std::string chip, dtype;  // empty: not given
  std::vector<std::string> shape;
  bool package_given = false, list = false;
};
/// chip_default: what --help says of --chip.
void add_chip_options(CLI::App& command, ChipOptions& options, const std::string& chip_default = "trn2");

/// A kernel that has a program: of the library or of a package.
struct KernelSource {
  std::string name, help;
  ProgramFunction function = nullptr;      // null: of the package
  hub::Manifest::Kernel kernel{};          // of the package
  std::vector<std::string> dtypes, chips;  // that it is for; the first dtype is the default
};

/// The package's kernels that name a program, and those of the library whose names are not taken by them.
/// errors: HubError of a kernel.toml that is none, or of a --package without one
std::vector<KernelSource> kernel_sources(const ChipOptions& options);

/// What a command works on: a kernel at a shape, for a chip.
struct Work {
  std::string kernel, chip, dtype, shape;  // kernel: "kernel" for --program; shape: "m=128, n=512, causal"
  Answer answer;
};
/// Of KERNEL or of --program, for one chip or, with --chip all, those of the kernel.
/// errors: HubError usage for a kernel, chip, type or shape that there is not; failed
std::vector<Work> work_of(const ChipOptions& options, const Global& global);

/// --list: kernels with their types and shapes. Errors: as kernel_sources, and of a package that does not compile.
void list_kernels(const ChipOptions& options, const Global& global);

/// The program function of a package, compiled and called.
/// errors: HubError failed with the compiler's first error; usage for a shape that the function refuses
Answer record_from_package(const std::string& package, const hub::Manifest::Kernel& kernel,
                           const std::string& chip, const std::string& dtype,
                           const std::map<std::string, std::string>& shape, const Global& global);

/// Where neuron_kernels' headers are. Errors: HubError failed.
std::string include_folder();

/// f(), with the library's errors as HubErrors: shapes that do not fit are usage, broken rules failed.
template <class F>
auto translated(const F& f) {
  try {
    return f();
  } catch (const RequestError& error) {
    throw hub::HubError(hub::ErrorKind::usage, error.what());
  } catch (const ShapeError& error) {
    throw hub::HubError(hub::ErrorKind::usage, error.what());
  } catch (const TileError& error) {
    throw hub::HubError(hub::ErrorKind::failed, error.what());
  }
}

// Each adds one command.
void add_check(CLI::App& app, Global& global);
void add_profile(CLI::App& app, Global& global);
void add_emit(CLI::App& app, Global& global);
void add_include(CLI::App& app, Global& global);

}  // namespace neuron_kernels::cli
