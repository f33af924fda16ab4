// error: known only on the chip: no C++ `if` on an Index
// Nor is an index itself true or false.
#include "neuron_kernels/record/recorder.hpp"

void kernel(neuron_kernels::Recorder& nc, neuron_kernels::Recorder::Tile dst) {
  for (auto k : nc.range(4)) {
#ifdef BAD
    if (k) nc.fill(dst, 0.f);
#else
    nc.fill(dst.free(k, 1), 0.f);
#endif
  }
}
