// error: known only on the chip: sizes of tiles and arrays are plain ints
// Sizes may not depend on a loop index: one recorded body stands for all iterations.
#include "neuron_kernels/record/recorder.hpp"

void kernel(neuron_kernels::Recorder& nc) {
  for (auto t : nc.tiles(300, 128)) {
#ifdef BAD
    auto tile = nc.sbuf("t", static_cast<int>(t.index), 1, neuron_kernels::f32);
#else
    auto tile = nc.sbuf("t", t.size, 1, neuron_kernels::f32);
#endif
    nc.fill(tile, 0.f);
  }
}
