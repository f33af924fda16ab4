// error: known only on the chip: no C++ `if` on a Cond
// A loop index is a symbol while a kernel is recorded: what depends on it is given to ops as a condition.
#include "neuron_kernels/record/recorder.hpp"

namespace nk = neuron_kernels;

void kernel(nk::Recorder& nc, nk::Recorder::Tile dst, nk::Recorder::Tile a) {
  for (auto k : nc.range(4)) {
#ifdef BAD
    if (k == 0) nc.matmul(dst, a, a);
#else
    nc.matmul(dst, a, a, {.accumulate = k > 0});
#endif
  }
}
