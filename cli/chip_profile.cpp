// kernels profile: how long a kernel takes on a chip, and why.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "cli/chip.hpp"
#include "cli/session.hpp"
#include "hub/files.hpp"
#include "neuron_kernels/record/json_write.hpp"
#include "neuron_kernels/record/schedule.hpp"
#include "neuron_kernels/sim/svg.hpp"
#include "neuron_kernels/sim/trace.hpp"

namespace neuron_kernels::cli {
namespace {

namespace fs = std::filesystem;
using hub::ErrorKind;
using hub::HubError;

struct ProfileFlags {
  ChipOptions chip;
  std::string parameters = "nominal", trace, svg, program_out;
  int cores = 1;
  bool no_schedule = false;
};

sim::Confidence confidence_of(const std::string& name) {
  if (name == "mid") return sim::Confidence::mid;
  return name == "nominal" ? sim::Confidence::nominal : sim::Confidence::pessimistic;
}

/// Errors: HubError failed where a simulation would take minutes.
void check_length(const Program& program) {
  constexpr double most = 1e9;  // ops, about a minute
  const record::Iterations iterations(program);
  double ops = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) ops += iterations.of(i);
  if (ops > most) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1e", ops);
    throw HubError(ErrorKind::failed,
                   std::string("the program has ") + text + " ops to execute; allowed are 1e9",
                   "profile a smaller shape: heads, batches and blocks of rows repeat");
  }
}

void write_trace(const std::string& file, const Program& program, const sim::Parameters& parameters,
                 sim::Options options, const Global& global) {
  std::ofstream out(file, std::ios::binary);
  sim::Trace trace(out, program);
  options.observe = [&](const sim::Event& event) { trace.add(event); };
  sim::simulate(program, parameters, options);
  const std::int64_t left_out = trace.end();
  out.close();
  if (!out) throw HubError(ErrorKind::storage, "cannot write " + file);
  if (left_out > 0 && !global.quiet) {
    std::fprintf(stderr, "%s has the first instructions; %lld more are left out\n", file.c_str(),
                 static_cast<long long>(left_out));
  }
}

void write_pictures(const std::string& folder, const Work& work, const Program& program,
                    const sim::Report& report, const sim::Parameters& parameters, sim::Options options) {
  sim::Activity activity(report.latency_ns);
  options.observe = [&](const sim::Event& event) { activity.add(event); };
  sim::simulate(program, parameters, options);
  const std::string name = work.kernel + "-" + work.chip;
  hub::write_file(fs::path(folder) / (name + "-timeline.svg"), sim::timeline_svg(report, activity));
  hub::write_file(fs::path(folder) / (name + "-roofline.svg"), sim::roofline_svg(report, parameters.limits));
}

nlohmann::json profile(const Work& work, const ProfileFlags& flags, const Global& global) {
  return translated([&] {
    const sim::Parameters parameters = sim::parameters_for(work.chip, confidence_of(flags.parameters));
    const Program program =
        flags.no_schedule ? work.answer.program : schedule(work.answer.program, parameters.limits);
    check_length(program);
    const sim::Options options{.cores = flags.cores, .useful_flops = work.answer.useful_flops};
    const sim::Report report = sim::simulate(program, parameters, options);
    if (!flags.trace.empty()) write_trace(flags.trace, program, parameters, options, global);
    if (!flags.svg.empty()) write_pictures(flags.svg, work, program, report, parameters, options);
    if (!flags.program_out.empty()) hub::write_file(flags.program_out, to_json(program));
    if (!global.json) {
      std::printf("%s%s%s%s%s, %s parameters\n%s", work.kernel.c_str(), work.dtype.empty() ? "" : " ",
                  work.dtype.c_str(), work.shape.empty() ? "" : ", ", work.shape.c_str(),
                  flags.parameters.c_str(), sim::to_text(report, program, parameters.limits).c_str());
    }
    auto document = nlohmann::json::parse(sim::to_json(report, program, parameters.limits));
    document["kernel"] = work.kernel;
    document["dtype"] = work.dtype;
    document["shape"] = work.shape;
    document["parameters"] = flags.parameters;
    return document;
  });
}

void run_profile(const ProfileFlags& flags, const Global& global) {
  if (flags.chip.list) return list_kernels(flags.chip, global);
  if (flags.chip.chip == "all" && !(flags.trace.empty() && flags.program_out.empty()))
    throw HubError(ErrorKind::usage, "--trace and --program-out are of one chip; --chip is all");
  nlohmann::json all = nlohmann::json::array();
  for (const Work& work : work_of(flags.chip, global)) {
    if (!global.json && !all.empty()) std::printf("\n");
    all.push_back(profile(work, flags, global));
  }
  if (global.json) print(flags.chip.chip == "all" ? all : all.front());
}

}  // namespace

void add_profile(CLI::App& app, Global& global) {
  CLI::App* command = app.add_subcommand("profile", profile_description);
  const auto flags = std::make_shared<ProfileFlags>();
  add_chip_options(*command, flags->chip);
  command
      ->add_option("--parameters", flags->parameters,
                   "nominal, mid or pessimistic: how much is taken for granted")
      ->capture_default_str()
      ->check(CLI::IsMember({"nominal", "mid", "pessimistic"}));
  command->add_option("--cores", flags->cores, "Cores that share the work; the one with the most is timed")
      ->capture_default_str()
      ->check(CLI::Range(1, 128));
  command->add_flag("--no-schedule,!--schedule", flags->no_schedule,
                    "Time the kernel as it is written, each tile in one buffer");
  command->add_option("--trace", flags->trace, "Write each instruction for Perfetto (ui.perfetto.dev)")
      ->type_name("FILE");
  command->add_option("--svg", flags->svg, "Write pictures of engines over time and of the roofline")
      ->type_name("DIR");
  command->add_option("--program-out", flags->program_out, "Write the Program that is timed, as JSON")
      ->type_name("FILE");
  add_examples(*command,
               "  kernels profile --list\n"
               "  kernels profile flash_attention --chip trn2 --shape q_len=4096,d=128,causal\n"
               "  kernels profile matmul --shape m=4096,n=8192,k=8192 --dtype bf16 --chip all --json\n"
               "  kernels profile matmul --trace matmul.json --svg pictures\n"
               "  kernels profile scale --package my-scale --shape rows=4096    a kernel of your own\n"
               "  kernels profile matmul --program-out matmul.json && kernels profile --program matmul.json");
  command->callback([flags, &global] { run_profile(*flags, global); });
}

}  // namespace neuron_kernels::cli
