// Parameters: the chip that the simulator stands in for, by name and by how much is taken for granted.
#pragma once

#include <array>
#include <string_view>

#include "neuron_kernels/core/error.hpp"
#include "neuron_kernels/core/limits.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace sim {

struct Parameters {
  Limits limits;
  Timing timing;
};

/// The set of numbers: nominal is what is published or calibrated (docs/fidelity.md); mid and pessimistic add what
/// no published row of bf16 on the tensor engine rules out.
enum class Confidence { nominal, mid, pessimistic };

inline constexpr std::array<const Limits*, 3> chips{&trn1, &trn2, &trn3};

/// Errors: ShapeError on a chip that is none of trn1, inf2, trn2, trn3.
inline Parameters parameters_for(std::string_view chip, Confidence confidence = Confidence::nominal) {
  Parameters p{trn1, trn1_timing};
  if (chip == "trn2") {
    p = {trn2, trn2_timing};
  } else if (chip == "trn3") {
    p = {trn3, trn3_timing};
  } else if (chip != "trn1" && chip != "inf2") {
    shape_error("simulate", "chip", text("\"", chip, "\"; allowed are trn1 (also inf2), trn2 and trn3"));
  }
  if (confidence != Confidence::nominal) {
    const bool mid = confidence == Confidence::mid;
    if (chip == "trn2" || chip == "trn3") p.timing.tensor_issue_cycles += mid ? 25 : 50;
    if (!mid) p.timing.scalar_issue_cycles = 128;
    p.timing.semaphore_ns = 100;
  }
  return p;
}

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
