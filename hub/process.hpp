// Runs other programs (compilers, git, Python) and gives back what they print.
#pragma once

#include <string>
#include <vector>

namespace neuron_kernels::hub {

enum class Capture { output, output_and_errors };  // output alone: errors are dropped

struct Finished {
  int status = 0;  // exit status; 128 + N for signal N; 127 if the program cannot be started
  std::string output;
};

/// Waits for its end. arguments[0] is looked up in PATH; no shell is involved. Safe from several threads.
/// errors: HubError failed if the system has no process or pipe left
Finished run_program(const std::vector<std::string>& arguments, Capture capture);

/// An environment variable in words, as CXX="ccache g++"; `otherwise` if it is not set or blank.
std::vector<std::string> words_of_variable(const char* name, const std::string& otherwise);

}  // namespace neuron_kernels::hub
