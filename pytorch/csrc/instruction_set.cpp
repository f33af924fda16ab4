// instruction_set.
#include "neuron_kernels/host/pages.hpp"
#include "operators.hpp"

namespace neuron_kernels::pytorch {

std::string instruction_set() { return host::best_page().name; }

}  // namespace neuron_kernels::pytorch
