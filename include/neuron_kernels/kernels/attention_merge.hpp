// attention_merge as a tile program: one result from those of several splits of the keys.
//
// The second half of flash_attention where a long key cache is split over programs.
#pragma once

#include <limits>

#include "neuron_kernels/kernels/flash_attention.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

template <class T>
struct AttentionMergeArgs {
  typename T::Hbm partial{};      // [splits * batch, heads, q_len, dv] f32
  typename T::Hbm partial_lse{};  // [splits * batch, heads, q_len, 1] f32
  typename T::Hbm dst{};          // [batch, heads, q_len, dv]
  typename T::Hbm lse{};          // [batch, heads, q_len, 1] f32; maybe not given
};

/// Merges the results of splits of the keys: dst = sum_s e^(lse_s - lse) partial_s, lse = ln sum_s e^(lse_s).
/// source: Dao et al. 2023, "Flash-Decoding for long-context inference" (pytorch.org/blog/flash-decoding)
template <Target T>
void attention_merge_kernel(T& nc, const AttentionMergeArgs<T>& a, const AttentionBlocking& blocking) {
  const int batch = static_cast<int>(a.dst.dim(0)), dv = static_cast<int>(a.dst.dim(3));
  const int splits = static_cast<int>(a.partial.dim(0)) / std::max(batch, 1);
  for (auto b : nc.range(nc.index(batch))) {
    for (auto head : nc.range(nc.index(static_cast<int>(a.dst.dim(1))))) {
      for (auto q : nc.programs(a.dst.dim(2), blocking.q)) {
        const auto lse_of = [&](const auto& s) {
          return nc.load("lse_s", a.partial_lse.at(s * batch + b).at(head).rows(q.begin, q.size));
        };
        auto m = nc.sbuf("m", q.size, 1, DType::f32), l = nc.sbuf("l", q.size, 1, DType::f32);
        auto acc = nc.sbuf("acc", q.size, dv, DType::f32);
        // So that e^(-inf - m) is 0 where all splits are empty.
        nc.fill(m, std::numeric_limits<float>::lowest());
        nc.fill(l, 0.f);
        nc.fill(acc, 0.f);
        for (auto s : nc.range(nc.index(splits))) nc.tensor_tensor(m, m, Alu::max, lse_of(s));
        for (auto s : nc.range(nc.index(splits))) {
          auto weight = nc.sbuf("weight", q.size, 1, DType::f32);
          nc.tensor_tensor(weight, lse_of(s), Alu::subtract, m);
          nc.activate(weight, Act::exp, weight);
          nc.tensor_tensor(l, l, Alu::add, weight);
          const auto partial = nc.load("partial", a.partial.at(s * batch + b).at(head).rows(q.begin, q.size));
          nc.scalar_tensor_tensor(acc, partial, Alu::multiply, weight, Alu::add, acc);
        }
        if (a.lse) {
          auto lse = nc.sbuf("lse", q.size, 1, DType::f32);
          nc.activate(lse, Act::log, l);
          nc.tensor_tensor(lse, lse, Alu::add, m);
          nc.store(a.lse.at(b).at(head).rows(q.begin, q.size), lse);
        }
        nc.tensor_scalar(l, l, Alu::max, 1e-30f);
        nc.reciprocal(l, l);
        nc.tensor_scalar(acc, acc, Alu::multiply, l);
        nc.store(a.dst.at(b).at(head).rows(q.begin, q.size), acc);
      }
    }
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
