// error: no C++ `if` on a Cond
// A plain `for` up to an index would run while the kernel is recorded, when the index has no value:
// it takes range().
#include "neuron_kernels/record/recorder.hpp"

void kernel(neuron_kernels::Recorder& nc, neuron_kernels::Recorder::Tile dst) {
  for (auto end : nc.range(4)) {
#ifdef BAD
    for (int i = 0; i < end; ++i) nc.fill(dst, 0.f);
#else
    for (auto i : nc.range(end)) nc.fill(dst.free(i, 1), 0.f);
#endif
  }
}
