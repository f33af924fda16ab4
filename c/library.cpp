// Error message, version, and the instruction set in use.
#include "c/call.hpp"
#include "neuron_kernels/host/pages.hpp"
#include "neuron_kernels/version.hpp"

namespace neuron_kernels::c {

std::string& last_error() {
  thread_local std::string message;
  return message;
}

}  // namespace neuron_kernels::c

extern "C" {

const char* neuron_kernels_error() { return neuron_kernels::c::last_error().c_str(); }

const char* neuron_kernels_instruction_set() {
  const char* name = nullptr;
  neuron_kernels::c::guarded([&] { name = neuron_kernels::host::best_page().name; });
  return name;
}

const char* neuron_kernels_version() { return neuron_kernels::version.data(); }
}
