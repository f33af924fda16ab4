// kernels check: whether a kernel obeys a chip's rules, and what in it wastes the chip's time.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/chip.hpp"
#include "cli/session.hpp"
#include "neuron_kernels/record/check.hpp"
#include "neuron_kernels/record/schedule.hpp"
#include "neuron_kernels/sim/parameters.hpp"

namespace neuron_kernels::cli {
namespace {

struct CheckFlags {
  ChipOptions chip;
  bool no_schedule = false;
};

/// Of the Program as it would run; of the one that was recorded where that does not fit the chip.
/// errors: TileError if it does not fit, but no rule says why
std::vector<Finding> findings_of(const Program& program, const Limits& limits, bool no_schedule) {
  if (no_schedule) return check(program, limits);
  try {
    return check(schedule(program, limits), limits);
  } catch (const TileError&) {
    std::vector<Finding> findings = check(program, limits);
    if (is_legal(findings)) throw;
    return findings;
  }
}

nlohmann::json finding_json(const Finding& finding, const Program& program) {
  const bool known = finding.where.file != record::none;
  return {{"severity", name_of(finding.severity)},
          {"rule", name_of(finding.rule)},
          {"op", finding.op},
          {"file", known ? record::nth(program.files, finding.where.file) : ""},
          {"line", finding.where.line},
          {"text", finding.text}};
}

struct Count {
  int errors = 0, warnings = 0;
};

nlohmann::json check_one(const Work& work, bool no_schedule, const Global& global, Count& count) {
  return translated([&] {
    const Limits limits = sim::parameters_for(work.chip).limits;
    nlohmann::json list = nlohmann::json::array();
    for (const Finding& finding : findings_of(work.answer.program, limits, no_schedule)) {
      const bool error = finding.severity == record::Severity::error;
      ++(error ? count.errors : count.warnings);
      list.push_back(finding_json(finding, work.answer.program));
      if (!global.json) {
        std::printf("%s: %s, %s: %s\n", work.kernel.c_str(), work.chip.c_str(), name_of(finding.severity),
                    finding.text.c_str());
      }
    }
    return nlohmann::json{{"kernel", work.kernel},
                          {"chip", work.chip},
                          {"dtype", work.dtype},
                          {"shape", work.shape},
                          {"findings", list}};
  });
}

/// The kernel that is named, or all of the package, or of the library; for the chip that is named, or all.
std::vector<Work> all_work(ChipOptions options, const Global& global) {
  if (options.chip.empty() && options.program_file.empty()) options.chip = "all";
  if (!options.kernel.empty() || !options.program_file.empty()) return work_of(options, global);
  std::vector<KernelSource> sources = kernel_sources(options);
  const auto of_package = [](const KernelSource& source) { return source.function == nullptr; };
  if (std::any_of(sources.begin(), sources.end(), of_package))
    std::erase_if(sources, std::not_fn(of_package));
  std::vector<Work> all;
  for (const KernelSource& source : sources) {
    options.kernel = source.name;
    for (Work& work : work_of(options, global)) all.push_back(std::move(work));
  }
  return all;
}

void run_check(const CheckFlags& flags, const Global& global) {
  if (flags.chip.list) return list_kernels(flags.chip, global);
  nlohmann::json all = nlohmann::json::array();
  Count count;
  for (const Work& work : all_work(flags.chip, global))
    all.push_back(check_one(work, flags.no_schedule, global, count));
  if (global.json) print(all);
  const std::string said = std::to_string(count.errors) + " errors, " + std::to_string(count.warnings) +
                           " warnings in " + std::to_string(all.size()) + " programs";
  if (count.errors > 0) throw hub::HubError(hub::ErrorKind::failed, said);
  if (!global.quiet) std::fprintf(stderr, "%s\n", said.c_str());
}

}  // namespace

void add_check(CLI::App& app, Global& global) {
  CLI::App* command = app.add_subcommand("check", check_description);
  const auto flags = std::make_shared<CheckFlags>();
  add_chip_options(*command, flags->chip, "all");
  command->add_flag("--no-schedule,!--schedule", flags->no_schedule,
                    "Check the kernel as it is written, without places");
  add_examples(*command,
               "  kernels check                                      all kernels of the package here, or of "
               "the library\n"
               "  kernels check flash_attention --chip trn2 --shape q_len=4096,d=128,causal\n"
               "  kernels check scale --package my-scale --json      a kernel of your own\n"
               "  kernels check --program program.json\n"
               "Findings go to stdout; the exit code is 1 if one of them is an error.");
  command->callback([flags, &global] { run_check(*flags, global); });
}

}  // namespace neuron_kernels::cli
