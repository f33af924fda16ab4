// flash_attention as a tile program: dst = softmax(scale q k^T + bias) v, the scores never leave the chip.
//
// Public call: neuron_kernels/flash_attention.hpp.
// Rows of the score tile are queries; the running maximum is the exact one.
#pragma once

#include <limits>

#include "neuron_kernels/kernels/steps.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

template <class T>
struct AttentionArgs {
  using Hbm = typename T::Hbm;
  Hbm q{};     // [batch, heads, q_len, d]
  Hbm k{};     // [batch, kv_heads, kv_len, d]
  Hbm v{};     // [batch, kv_heads, kv_len, dv]
  Hbm dst{};   // [batch, heads, q_len, dv]; with splits of the keys [splits * batch, heads, q_len, dv] f32
  Hbm lse{};   // [batch, heads, q_len, 1] f32, likewise; maybe not given
  Hbm bias{};  // [batch, heads, q_len, kv_len]; maybe not given
  float scale = 1.f;
  bool causal = false;
};

struct AttentionShape {
  std::int64_t batch, heads, kv_heads, q_len, kv_len, d, dv;
};

struct AttentionBlocking {
  int q = 128, kv = 512;      // queries and keys per score tile
  int pv = 128;               // keys per matmul with v; divides kv
  int masked = 128;           // keys per score tile where the causal mask cuts; divides pv
  int program_q = 1024;       // queries per program
  int program_kv = no_limit;  // keys per program, a multiple of kv;
                              // more than one split merges partial results

  /// Errors: ShapeError naming the field.
  void check(const Limits& l) const {
    check_block("flash_attention", "q", q, std::min(l.gemm_stationary_fmax, l.partitions), l);
    check_block("flash_attention", "kv", kv, std::min(l.gemm_moving_fmax, l.psum_bank_bytes / 4), l);
    check_block("flash_attention", "pv", pv, std::min(l.partitions, kv), l);
    check_block("flash_attention", "program_q", program_q, no_limit, l);
    check_block("flash_attention", "program_kv", program_kv, no_limit, l);
    check_block("flash_attention", "masked", masked, pv, l);
    if (pv % masked != 0 || kv % pv != 0 || (program_kv < no_limit && program_kv % kv != 0)) {
      shape_error("flash_attention", "blocking",
                  text("masked ", masked, ", pv ", pv, ", kv ", kv, ", program_kv ", program_kv,
                       "; each must divide the next"));
    }
  }

  int splits(const AttentionShape& s) const {
    return static_cast<int>(std::max<std::int64_t>(1, ceil_div(s.kv_len, program_kv)));
  }

  static AttentionBlocking default_for(const Limits& l, const AttentionShape& s) {
    if (!l.is_host()) return {.q = l.partitions, .kv = 512, .pv = l.partitions, .masked = l.partitions};
    // Few queries: memory-bound, keys are read as they lie;
    // long caches are split so that threads share the reading.
    if (s.q_len <= few_queries) {
      const bool split = s.kv_len > 2 * decode_split;
      return {.q = few_queries,
              .kv = 256,
              .pv = 256,
              .masked = 64,
              .program_q = few_queries,
              .program_kv = split ? decode_split : no_limit};
    }
    // Many: the score tile [q, kv] and one tile of k and v stay in L2. Each program copies k and v, so the
    // more queries the better (252 -> 1008: 10 % at q_len 2048), but at least eight programs, so that threads
    // have enough to share. Narrow tiles along the mask:
    // at 64 keys 9 % of the work at q_len 2048 is behind the mask, at 256 it is 19 %.
    constexpr std::int64_t least_programs = 8, least_queries = 252, most_queries = 1008;
    const std::int64_t parts = ceil_div(least_programs, std::max<std::int64_t>(1, s.batch * s.kv_heads));
    const std::int64_t queries = std::clamp(ceil_div(s.q_len, parts), least_queries, most_queries);
    return {.q = 84, .kv = 256, .pv = 256, .masked = 64, .program_q = even_step(s.q_len, queries, 84)};
  }
  static constexpr int few_queries = 16, decode_split = 512;
};

