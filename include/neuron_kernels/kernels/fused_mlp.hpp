// fused_mlp as a tile program: dst = (act(x gate^T) * (x up^T)) down^T, the hidden activation kept on chip.
//
// Public call: neuron_kernels/fused_mlp.hpp. Weights are the stationary operand and tokens run along the free
// dimension, so h^T comes out as the next matmul wants it: nothing but x and dst is ever transposed.
#pragma once

#include "neuron_kernels/kernels/steps.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

template <class T>
struct MlpArgs {
  using Hbm = typename T::Hbm;
  Hbm x{};                                  // [tokens, hidden]
  Hbm dst{};                                // [tokens, hidden_dst]; used when there is one split of inner
  Hbm partial{};                            // [splits, tokens, hidden_dst] f32; used when there are more
  Hbm gate{}, up{};                         // [inner, hidden]; gate not given: plain
  Hbm down{};                               // [hidden_dst, inner]
  Hbm gate_bias{}, up_bias{}, down_bias{};  // [inner, 1], [inner, 1], [hidden_dst, 1]; maybe not given
  Act activation = Act::silu;
};

struct MlpShape {
  std::int64_t tokens, hidden, inner, hidden_dst;
};

struct MlpBlocking {
  int tokens = 512;              // free size of every op, and tokens per program
  int hidden = 128;              // of hidden (contraction) and of hidden_dst (rows) per matmul
  int inner = 128;               // of inner per matmul
  int program_inner = no_limit;  // of inner per program; more than one split sums up partial results

  /// Errors: ShapeError naming the field.
  void check(const Limits& l) const {
    check_block("fused_mlp", "tokens", tokens, std::min(l.gemm_moving_fmax, l.psum_bank_bytes / 4), l);
    check_block("fused_mlp", "hidden", hidden, l.partitions, l);
    check_block("fused_mlp", "inner", inner, l.partitions, l);
    check_block("fused_mlp", "program_inner", program_inner, no_limit, l);
  }

  /// How many programs share inner; 0 if there is none of it.
  int splits(const MlpShape& s) const { return static_cast<int>(ceil_div(s.inner, program_inner)); }

  static MlpBlocking default_for(const Limits& l, const MlpShape& s) {
    if (!l.is_host()) return {.tokens = 512, .hidden = l.partitions, .inner = l.partitions};
    // Few tokens: memory-bound, weights are read as they lie;
    // inner is split so that threads share the reading.
    if (s.tokens <= few_tokens) {
      return {.tokens = few_tokens,
              .hidden = no_limit,
              .inner = even_step(s.inner, 256, 16),
              .program_inner = even_step(s.inner, 256, 16)};
    }
    // Many: h^T [inner split, tokens] and x^T stay in L2, the panel of a matmul [k, 32] in L1. Where there
    // are few blocks of tokens, inner is split so that there are at least four programs for threads to share.
    const int tokens = even_step(s.tokens, 160, 32);
    const std::int64_t blocks = ceil_div(s.tokens, tokens);
    const std::int64_t splits = std::min<std::int64_t>(blocks >= 4   ? 1
                                                       : blocks >= 2 ? 2
                                                                     : 4,
                                                       std::max<std::int64_t>(1, s.inner / 252));
    return {.tokens = tokens,
            .hidden = even_step(std::max(s.hidden, s.hidden_dst), 288, 8),
            .inner = even_step(s.inner, 252, 42),
            .program_inner = even_step(s.inner, std::max<std::int64_t>(1, ceil_div(s.inner, splits)), 42)};
  }
  static constexpr int few_tokens = 8;
  static constexpr int sum_rows = 32;  // tokens per program of mlp_sum_kernel
};

