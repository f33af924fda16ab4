// flash_attention with keys on partitions and one shift for a whole block of queries, as a tile program.
//
// Rows of the score tile are keys, so that no probability is ever transposed. All queries of a block share the
// shift in exp(scale * score - shift), a sample of their scores; what it costs is said at the kernel.
// Public call: neuron_kernels/flash_attention_shared_shift.hpp.
#pragma once

#include "neuron_kernels/kernels/shared_shift_arguments.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

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
  const int heads_total = static_cast<int>(a.q.dim(1)), elements = 2 * tiles + (rest > 0 ? 2 : 0);
  for (auto b : nc.range(a.q.dim(0))) {
    for (auto queries : nc.programs(q_len, blocking.program_q)) {
      // Keys of two heads: while one is at work the next one's arrive. Then the rest of each.
      auto kT = nc.input_array("kT", elements, d, first_keys, dtype);
      auto v = nc.input_array("v", elements, first_keys, dv, dtype);
      const auto load_keys = [&](const auto& kv_head, const auto& to, const auto& j, int size) {
        const LoadOptions options{.reads = queries.size * heads_per_kv, .dge = Dge::none};
        nc.load_transposed(kT, to, a.k.at(b).at(kv_head).rows(j * blocking.kv, size), options);  // [d, kv]
        nc.load(v, to, a.v.at(b).at(kv_head).rows(j * blocking.kv, size), options);              // [kv, dv]
      };
      // Blocks of `size` queries from row `first` on, `count` of each head, one after the other.
      const auto blocks = [&](int count, int size, int first) {
        const int per_keys = count * heads_per_kv;
        for (auto u : nc.range(heads_total * count)) {
          const auto head = u / count;
          const auto of_two = u / per_keys % 2, keys = of_two * tiles, rest_at = of_two + 2 * tiles;
          const auto q_begin = queries.begin + (u % count * size + first);
          for (auto kv_head :
               nc.range((u + (per_keys - 1)) / per_keys, u / per_keys + 1)) {  // with the first of its blocks
            for (auto j : nc.range(tiles)) load_keys(kv_head, keys + j, j, blocking.kv);
            if (rest > 0) load_keys(kv_head, rest_at, nc.index(tiles), rest);
          }

          const int columns = static_cast<int>(ceil_div(size, blocking.rows));
          const auto qT =
              nc.load_transposed("qT", a.q.at(b).at(head).rows(q_begin, size), {.dge = Dge::none});  // [d, q]

          // shift = the largest score of every fourth query with the first keys, in every partition, negated.
          const auto some = qT.every(4, nc.index(0));
          auto sample = nc.psum("sample", first_keys, some.f());
          nc.matmul(sample, kT[tiles > 0 ? keys : rest_at], some);
          auto top = nc.sbuf("top", first_keys, 1, DType::f32), peak = nc.sbuf("peak", 1, 1, DType::f32);
          auto topT = nc.psum("topT", 1, first_keys), peaks = nc.psum("peaks", column_rows, 1);
          nc.reduce(top, Alu::max, sample);
          nc.transpose(topT, top);
          nc.reduce(peak, Alu::max, topT);
          nc.matmul(peaks, row_of_ones, peak);
          auto bias = nc.sbuf("bias", column_rows, 1, DType::f32);
          nc.tensor_scalar(bias, peaks, Alu::multiply, -a.scale);

          auto oT = nc.psum("oT", dv, size);  // sum of V^T P^T
          auto l = nc.sbuf("l", min(blocking.rows, size), columns,
                           DType::f32);  // sum of P, by rows of queries
          nc.fill(l, 0.f);

          // l += sums over keys of p [kv, queries].
          const auto add_sums = [&](const auto& p) {
            auto sums = nc.psum("sums", l.p(), columns);
            const auto column = [&](const auto& tile, const auto& t) {
              return tile.partitions(nc.index(0), t.size).free(t.index, 1);
            };
            for (auto t : nc.tiles(size, blocking.rows))
              nc.matmul(column(sums, t), p.free(t.begin, t.size), ones.partitions(nc.index(0), p.p()));
            if (size % blocking.rows == 0) return nc.tensor_tensor(l, l, Alu::add, sums);
            for (auto t : nc.tiles(size, blocking.rows))
              nc.tensor_tensor(column(l, t), column(l, t), Alu::add, column(sums, t));
          };
          const auto exponential = [&](const auto& p, const auto& s,
                                       int tiles_beside) {  // P^T = e^(scale S^T - shift)
            nc.activate(
                p, Act::exp, s,
                {.scale = a.scale, .bias = bias.partitions(nc.index(0), s.p()), .interleave = tiles_beside});
          };
          const auto mask = [&](const auto& p, const auto& tile) {  // 0 where the key comes after the query
            nc.causal_select(p, p, q_begin + offset, tile * blocking.kv, 0.f, {.keys = KeyAxis::partition});
          };
          // Score tiles 2 j and 2 j + 1, queries side by side in pairs of keys. Probabilities of `half` pairs are
          // added up together; while one group is, the next two are being made.
          const int half = blocking.group / 2, groups = 3;
          auto ps = nc.sbuf_array("p", groups, blocking.kv, blocking.group * size, dtype);
          const auto group_of = [&](const auto& j) { return ps[j / half % groups]; };
          const auto pair = [&](const auto& j, const auto& first_masked) {
            const auto p = group_of(j).free(j % half * (2 * size), 2 * size);
            auto s = nc.psum("s", blocking.kv, 2 * size);
            for (int one : {0, 1})
              nc.matmul(s.free(nc.index(one * size), size), kT[keys + j * 2 + one], qT);  // a bank each
            exponential(p, s, 2);
            for (auto masked : nc.range(max(j, first_masked), j + 1)) {  // once, or not at all
              for (int one : {0, 1}) mask(p.every(2, nc.index(one)), masked * 2 + one);
            }
            for (int one : {0, 1}) {
              const auto tile = j * 2 + one;
              nc.matmul(oT, v[keys + tile], p.every(2, nc.index(one)),
                        {.accumulate = tile > 0});  // += V^T P^T
            }
          };
          // Score tile j alone, of n keys, which are element `at`.
          const auto single = [&](const auto& at, const auto& j, int n, bool masked) {
            auto s = nc.psum("s", n, size);
            auto p = nc.sbuf("p", n, size, dtype);
            nc.matmul(s, kT[at], qT);
            exponential(p, s, 1);
            if (masked) mask(p, j);
            nc.matmul(oT, v[at], p, {.accumulate = j > 0});
            add_sums(p);
          };

          // Tiles [0, whole) are seen by every query of the block, those up to `seen` by some. Pairs are masked
          // where a block ends with one; else what the mask cuts is left to single tiles.
          const auto zero = nc.index(0), all = nc.index(tiles);
          const auto end_of = [&](const auto& more) {
            return min((q_begin + (offset + more)) / blocking.kv, all);
          };
          const auto cut = (q_begin + offset) / blocking.kv;  // aligned: of the tiles that the mask cuts
          const auto whole = aligned ? cut : a.causal ? end_of(1) : all;
          const auto seen = aligned    ? cut + blocking.q / blocking.kv
                            : a.causal ? end_of(size + blocking.kv - 1)
                                       : all;
          const auto paired = aligned ? seen / 2 : whole / 2;
          const int unit = aligned ? blocking.q / blocking.kv / 2 : 1;  // pairs come in multiples of it
          for (auto j : nc.range(zero, paired)) {
            pair(j, aligned ? whole / 2 : paired);
            auto sum = nc.sbuf("sum", blocking.kv, size, dtype);
            const auto full = [&] {
              return nc.range(j / half, (j + 1) / half);
            };  // with the last pair of a group
            for (auto f : full()) nc.reduce(sum, Alu::add, ps[f % groups], {.blocks = half});
            for ([[maybe_unused]] auto f : full()) add_sums(sum);
          }
          // What is left of a group. Sums of their own, so that they need not wait for each other.
          auto rests = nc.sbuf_array("rests", half / unit, blocking.kv, size, dtype);
          const auto left = [&] { return nc.range(paired / half * half / unit, paired / unit); };
          for (auto n : left()) {
            const auto p = group_of(n * unit).free(n * unit % half * (2 * size), 2 * unit * size);
            nc.reduce(rests[n % (half / unit)], Alu::add, p, {.blocks = unit});
          }
          for (auto n : left()) add_sums(rests[n % (half / unit)]);
          if (!aligned) {
            for (auto j : nc.range(paired * 2, whole)) single(keys + j, j, blocking.kv, false);
            if (a.causal) {
              for (auto j : nc.range(whole, seen)) single(keys + j, j, blocking.kv, true);
            }
            if (rest > 0) {
              const auto once =
                  a.causal ? min(max(q_begin + (size + offset) - tiles * blocking.kv, zero), nc.index(1))
                           : nc.index(1);
              for (auto j : nc.range(all, all + once)) single(rest_at, j, rest, a.causal);
            }
          }

          auto o_sum = nc.sbuf("o_sum", dv, size, dtype), r = nc.sbuf("r", l.p(), columns, DType::f32);
          auto o = nc.psum("o", l.p(), columns * dv, dtype);  // by rows of queries, side by side
          nc.copy(o_sum, oT);
          nc.reciprocal(r, l);
          const auto turned = [&](const auto& t) {
            return o.partitions(zero, t.size).free(t.index * dv, dv);
          };
          for (auto t : nc.tiles(size, blocking.rows)) nc.transpose(turned(t), o_sum.free(t.begin, t.size));
          for (auto t : nc.tiles(size, blocking.rows)) {
            const auto part = [&](const typename T::Hbm& h) {
              return h.at(b).at(head).rows(q_begin + t.begin, t.size);
            };
            const auto column = [&](const auto& tile) {
              return tile.partitions(zero, t.size).free(t.index, 1);
            };
            const auto sum = column(l);
            const auto y = nc.staged("y", part(a.dst));
            nc.tensor_scalar(y, turned(t), Alu::multiply, column(r));
            nc.store(part(a.dst), y, {.dge = Dge::none});
            nc.store(part(a.sums), sum, {.dge = Dge::none});
            if (!a.lse) continue;
            auto lse = nc.sbuf("lse", t.size, 1, DType::f32);  // ln l + shift
            nc.activate(lse, Act::log, sum);
            nc.tensor_tensor(lse, lse, Alu::subtract, bias.partitions(zero, t.size));
            nc.store(part(a.lse), lse, {.dge = Dge::none});
          }
        }
      };
      const int full = queries.size / blocking.q, left = queries.size % blocking.q;
      if (full > 0) blocks(full, blocking.q, 0);
      if (left > 0) blocks(1, left, full * blocking.q);
    }
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