/// dst = softmax(scale q k^T + bias) v for all batches, heads and splits of the keys; causal drops key
/// j > query i + kv_len - q_len; a row that sees nothing gives 0.
/// One program: the queries of one head group against one split of the keys.
/// shapes: as in AttentionArgs; lse = ln sum exp of the scores that the row sees, -inf if none
/// needs: heads a multiple of kv_heads; q, k, v of one dtype; blocking.check()
/// cost: 2 q_len kv_len (d + dv) FLOPs per head; reads k, v once per program_q queries
/// source: Dao 2023 (arXiv 2307.08691), algorithm 1
template <Target T>
void attention_kernel(T& nc, const AttentionArgs<T>& a, const AttentionBlocking& blocking) {
  using std::max;
  using std::min;
  const std::int64_t q_len = a.q.dim(2), kv_len = a.k.dim(2);
  const int d = static_cast<int>(a.q.dim(3)), dv = static_cast<int>(a.v.dim(3));
  const int batch = static_cast<int>(a.q.dim(0)), group = static_cast<int>(a.q.dim(1) / a.k.dim(1));
  const int offset = static_cast<int>(kv_len - q_len);
  const DType dtype = a.q.dtype();
  // Scores are scaled inside exp,
  // unless a bias has to be added to them first or a scale <= 0 turns the maximum.
  const bool scale_first = a.bias || !(a.scale > 0.f);
  const float scale = scale_first ? 1.f : a.scale;
  // The running maximum starts so low that no score is below it, and so that scale * (score - maximum) cannot
  // overflow to NaN for a score that was masked out.
  const float lowest_max = scale_first ? std::numeric_limits<float>::lowest() : -1e30f;
  const float masked_out =
      scale_first ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::lowest();

  for (auto b : nc.range(nc.index(batch))) {
    for (auto kv_head : nc.range(nc.index(static_cast<int>(a.k.dim(1))))) {
      for (auto keys : nc.tiles(kv_len, blocking.program_kv)) {
        for (auto queries : nc.programs(q_len, blocking.program_q)) {
          const int full = keys.size / blocking.kv, rest = keys.size % blocking.kv,
                    per_step = blocking.kv / blocking.pv;
          // Keys from the start of this split that the query q (an Index) sees: less than 1 if none.
          const auto sees = [&](const auto& q) { return q + (offset + 1) - keys.begin; };
          const auto blocks_seen = [&](const auto& q) {  // of `full`, those that hold a key that q sees
            return min(max(sees(q) + (blocking.kv - 1), nc.index(0)) / blocking.kv, nc.index(full));
          };
          const auto last_query = [&](const auto& begin, int n) { return begin + (n - 1); };
          const auto end_full =
              a.causal ? blocks_seen(last_query(queries.begin, queries.size)) : nc.index(full);

          const LoadOptions reads{.reads = queries.size * group};
          auto kT = nc.input_array("kT", full + 1, d, min(blocking.kv, keys.size), dtype);
          auto v = nc.input_array("v", (full + 1) * per_step, min(blocking.pv, keys.size), dv, dtype);
          const auto load_keys = [&](const auto& j, int size) {
            const auto begin = keys.begin + j * blocking.kv;
            nc.load_transposed(kT, j, a.k.at(b).at(kv_head).rows(begin, size), reads);  // K^T [d, kv]
            for (auto c : nc.tiles(size, blocking.pv)) {
              // V [pv, dv]
              nc.load(v, j * per_step + c.index, a.v.at(b).at(kv_head).rows(begin + c.begin, c.size), reads);
            }
          };
          for (auto j : nc.range(nc.index(0), end_full)) load_keys(j, blocking.kv);
          if (rest > 0) load_keys(nc.index(full), rest);

          for (auto g : nc.range(nc.index(group))) {
            const auto head = kv_head * group + g;
            for (auto i : nc.tiles(queries.size, blocking.q)) {
              const auto q_begin = queries.begin + i.begin;
              const auto qT = nc.load_transposed("qT", a.q.at(b).at(head).rows(q_begin, i.size));  // [d, q]
              auto acc = nc.sbuf("acc", i.size, dv, DType::f32);  // sum of P V so far
              // Row max, row sum.
              auto m = nc.sbuf("m", i.size, 1, DType::f32), l = nc.sbuf("l", i.size, 1, DType::f32);
              nc.fill(acc, 0.f);
              nc.fill(m, lowest_max);
              nc.fill(l, 0.f);

              // Keys begin .. begin + size of tile j.
              const auto step = [&](const auto& j, const auto& begin, int size, bool masked) {
                const auto k_begin = keys.begin + j * blocking.kv + begin;
                auto s = nc.psum("s", i.size, size);
                nc.matmul(s, qT, kT[j].free(begin, size));  // S = Q K^T
                if (a.bias) {
                  const auto bias =
                      nc.load("bias", a.bias.at(b).at(head).rows(q_begin, i.size).cols(k_begin, size));
                  nc.scalar_tensor_tensor(s, s, Alu::multiply, a.scale, Alu::add, bias);  // scale S + bias
                } else if (scale_first) {
                  nc.tensor_scalar(s, s, Alu::multiply, a.scale);
                }
                if (masked) s = nc.causal_mask(s, q_begin + offset, k_begin, masked_out);
                auto m_new = nc.sbuf("m_new", i.size, 1, DType::f32),
                     shift = nc.sbuf("shift", i.size, 1, DType::f32);
                auto alpha = nc.sbuf("alpha", i.size, 1, DType::f32),
                     p_sum = nc.sbuf("p_sum", i.size, 1, DType::f32);
                nc.reduce(m_new, Alu::max, s);
                nc.tensor_tensor(m_new, m_new, Alu::max, m);  // m' = max(m, rowmax S)
                nc.tensor_scalar(shift, m_new, Alu::multiply, -scale);
                nc.activate(alpha, Act::exp, m, {.scale = scale, .bias = shift});  // e^(scale (m - m'))
                auto p = nc.sbuf("p", i.size, size, dtype);
                // P = e^(scale (S - m')), l = alpha l + rowsum P
                nc.activate(p, Act::exp, s, {.scale = scale, .bias = shift, .row_sum = p_sum});
                nc.scalar_tensor_tensor(l, l, Alu::multiply, alpha, Alu::add, p_sum);
                auto pv = nc.psum("pv", i.size, dv);
                for (auto c : nc.tiles(size, blocking.pv)) {
                  const auto pT = nc.transposed(p.free(c.begin, c.size));  // [pv, q]
                  const auto at = begin + c.begin;
                  nc.matmul(pv, pT, v[j * per_step + at / blocking.pv].partitions(at % blocking.pv, c.size),
                            {.accumulate = c.index > 0});
                }
                // acc = alpha acc + P V
                nc.scalar_tensor_tensor(acc, acc, Alu::multiply, alpha, Alu::add, pv);
                nc.copy(m, m_new);
              };
              // Of the n keys of tile j, in steps of blocking.masked,
              // those up to the last that a query of i sees.
              const auto masked_steps = [&](const auto& j, int n) {
                const auto seen = max(sees(last_query(q_begin, i.size)) - j * blocking.kv, nc.index(0));
                const int whole = n / blocking.masked, end = n % blocking.masked;
                for (auto c : nc.range(nc.index(0), min((seen + (blocking.masked - 1)) / blocking.masked,
                                                        nc.index(whole)))) {
                  step(j, c * blocking.masked, blocking.masked, true);
                }
                if (end == 0) return;
                for (auto c : nc.range(nc.index(whole),
                                       nc.index(whole) + min(max(seen - whole * blocking.masked, nc.index(0)),
                                                             nc.index(1)))) {
                  step(j, c * blocking.masked, end, true);
                }
              };

              const auto zero = nc.index(0);
              if (a.causal) {
                const auto end = blocks_seen(last_query(q_begin, i.size));
                const auto unmasked = min(max(sees(q_begin), zero) / blocking.kv, end);
                for (auto j : nc.range(zero, unmasked)) step(j, zero, blocking.kv, false);
                for (auto j : nc.range(unmasked, end)) masked_steps(j, blocking.kv);
                if (rest > 0) masked_steps(nc.index(full), rest);
              } else {
                for (auto j : nc.range(nc.index(full))) step(j, zero, blocking.kv, false);
                if (rest > 0) step(nc.index(full), zero, rest, false);
              }

              const auto row = keys.index * batch + b;
              if (a.lse) {
                auto lse = nc.sbuf("lse", i.size, 1, DType::f32);
                nc.activate(lse, Act::log, l);
                nc.scalar_tensor_tensor(lse, m, Alu::multiply, scale, Alu::add, lse);  // scale m + ln l
                nc.store(a.lse.at(row).at(head).rows(q_begin, i.size), lse);
              }
              // l >= 1 but for a row that sees nothing: acc = 0, so 0 / l = 0.
              nc.tensor_scalar(l, l, Alu::max, 1e-30f);
              nc.reciprocal(l, l);
              const auto dst = a.dst.at(row).at(head).rows(q_begin, i.size);
              const auto o = nc.staged("o", dst);
              nc.tensor_scalar(o, acc, Alu::multiply, l);
              nc.store(dst, o);
            }
          }
        }
      }
    }
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
