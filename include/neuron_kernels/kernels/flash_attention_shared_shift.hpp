// flash_attention with keys on partitions and one shift for a whole block of queries, as a tile program.
//
// Rows of the score tile are keys, so that no probability is ever transposed. All queries of a block share the
// shift in exp(scale * score - shift), a sample of their scores; what it costs is said at the kernel.
// Public call: neuron_kernels/flash_attention_shared_shift.hpp.
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
    const std::int64_t parts = ceil_div(8, std::max<std::int64_t>(1, s.batch * s.kv_heads));
    const int q = 256;
    return {.q = q,
            .kv = 128,
            .group = 8,
            .rows = 128,
            .program_q = static_cast<int>(round_up(std::max<std::int64_t>(1, ceil_div(s.q_len, parts)), q))};
  }
};

/// dst = softmax(scale q k^T) v for all batches and heads; causal drops key j > query i + kv_len - q_len.
/// Not plain safe softmax: rows whose scores lie far from their block's shift lose their small terms or
/// overflow. That shows in sums; where !shared_shift_holds(sum), the block has to be redone by attention_kernel.
/// shapes: as in SharedShiftArgs
/// needs: scale > 0; d, dv <= partitions; q, k, v of one dtype, f32 or bf16; kv_len >= 1; causal: kv_len >= q_len
/// cost: 2 q_len kv_len (d + dv) FLOPs per head, causal half of it; reads k, v once per program
/// source: the score tile with keys on partitions: AWS NKI library, core/attention; the shift as any number
/// that is near the rows' maxima: Milakov, Gimelshein 2018 (arXiv 1805.02867), section 2
template <Target T>
void shared_shift_attention_kernel(T& nc, const SharedShiftArgs<T>& a, const SharedShiftBlocking& blocking) {
  using std::max;
  using std::min;
  const std::int64_t q_len = a.q.dim(2), kv_len = a.k.dim(2);
  const int d = static_cast<int>(a.q.dim(3)), dv = static_cast<int>(a.v.dim(3));
  const int heads_per_kv = static_cast<int>(a.q.dim(1) / a.k.dim(1));
  const int offset = static_cast<int>(kv_len - q_len);
  const int tiles = static_cast<int>(kv_len / blocking.kv), rest = static_cast<int>(kv_len % blocking.kv);
  const int first_keys = tiles > 0 ? blocking.kv : rest, column_rows = max(first_keys, blocking.rows);
  const DType dtype = a.q.dtype();
  // Every block of queries then begins and ends with a pair of score tiles, and what is left of a group of them
  // is a multiple of a block's own.
  const bool aligned = a.causal && blocking.q % (2 * blocking.kv) == 0 && offset % blocking.q == 0 &&
                       q_len % blocking.q == 0 && blocking.group % (blocking.q / blocking.kv) == 0;

  auto ones = nc.sbuf("ones", blocking.kv, 1, dtype),
       row_of_ones = nc.sbuf("row_of_ones", 1, column_rows, DType::f32);
  nc.fill(ones, 1.f);
  nc.fill(row_of_ones, 1.f);
  for (auto b : nc.range(a.q.dim(0))) {
    for (auto kv_head : nc.range(a.k.dim(1))) {
      for (auto queries : nc.programs(q_len, blocking.program_q)) {
        auto kT = nc.input_array("kT", tiles + 1, d, first_keys, dtype);
        auto v = nc.input_array("v", tiles + 1, first_keys, dv, dtype);
        const auto load_keys = [&](const auto& j, int size) {
          const LoadOptions options{.reads = queries.size * heads_per_kv, .dge = Dge::none};
          nc.load_transposed(kT, j, a.k.at(b).at(kv_head).rows(j * blocking.kv, size), options);  // [d, kv]
          nc.load(v, j, a.v.at(b).at(kv_head).rows(j * blocking.kv, size), options);              // [kv, dv]
        };
        for (auto j : nc.range(tiles)) load_keys(j, blocking.kv);
        if (rest > 0) load_keys(nc.index(tiles), rest);

        for (auto g : nc.range(heads_per_kv)) {
          const auto head = kv_head * heads_per_kv + g;
          for (auto i : nc.tiles(queries.size, blocking.q)) {
            const auto q_begin = queries.begin + i.begin;
            const int columns = static_cast<int>(ceil_div(i.size, blocking.rows));
            const auto qT = nc.load_transposed("qT", a.q.at(b).at(head).rows(q_begin, i.size),
                                               {.dge = Dge::none});  // [d, q]

            // shift = the largest score of the first keys, in every partition, negated.
            auto sample = nc.psum("sample", first_keys, i.size);
            nc.matmul(sample, kT[nc.index(0)], qT);
            auto top = nc.sbuf("top", first_keys, 1, DType::f32), peak = nc.sbuf("peak", 1, 1, DType::f32);
            auto topT = nc.psum("topT", 1, first_keys), peaks = nc.psum("peaks", column_rows, 1);
            nc.reduce(top, Alu::max, sample);
            nc.transpose(topT, top);
            nc.reduce(peak, Alu::max, topT);
            nc.matmul(peaks, row_of_ones, peak);
            auto bias = nc.sbuf("bias", column_rows, 1, DType::f32);
            nc.tensor_scalar(bias, peaks, Alu::multiply, -a.scale);

            auto oT = nc.psum("oT", dv, i.size);  // sum of V^T P^T
            auto l = nc.sbuf("l", min(blocking.rows, i.size), columns,
                             DType::f32);  // sum of P, by rows of queries
            nc.fill(l, 0.f);

            // l += sums over keys of p [kv, queries].
            const auto add_sums = [&](const auto& p) {
              auto sums = nc.psum("sums", l.p(), columns);
              const auto column = [&](const auto& tile, const auto& t) {
                return tile.partitions(nc.index(0), t.size).free(t.index, 1);
              };
              for (auto t : nc.tiles(i.size, blocking.rows))
                nc.matmul(column(sums, t), p.free(t.begin, t.size), ones.partitions(nc.index(0), p.p()));
              if (i.size % blocking.rows == 0) return nc.tensor_tensor(l, l, Alu::add, sums);
              for (auto t : nc.tiles(i.size, blocking.rows))
                nc.tensor_tensor(column(l, t), column(l, t), Alu::add, column(sums, t));
            };
            const auto exponential = [&](const auto& p, const auto& s) {  // P^T = e^(scale S^T - shift)
              nc.activate(p, Act::exp, s, {.scale = a.scale, .bias = bias.partitions(nc.index(0), s.p())});
            };
            const auto mask = [&](const auto& p, const auto& tile) {  // 0 where the key comes after the query
              nc.causal_select(p, p, q_begin + offset, tile * blocking.kv, 0.f, {.keys = KeyAxis::partition});
            };
            // Score tiles 2 j and 2 j + 1, queries side by side in pairs of keys. Probabilities of `half` pairs are
            // added up together; while one group is, the next two are being made.
            const int half = blocking.group / 2, groups = 3;
            auto ps = nc.sbuf_array("p", groups, blocking.kv, blocking.group * i.size, dtype);
            const auto group_of = [&](const auto& j) { return ps[j / half % groups]; };
            const auto pair = [&](const auto& j, const auto& first_masked) {
              const auto p = group_of(j).free(j % half * (2 * i.size), 2 * i.size);
              auto s = nc.psum("s", blocking.kv, 2 * i.size);
              for (int one : {0, 1}) nc.matmul(s.every(2, nc.index(one)), kT[j * 2 + one], qT);
              exponential(p, s);
              for (auto masked : nc.range(max(j, first_masked), j + 1)) {  // once, or not at all
                for (int one : {0, 1}) mask(p.every(2, nc.index(one)), masked * 2 + one);
              }
              for (int one : {0, 1}) {
                const auto tile = j * 2 + one;
                nc.matmul(oT, v[tile], p.every(2, nc.index(one)), {.accumulate = tile > 0});  // += V^T P^T
              }
            };
            const auto add_pairs = [&](const auto& p, int pairs) {
              auto sum = nc.sbuf("sum", blocking.kv, i.size, dtype);
              nc.reduce(sum, Alu::add, p, {.blocks = pairs});
              add_sums(sum);
            };
            // Score tile j alone, of `size` keys.
            const auto single = [&](const auto& j, int size, bool masked) {
              auto s = nc.psum("s", size, i.size);
              auto p = nc.sbuf("p", size, i.size, dtype);
              nc.matmul(s, kT[j], qT);
              exponential(p, s);
              if (masked) mask(p, j);
              nc.matmul(oT, v[j], p, {.accumulate = j > 0});
              add_sums(p);
            };

            // Tiles [0, whole) are seen by every query of the block, those up to `seen` by some. Pairs are masked
            // where a block ends with one; else what the mask cuts is left to single tiles.
            const auto zero = nc.index(0), all = nc.index(tiles);
            const auto end_of = [&](const auto& keys) {
              return min((q_begin + (offset + keys)) / blocking.kv, all);
            };
            const auto whole = a.causal ? end_of(1) : all,
                       seen = a.causal ? end_of(i.size + blocking.kv - 1) : all;
            const auto paired = aligned ? seen / 2 : whole / 2;
            const int unit = aligned ? blocking.q / blocking.kv / 2 : 1;  // pairs come in multiples of it
            for (auto j : nc.range(zero, paired)) {
              pair(j, aligned ? whole / 2 : paired);
              for (auto full : nc.range(j / half, (j + 1) / half)) add_pairs(ps[full % groups], half);
            }
            for (auto u : nc.range(paired / half * half / unit, paired / unit))
              add_pairs(group_of(u * unit).free(u * unit % half * (2 * i.size), 2 * unit * i.size), unit);
            if (!aligned) {
              for (auto j : nc.range(paired * 2, whole)) single(j, blocking.kv, false);
              if (a.causal) {
                for (auto j : nc.range(whole, seen)) single(j, blocking.kv, true);
              }
              if (rest > 0) {
                const auto once =
                    a.causal ? min(max(q_begin + (i.size + offset) - tiles * blocking.kv, zero), nc.index(1))
                             : nc.index(1);
                for (auto j : nc.range(all, all + once)) single(j, rest, a.causal);
              }
            }

            auto o_bits = nc.sbuf("o_sum", dv, i.size, dtype), r = nc.sbuf("r", l.p(), columns, DType::f32);
            nc.copy(o_bits, oT);
            for (auto t : nc.tiles(i.size, blocking.rows)) {
              const auto part = [&](const typename T::Hbm& h) {
                return h.at(b).at(head).rows(q_begin + t.begin, t.size);
              };
              const auto sum = l.partitions(zero, t.size).free(t.index, 1),
                         inverse = r.partitions(zero, t.size).free(t.index, 1);
              nc.reciprocal(inverse, sum);
              auto o = nc.psum("o", t.size, dv, dtype);
              nc.transpose(o, o_bits.free(t.begin, t.size));
              const auto y = nc.staged("y", part(a.dst));
              nc.tensor_scalar(y, o, Alu::multiply, inverse);
              nc.store(part(a.dst), y, {.dge = Dge::none});
              nc.store(part(a.sums), sum, {.dge = Dge::none});
              if (!a.lse) continue;
              auto lse = nc.sbuf("lse", t.size, 1, DType::f32);  // ln l + shift
              nc.activate(lse, Act::log, sum);
              nc.tensor_tensor(lse, lse, Alu::subtract, bias.partitions(zero, t.size));
              nc.store(part(a.lse), lse, {.dge = Dge::none});
            }
          }
        }
      }
    }
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
