// Prints the library's version and one result that goes through it.
#include <cstdio>
#include <string>

#include "neuron_kernels/core/dtype.hpp"
#include "neuron_kernels/version.hpp"

namespace nk = neuron_kernels;

int main() {
  const float rounded = nk::to_f32(nk::to_bf16(3.001f));  // bf16 has 7 fraction bits: 3.001 rounds to 3
  std::printf("neuron_kernels %s: %g == 3\n", std::string(nk::version).c_str(), static_cast<double>(rounded));
}
