// What attention with a shared shift is called with, how it is cut into blocks, and which of its results stand.
//
// The tile program: kernels/flash_attention_shared_shift.hpp.
#pragma once

#include "neuron_kernels/kernels/flash_attention.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

template <class T>
struct SharedShiftArgs {
  using Hbm = typename T::Hbm;
  Hbm q{};     // [batch, heads, q_len, d]
  Hbm k{};     // [batch, kv_heads, kv_len, d]
  Hbm v{};     // [batch, kv_heads, kv_len, dv]
  Hbm dst{};   // [batch, heads, q_len, dv]
  Hbm sums{};  // [batch, heads, q_len, 1] f32: sum of exp(scale * score - shift) of each row, to be judged by
               // shared_shift_holds
  Hbm lse{};   // [batch, heads, q_len, 1] f32; maybe not given
  float scale = 1.f;
  bool causal = false;
};

/// Whether a row's result stands. Its largest term is at least sum / kv_len, so from 2^-60 on everything that
/// matters to it was added in normal numbers; up to 2^60 nothing came near to overflow.
constexpr bool shared_shift_holds(float sum) { return sum >= 0x1p-60f && sum <= 0x1p60f; }

struct SharedShiftBlocking {
  int q = 512;     // queries per score tile, which share a shift
  int kv = 128;    // keys per score tile
  int group = 8;   // score tiles whose probabilities are added up before the tensor engine sums them; even
  int rows = 128;  // queries per transposed part of the result
  int program_q = 1 << 16;  // queries per program, a multiple of q

  /// Errors: ShapeError naming the field.
  void check(const Limits& l) const {
    check_block("shared_shift_attention", "q", q, std::min(l.gemm_moving_fmax, l.psum_bank_bytes / 4), l);
    check_block("shared_shift_attention", "kv", kv, std::min(l.gemm_stationary_fmax, l.partitions), l);
    check_block("shared_shift_attention", "rows", rows, std::min(l.gemm_stationary_fmax, l.partitions), l);
    check_block("shared_shift_attention", "group", group, no_limit, l);
    check_block("shared_shift_attention", "program_q", program_q, no_limit, l);
    if (group % 2 != 0 || program_q % q != 0) {
      shape_error("shared_shift_attention", "blocking",
                  text("group ", group, ", q ", q, ", program_q ", program_q,
                       "; group must be even and program_q a multiple of q"));
    }
  }

  static SharedShiftBlocking default_for(const Limits& l, const AttentionShape& s) {
    if (!l.is_host()) return {};
    // One score tile and one of k and v stay in L2; at least eight programs, for threads to share.
    const int q = 256;
    return {.q = q,
            .kv = 128,
            .group = 8,
            .rows = 128,
            .program_q = static_cast<int>(round_up(std::max<std::int64_t>(1, ceil_div(s.q_len, 8)), q))};
  }
};

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
