// What the command `kernels` compiles beside a package's program function: records it and writes the answer as JSON.
//
//     int main(int argc, char** argv) { return neuron_kernels::answer_command(argc, argv, &my_scale::scale_program); }
// Called as PROGRAM CHIP DTYPE [NAME=VALUE | NAME]...
#pragma once

#include <cstdio>

#include "neuron_kernels/programs/request.hpp"
#include "neuron_kernels/record/json_write.hpp"
#include "neuron_kernels/sim/parameters.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

inline std::string to_json(const Answer& answer) {
  std::string s = "{\"useful_flops\": ";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.17g", answer.useful_flops);
  s += digits;
  s += ",\n\"reference\": ";
  record::append_quoted(s, answer.reference);
  s += ",\n\"parameters\": [";
  for (const Request::Parameter& p : answer.parameters) {
    s += &p == answer.parameters.data() ? "{\"name\": " : ",\n {\"name\": ";
    record::append_quoted(s, p.name);
    s += ", \"otherwise\": ";
    record::append_quoted(s, p.otherwise);
    s += ", \"help\": ";
    record::append_quoted(s, p.help);
    s += '}';
  }
  return s + "],\n\"program\": " + to_json(answer.program) + "}\n";
}

/// Exit code 0 with the answer on stdout; 1, or 2 for a shape that the kernel does not have, with a sentence there.
inline int answer_command(int argc, char** argv, ProgramFunction function) {
  try {
    if (argc < 3) throw RequestError("usage: PROGRAM CHIP DTYPE [NAME=VALUE | NAME]...");
    const auto* const name =
        std::find(std::begin(record::spelled<DType>), std::end(record::spelled<DType>), argv[2]);
    if (name == std::end(record::spelled<DType>)) throw RequestError("the type must be f32, bf16 or f16");
    std::map<std::string, std::string> given;
    for (int i = 3; i < argc; ++i) add_word(given, argv[i]);
    const auto dtype = static_cast<DType>(name - std::begin(record::spelled<DType>));
    std::fputs(to_json(answer(function, sim::parameters_for(argv[1]).limits, dtype, given)).c_str(), stdout);
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    const bool usage = dynamic_cast<const RequestError*>(&error) != nullptr ||
                       dynamic_cast<const ShapeError*>(&error) != nullptr;
    return usage ? 2 : 1;
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
