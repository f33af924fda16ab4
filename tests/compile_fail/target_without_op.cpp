// error: nc.norm_stats(tile, tile)
// A target must have every op of the contract; the compiler names the one that is missing.
#include "neuron_kernels/record/recorder.hpp"

namespace nk = neuron_kernels;

struct Almost : nk::Recorder {
  using Recorder::Recorder;
#ifdef BAD
  void norm_stats() = delete;
#endif
};

static_assert(nk::Target<Almost>);
