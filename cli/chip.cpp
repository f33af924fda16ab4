// The commands of `kernels-chip`, their common options, and the Programs that they mean.
#include "cli/chip.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/session.hpp"
#include "hub/files.hpp"
#include "hub/text.hpp"
#include "neuron_kernels/programs/bundled.hpp"
#include "neuron_kernels/record/json.hpp"
#include "neuron_kernels/sim/parameters.hpp"

namespace neuron_kernels::cli {
namespace {

namespace fs = std::filesystem;
using hub::ErrorKind;
using hub::HubError;

const std::vector<std::string> all_chips{"trn1", "trn2", "trn3"}, all_dtypes{"bf16", "f16", "f32"};

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "m=4096,n=8192" and "causal" in any number of words.
std::map<std::string, std::string> shape_of(const std::vector<std::string>& words) {
  std::map<std::string, std::string> given;
  for (const std::string& word : words) {
    for (std::size_t begin = 0; begin <= word.size();) {
      const std::size_t comma = std::min(word.find(',', begin), word.size());
      add_word(given, word.substr(begin, comma - begin));
      begin = comma + 1;
    }
  }
  given.erase("");
  return given;
}

/// With the values that were taken.
std::string shape_text(const std::vector<Request::Parameter>& parameters,
                       const std::map<std::string, std::string>& given) {
  std::string text;
  for (const Request::Parameter& p : parameters) {
    const auto found = given.find(p.name);
    if (found == given.end() && p.otherwise.empty()) continue;  // a flag
    const std::string& value = found == given.end() ? p.otherwise : found->second;
    text += (text.empty() ? "" : ", ") + p.name + (value.empty() ? "" : "=" + value);
  }
  return text;
}

KernelSource find_kernel(const ChipOptions& options) {
  const std::vector<KernelSource> sources = kernel_sources(options);
  std::vector<std::string> names;
  for (const KernelSource& source : sources) {
    if (source.name == options.kernel) return source;
    names.push_back(source.name);
  }
  const std::string given =
      options.kernel.empty() ? "no kernel is named" : "kernel '" + options.kernel + "' is unknown";
  throw HubError(ErrorKind::usage, given + "; there are " + hub::joined(names),
                 "a kernel of a package: --package DIR, and `program` in its kernel.toml; "
                 "a Program as a file: --program FILE");
}

std::string dtype_of(const ChipOptions& options, const KernelSource& source) {
  if (options.dtype.empty()) return source.dtypes.front();
  if (!among(source.dtypes, options.dtype)) {
    throw HubError(ErrorKind::usage, "dtype '" + options.dtype + "' for " + source.name + "; allowed are " +
                                         hub::joined(source.dtypes));
  }
  return options.dtype;
}

std::vector<std::string> chips_of(const ChipOptions& options, const std::vector<std::string>& allowed) {
  if (options.chip.empty()) return {among(allowed, "trn2") ? "trn2" : allowed.front()};
  if (options.chip == "all") return allowed;
  const std::string chip = options.chip == "inf2" ? "trn1" : options.chip;
  if (!among(allowed, chip)) {
    throw HubError(ErrorKind::usage, "chip '" + options.chip + "'; allowed are " + hub::joined(allowed) +
                                         " and all" + (among(allowed, "trn1") ? " (inf2 is trn1)" : ""));
  }
  return {chip};
}

Answer record(const ChipOptions& options, const KernelSource& source, const std::string& chip,
              const std::string& dtype, const Global& global) {
  const auto given = shape_of(options.shape);
  if (source.function == nullptr)
    return record_from_package(options.package, source.kernel, chip, dtype, given, global);
  const auto& names = record::spelled<DType>;
  const auto type = static_cast<DType>(std::find(names.begin(), names.end(), dtype) - names.begin());
  return translated([&] { return answer(source.function, sim::parameters_for(chip).limits, type, given); });
}

Work work_of_file(const ChipOptions& options) {
  if (!options.kernel.empty() || !options.shape.empty() || !options.dtype.empty()) {
    throw HubError(ErrorKind::usage,
                   "--program has its kernel, shape and dtype; leave out KERNEL, --shape and --dtype");
  }
  Work work{.kernel = "kernel", .chip = {}, .dtype = {}, .shape = {}, .answer = {}};
  try {
    work.answer.program = program_from_json(hub::read_file(options.program_file));
  } catch (const ProgramError& error) {
    throw HubError(ErrorKind::failed, options.program_file + ": " + error.what(),
                   "docs/program.md describes the form");
  }
  work.chip = work.answer.program.chip;
  if (!among(all_chips, work.chip)) {
    throw HubError(ErrorKind::usage, options.program_file + " was recorded for " + work.chip +
                                         "; allowed are " + hub::joined(all_chips));
  }
  if (!options.chip.empty() && options.chip != work.chip) {
    throw HubError(
        ErrorKind::usage,
        "--chip is " + options.chip + ", but " + options.program_file + " was recorded for " + work.chip,
        "leave out --chip, or record the kernel for the other chip");
  }
  return work;
}

}  // namespace

void add_chip_options(CLI::App& command, ChipOptions& options, const std::string& chip_default) {
  command.add_option("KERNEL", options.kernel, "Name of a kernel; --list shows those there are");
  command.add_option("--chip", options.chip, "trn1 (also inf2), trn2, trn3 or all; default " + chip_default);
  command.add_option("--shape", options.shape, "NAME=NUMBER and words, with commas between; may be repeated")
      ->allow_extra_args(false);
  command.add_option("--dtype", options.dtype, "bf16, f16 or f32; default the kernel's first");
  command
      .add_option_function<std::string>(
          "--package",
          [&options](const std::string& folder) { options.package = folder, options.package_given = true; },
          "Folder with the kernel.toml of the kernel's package; default the current one")
      ->type_name("DIR");
  command.add_option("--program", options.program_file,
                     "A Program as JSON instead of a kernel; see --program-out");
  command.add_flag("--list", options.list, "List kernels with their types, sizes and defaults");
}

std::vector<KernelSource> kernel_sources(const ChipOptions& options) {
  std::vector<KernelSource> sources;
  std::error_code error;
  if (options.package_given || fs::exists(fs::path(options.package) / hub::Manifest::file_name, error)) {
    for (const hub::Manifest::Kernel& kernel : hub::Manifest::read(options.package).kernels) {
      if (kernel.program.empty()) continue;
      sources.push_back({.name = kernel.name,
                         .help = kernel.program + " of " + kernel.program_header,
                         .function = nullptr,
                         .kernel = kernel,
                         .dtypes = kernel.dtypes.empty() ? all_dtypes : kernel.dtypes,
                         .chips = kernel.chips.empty() ? all_chips : kernel.chips});
    }
  }
  const std::vector<KernelSource> own = sources;
  for (const programs::Bundled& b : programs::bundled) {
    if (std::any_of(own.begin(), own.end(), [&](const KernelSource& s) { return s.name == b.name; }))
      continue;
    sources.push_back(
        {.name = b.name, .help = b.help, .function = b.function, .dtypes = all_dtypes, .chips = all_chips});
  }
  return sources;
}

std::vector<Work> work_of(const ChipOptions& options, const Global& global) {
  if (!options.program_file.empty()) return {work_of_file(options)};
  const KernelSource source = find_kernel(options);
  const std::string dtype = dtype_of(options, source);
  std::vector<Work> all;
  for (const std::string& chip : chips_of(options, source.chips)) {
    Work work{.kernel = source.name, .chip = chip, .dtype = dtype, .shape = {}, .answer = {}};
    work.answer = record(options, source, chip, dtype, global);
    work.shape = shape_text(work.answer.parameters, shape_of(options.shape));
    all.push_back(std::move(work));
  }
  return all;
}

void list_kernels(const ChipOptions& options, const Global& global) {
  nlohmann::json list = nlohmann::json::array();
  for (const KernelSource& source : kernel_sources(options)) {
    ChipOptions defaults;
    defaults.package = options.package;
    const Answer answer = record(defaults, source, source.chips.front(), source.dtypes.front(), global);
    nlohmann::json shape = nlohmann::json::array();
    if (!global.json) {
      std::printf("%s  %s\n  dtype %s; chip %s\n", source.name.c_str(), source.help.c_str(),
                  hub::joined(source.dtypes).c_str(), hub::joined(source.chips).c_str());
    }
    for (const Request::Parameter& p : answer.parameters) {
      shape.push_back({{"name", p.name}, {"default", p.otherwise}, {"help", p.help}});
      const std::string word = p.otherwise.empty() ? p.name : p.name + "=" + p.otherwise;
      if (!global.json) std::printf("  %-18s %s\n", word.c_str(), p.help.c_str());
    }
    list.push_back({{"name", source.name},
                    {"help", source.help},
                    {"dtypes", source.dtypes},
                    {"chips", source.chips},
                    {"shape", shape}});
  }
  if (global.json) print(list);
}

void add_chip(CLI::App& app, Global& global) {
  add_check(app, global);
  add_profile(app, global);
  add_emit(app, global);
  add_include(app, global);
}

}  // namespace neuron_kernels::cli
