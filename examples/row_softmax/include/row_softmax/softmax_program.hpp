// softmax at a shape, for the command `kernels`.
#pragma once

#include "neuron_kernels/programs/request.hpp"
#include "row_softmax/softmax_kernel.hpp"

namespace row_softmax {

inline void softmax_program(nk::Recorder& nc, nk::Request& request) {
  const auto rows = request.size("rows", 4096, "of src"), n = request.size("n", 4096, "columns of src");
  const auto src = nc.hbm("src", request.dtype(), {rows, n}), dst = nc.hbm("dst", request.dtype(), {rows, n});
  softmax_kernel(nc, dst, src);
  request.reference(
      "def reference(src):\n"
      "    p = np.exp(src.astype(np.float64) - src.max(axis=1, keepdims=True))\n"
      "    return p / p.sum(axis=1, keepdims=True)\n");
}

}  // namespace row_softmax
