// Box: a part of an array of `n` dimensions; covered(): whether boxes together hold another.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "neuron_kernels/record/program.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// [lo, hi) of each dimension; of the last one every `step`-th element from lo on.
template <std::size_t n>
struct Box {
  std::array<std::int64_t, n> lo{}, hi{};
  std::int64_t step = 1;
  bool operator==(const Box&) const = default;

  bool empty() const {
    for (std::size_t d = 0; d < n; ++d) {
      if (lo[d] >= hi[d]) return true;
    }
    return false;
  }
  bool meets(const Box& other) const {
    for (std::size_t d = 0; d < n; ++d) {
      if (lo[d] >= other.hi[d] || other.lo[d] >= hi[d]) return false;
    }
    return true;
  }
};

/// Whether dense boxes [from, end) together hold the dense box `part`.
template <std::size_t n>
bool covered_dense(const std::vector<Box<n>>& boxes, std::size_t from, Box<n> part) {
  if (part.empty()) return true;
  for (; from < boxes.size(); ++from) {
    const Box<n>& b = boxes[from];
    if (!b.meets(part)) continue;
    for (std::size_t d = 0; d < n; ++d) {  // what sticks out on either side must be in the rest
      Box<n> before = part, behind = part;
      before.hi[d] = std::min(part.hi[d], b.lo[d]);
      behind.lo[d] = std::max(part.lo[d], b.hi[d]);
      if (!covered_dense(boxes, from + 1, before) || !covered_dense(boxes, from + 1, behind)) return false;
      part.lo[d] = std::max(part.lo[d], b.lo[d]), part.hi[d] = std::min(part.hi[d], b.hi[d]);
    }
    return true;
  }
  return false;
}

/// The elements x = r (mod `by`) of the last dimension of a box, as a dense box of (x - r) / by; by: a multiple of step.
template <std::size_t n>
Box<n> residue(const Box<n>& b, std::int64_t by, std::int64_t r) {
  Box<n> d = b;
  const std::size_t last = n - 1;
  d.step = 1;
  if (((r - b.lo[last]) % b.step + b.step) % b.step != 0)
    d.hi[last] = d.lo[last];  // none
  else {
    d.lo[last] = floor_divide(b.lo[last] - r + by - 1, by);
    d.hi[last] = floor_divide(b.hi[last] - 1 - r, by) + 1;
  }
  return d;
}

/// Whether the boxes together hold `part`.
template <std::size_t n>
bool covered(const std::vector<Box<n>>& boxes, const Box<n>& part) {
  constexpr std::int64_t most = 64;  // residues; beyond, strided boxes count as dense
  std::int64_t by = part.step;
  for (const Box<n>& b : boxes) by = std::min(most + 1, std::lcm(by, b.step));
  if (by == 1) return covered_dense(boxes, 0, part);
  std::vector<Box<n>> dense(boxes.size());
  if (by > most) {
    std::transform(boxes.begin(), boxes.end(), dense.begin(), [](Box<n> b) { return b.step = 1, b; });
    Box<n> whole = part;
    whole.step = 1;
    whole.hi[n - 1] = std::min(whole.hi[n - 1], whole.lo[n - 1] + 1);  // its first element: no false alarm
    return covered_dense(dense, 0, whole);
  }
  for (std::int64_t r = 0; r < by; ++r) {
    const Box<n> want = residue(part, by, r);
    if (want.empty()) continue;
    std::transform(boxes.begin(), boxes.end(), dense.begin(),
                   [&](const Box<n>& b) { return residue(b, by, r); });
    if (!covered_dense(dense, 0, want)) return false;
  }
  return true;
}

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
