// check_dma: transfers that waste bandwidth; tensors read and written in the same places, or not everywhere, or never.
#pragma once

#include <algorithm>
#include <vector>

#include "neuron_kernels/record/check_boxes.hpp"
#include "neuron_kernels/record/check_context.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class DmaCheck {
 public:
  explicit DmaCheck(Context& c)
      : c_(c), loads_(c.program.tensors.size()), stores_(c.program.tensors.size()) {}

  void run() {
    for (int i = 0; i < static_cast<int>(c_.program.ops.size()); ++i) {
      const Op& op = nth(c_.program.ops, i);
      if (!is_transfer(op.code)) continue;
      const bool stores = op.code == OpCode::store || op.code == OpCode::store_transposed;
      nth(stores ? stores_ : loads_, op.hbm.tensor).push_back({i, box(op.hbm)});
      if (!c_.limits.is_host() && !c_.in_rest(i)) row(i, stores);
    }
    for (int t = 0; t < static_cast<int>(c_.program.tensors.size()); ++t) {
      overlap(t);
      unwritten(t);
    }
  }

 private:
  using Part = Box<4>;
  struct Use {
    int op;
    Part part;  // over all iterations
  };

  Part box(const HbmSlice& h) {
    Part b;
    b.hi.fill(1);
    const int rank = nth(c_.program.tensors, h.tensor).rank;
    for (int d = 0; d < rank; ++d) {
      const Bounds at = c_.values.of(nth(h.begin, d));
      const int matrix = d - (rank - 2);
      nth(b.lo, d) = at.lo;
      nth(b.hi, d) = at.hi + (matrix < 0 ? 1 : nth(h.size, matrix));
    }
    return b;
  }

  /// Bytes of a partition that lie together in device memory.
  void row(int i, bool stores) {
    const Op& op = nth(c_.program.ops, i);
    const Tensor& t = nth(c_.program.tensors, op.hbm.tensor);
    const bool turned = !stores && op.hbm.transposed != (op.code == OpCode::load_transposed ||
                                                         op.code == OpCode::load_transposed_element);
    if (turned && size_of(t.dtype) == 2)
      return;  // dma_transpose; 4-byte types are loaded in rows, turned on Tensor
    const bool columns = stores && op.hbm.transposed && op.code == OpCode::store;
    const std::int64_t bytes = (columns ? 1 : op.hbm.size[1]) * size_of(t.dtype);
    if (bytes >= good_row_bytes) return;
    const auto share = static_cast<double>(std::max<std::int64_t>(1, 100 * bytes / full_row_bytes));
    c_.report(
        bytes < tiny_row_bytes ? Rule::dma_tiny_row : Rule::dma_row, i, t.name,
        text("rows of ", bytes, " bytes, about ", share, " % of the DMA bandwidth; 2048 or more reach 80 %"),
        "transfer wider parts at once");
  }

  void overlap(int t) {
    for (const Use& store : nth(stores_, t)) {
      for (const Use& load : nth(loads_, t)) {
        if (!store.part.meets(load.part)) continue;
        const Op &s = nth(c_.program.ops, store.op), &l = nth(c_.program.ops, load.op);
        if (load.op < store.op && s.hbm.begin == l.hbm.begin && s.hbm.size == l.hbm.size)
          continue;  // updated in place
        c_.report(Rule::hbm_overlap, store.op, nth(c_.program.tensors, t).name,
                  text("stored, and loaded at ", c_.place(l.where), "in parts that may overlap"),
                  "keep the data in a tile, or use another tensor");
        return;
      }
    }
  }

  void unwritten(int t) {
    const Tensor& tensor = nth(c_.program.tensors, t);
    const bool used = !nth(loads_, t).empty() || !nth(stores_, t).empty();
    Part whole;
    whole.hi.fill(1);
    for (int d = 0; d < tensor.rank; ++d) nth(whole.hi, d) = nth(tensor.shape, d);
    if (!used) {
      if (!whole.empty())
        c_.report(Rule::unused_tensor, none, {}, text("argument \"", tensor.name, "\": "),
                  "neither read nor written", "store the result there, or drop the argument");
      return;
    }
    if (!nth(loads_, t).empty()) return;
    std::vector<Part> parts;
    for (const Use& s : nth(stores_, t)) parts.push_back(s.part);
    if (covered(parts, whole)) return;
    c_.report(Rule::hbm_unwritten, nth(stores_, t).front().op, tensor.name,
              "parts of the tensor are never stored", "cover it by tiles(), which also yields the rest");
  }

  // SDK nki/deep-dives/nki-dma-bandwidth-guide.rst: 2 KiB recommended; its chart fits bytes / 2440 of the full rate.
  static constexpr std::int64_t good_row_bytes = 2048, tiny_row_bytes = 512, full_row_bytes = 2440;

  Context& c_;
  std::vector<std::vector<Use>> loads_, stores_;  // per tensor
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