/// dst, or with more than one split partial[split], = (act(x gate^T + gate_bias) * (x up^T + up_bias)) down^T
/// (+ down_bias when there is one split); plain: act(x up^T + up_bias) down^T.
/// shapes: as in MlpArgs
/// needs: x and weights of one dtype
/// cost: 2 tokens inner (2 hidden + hidden_dst) FLOPs gated; reads the weights once per block of tokens
/// source: Shazeer 2020 (arXiv 2002.05202) for the gated forms
template <Target T>
void mlp_kernel(T& nc, const MlpArgs<T>& a, const MlpBlocking& blocking) {
  const std::int64_t tokens_len = a.x.dim(0), hidden = a.x.dim(1), inner_len = a.up.dim(0),
                     hidden_dst = a.down.dim(0);
  const DType dtype = a.x.dtype();
  const auto block = [&](std::int64_t n, int step) {
    return static_cast<int>(std::clamp<std::int64_t>(n, 1, step));
  };
  const bool one_split = inner_len <= blocking.program_inner;

  for (auto t : nc.tiles(tokens_len, blocking.tokens)) {
    for (auto split : nc.programs(inner_len, blocking.program_inner)) {
      auto xT = nc.input_array("xT", std::max<std::int64_t>(1, ceil_div(hidden, blocking.hidden)),
                               block(hidden, blocking.hidden), t.size, dtype);
      for (auto k : nc.tiles(hidden, blocking.hidden)) {
        nc.load_transposed(xT, k.index, a.x.rows(t.begin, t.size).cols(k.begin, k.size),
                           {.reads = split.size});  // [hidden, tokens]
      }

      // weight x^T for rows begin .. begin + size of a weight [inner, hidden], in PSUM [inner, tokens].
      const auto project = [&](const char* name, const typename T::Hbm& weight, const auto& begin, int size) {
        auto product = nc.psum(name, size, t.size);
        if (hidden == 0) nc.fill(product, 0.f);
        for (auto k : nc.tiles(hidden, blocking.hidden)) {
          // [hidden, inner]
          const auto wT = nc.load_transposed("wT", weight.rows(begin, size).cols(k.begin, k.size));
          nc.matmul(product, wT, xT[k.index], {.accumulate = k.index > 0});
        }
        return product;
      };
      const auto bias_of = [&](const char* name, const typename T::Hbm& bias, const auto& begin, int size) {
        auto column = nc.sbuf(name, size, 1, DType::f32);
        if (bias) {
          nc.copy(column, nc.load("bias_in", bias.rows(begin, size)));
        } else {
          nc.fill(column, 0.f);
        }
        return column;
      };

      auto hT = nc.sbuf_array("hT", ceil_div(split.size, blocking.inner), block(split.size, blocking.inner),
                              t.size, dtype);
      for (auto i : nc.tiles(split.size, blocking.inner)) {
        const auto begin = split.begin + i.begin;
        const auto h = hT[i.index].partitions(nc.index(0), i.size);  // [inner, tokens]
        const auto up = project("up", a.up, begin, i.size);
        const auto up_bias = bias_of("up_bias", a.up_bias, begin, i.size);
        if (a.gate) {
          const auto gate = project("gate", a.gate, begin, i.size);
          auto activated = nc.sbuf("activated", i.size, t.size, DType::f32);
          nc.activate(activated, a.activation, gate,
                      {.bias = bias_of("gate_bias", a.gate_bias, begin, i.size)});
          // (up + bias) act(gate)
          nc.scalar_tensor_tensor(h, up, Alu::add, up_bias, Alu::multiply, activated);
        } else {
          nc.activate(h, a.activation, up, {.bias = up_bias});
        }
      }

      for (auto o : nc.tiles(hidden_dst, blocking.hidden)) {
        auto yT = nc.psum("yT", o.size, t.size);  // [hidden_dst, tokens]
        for (auto i : nc.tiles(split.size, blocking.inner)) {
          const auto dT =
              nc.load_transposed("dT", a.down.rows(o.begin, o.size).cols(split.begin + i.begin, i.size));
          nc.matmul(yT, dT, hT[i.index].partitions(nc.index(0), i.size), {.accumulate = i.index > 0});
        }
        auto y = nc.sbuf("y", o.size, t.size, one_split ? a.dst.dtype() : DType::f32);
        if (one_split) {
          nc.tensor_scalar(y, yT, Alu::add, bias_of("down_bias", a.down_bias, o.begin, o.size));
          nc.store_transposed(a.dst.rows(t.begin, t.size).cols(o.begin, o.size), y);
        } else {
          nc.copy(y, yT);
          nc.store_transposed(a.partial.at(split.index).rows(t.begin, t.size).cols(o.begin, o.size), y);
        }
      }
    }
  }
}

template <class T>
struct MlpSumArgs {
  typename T::Hbm partial{};    // [splits, tokens, hidden_dst] f32
  typename T::Hbm dst{};        // [tokens, hidden_dst]
  typename T::Hbm down_bias{};  // [1, hidden_dst]; maybe not given
};

/// dst = sum of partial over the splits, in rising order, + down_bias.
template <Target T>
void mlp_sum_kernel(T& nc, const MlpSumArgs<T>& a) {
  const int hidden_dst = static_cast<int>(a.dst.dim(1));
  for (auto rows : nc.programs(a.dst.dim(0), MlpBlocking::sum_rows)) {
    auto y = nc.sbuf("y", rows.size, hidden_dst, DType::f32);
    if (a.down_bias) {
      nc.copy(y, nc.load_broadcast("down_bias", a.down_bias, rows.size));
    } else {
      nc.fill(y, 0.f);
    }
    for (auto s : nc.range(nc.index(static_cast<int>(a.partial.dim(0))))) {
      nc.tensor_tensor(y, y, Alu::add, nc.load("partial", a.partial.at(s).rows(rows.begin, rows.size)));
    }
    nc.store(a.dst.rows(rows.begin, rows.size), y);
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
