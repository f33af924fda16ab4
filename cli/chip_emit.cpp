// kernels emit: a kernel at a shape as NKI source, to run on the chip.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/chip.hpp"
#include "cli/session.hpp"
#include "hub/files.hpp"
#include "neuron_kernels/nki/emit.hpp"
#include "neuron_kernels/record/schedule.hpp"
#include "neuron_kernels/sim/parameters.hpp"

namespace neuron_kernels::cli {
namespace {

struct EmitFlags {
  ChipOptions chip;
  std::string out;
  bool no_schedule = false;
};

void run_emit(const EmitFlags& flags, const Global& global) {
  if (flags.chip.list) return list_kernels(flags.chip, global);
  if (flags.chip.chip == "all") {
    throw hub::HubError(hub::ErrorKind::usage,
                        "--chip is all; source is written for one: trn1, trn2 or trn3");
  }
  const Work work = work_of(flags.chip, global).front();
  const std::string source = translated([&] {
    const Limits limits = sim::parameters_for(work.chip).limits;
    const Program& program = work.answer.program;
    return emit(flags.no_schedule ? program : schedule(program, limits),
                {.name = work.kernel, .reference = work.answer.reference});
  });
  if (!flags.out.empty()) hub::write_file(flags.out, source);
  if (global.json) {
    print(nlohmann::json{{"kernel", work.kernel},
                         {"chip", work.chip},
                         {"dtype", work.dtype},
                         {"shape", work.shape},
                         {"source", source}});
  } else if (flags.out.empty()) {
    std::fputs(source.c_str(), stdout);
  }
}

}  // namespace

void add_emit(CLI::App& app, Global& global) {
  CLI::App* command = app.add_subcommand("emit", emit_description);
  const auto flags = std::make_shared<EmitFlags>();
  add_chip_options(*command, flags->chip);
  command->add_flag("--no-schedule,!--schedule", flags->no_schedule,
                    "Leave engines, descriptors and places to the compiler of NKI");
  command->add_option("-o,--out", flags->out, "File for the source; default stdout")->type_name("FILE");
  add_examples(
      *command,
      "  kernels emit matmul --chip trn2 --shape m=512,n=1024,k=512 > matmul.py\n"
      "  kernels emit flash_attention --shape q_len=1024,heads=8,kv_heads=2,causal --out attention.py\n"
      "  kernels emit scale --package my-scale --shape rows=4096    a kernel of your own");
  command->callback([flags, &global] { run_emit(*flags, global); });
}

}  // namespace neuron_kernels::cli
