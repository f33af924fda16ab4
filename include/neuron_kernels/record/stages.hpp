// Stages: how many iterations later each statement of a rotated loop runs.
//
// What rotation is: record/pipeline.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "neuron_kernels/record/dependences.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

struct PipelineOptions {
  int step_lag = 2;   // steps, at least, between what an engine computes and the tensor engine's use of it
  int block_lag = 1;  // the same in blocks
  int most_stages = 12;
  std::int64_t most_bytes = 64 * 1024;  // of SBUF per partition that a rotation may cost
};

namespace record {

/// Stage of each statement, the least that keep every dependence; empty if there are none. `lag`: iterations between
/// what an engine computes and the tensor engine's use of it, and more where that takes longer than an iteration.
inline std::vector<int> stages_of(const Dependences& d, int lag, int most, int inner = none) {
  std::vector<double> chain(d.statements.size(), 0);  // ns since the tensor engine's last part in it
  for (std::size_t b = 0; b < chain.size(); ++b) {
    if (d.statements[b].tensor) continue;
    for (const Dependence& x : d.all) {
      if (x.distance == 0 && x.b == static_cast<int>(b)) chain[b] = std::max(chain[b], nth(chain, x.a));
    }
    chain[b] += d.statements[b].ns;
  }
  const double iteration = std::max(d.iteration_ns(), 1.0);
  const auto lag_of = [&](int a) {
    return inner != none || lag < 2
               ? lag
               : std::max(lag, 1 + static_cast<int>(std::ceil(nth(chain, a) / iteration)));
  };
  const auto last = [&](int statement) {
    return statement == inner ? 1 : 0;
  };  // an inner loop ends a block later
  std::vector<int> stage(d.statements.size(), 0);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Dependence& x : d.all) {
      // In one step lower stages run first: b may run in the step of a only if its stage is not lower.
      const bool lags = x.crosses_to_tensor || (x.computed && x.b == inner);  // an inner loop cannot wait
      const int apart = x.distance > 0 ? 1 - x.distance : lags ? lag_of(x.a) : 0;
      const int least = nth(stage, x.a) + last(x.a) + apart;
      if (nth(stage, x.b) >= least) continue;
      if (x.a == x.b || least > most) return {};
      nth(stage, x.b) = least;
      changed = true;
    }
  }
  return stage;
}

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
