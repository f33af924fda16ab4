// flash_attention with the exact maximum of each row, for the chip: all scores of a block of queries are kept as
// one strip, so that nothing is ever rescaled, and the engines share what moves them.
//
// The vector engine takes scores out of PSUM and their maximum in one pass; transposes of probabilities are split
// between DMA and the tensor engine. Long caches do not fit: see needs.
#pragma once

#include <limits>

#include "neuron_kernels/kernels/flash_attention.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

struct StripBlocking {
  int q = 128;              // queries per strip
  int kv = 512;             // keys per score tile
  int pv = 128;             // keys per transposed tile of probabilities; divides kv
  int exp = 4;              // score tiles per activation
  int by_dma = 3, of = 5;   // of so many score tiles' probabilities, how many DMA transposes (16-bit only)
  int program_q = 1 << 16;  // queries per program, a multiple of q

  /// Errors: ShapeError naming the field.
  void check(const Limits& l) const {
    check_block("strip_attention", "q", q, std::min(l.gemm_stationary_fmax, l.partitions), l);
    check_block("strip_attention", "kv", kv, std::min(l.gemm_moving_fmax, l.psum_bank_bytes / 4), l);
    check_block("strip_attention", "pv", pv, std::min(l.partitions, kv), l);
    check_block("strip_attention", "exp", exp, no_limit, l);
    check_block("strip_attention", "of", of, no_limit, l);
    check_block("strip_attention", "program_q", program_q, no_limit, l);
    if (kv % pv != 0 || program_q % q != 0 || by_dma < 0 || by_dma > of) {
      shape_error("strip_attention", "blocking",
                  text("pv ", pv, ", kv ", kv, ", q ", q, ", program_q ", program_q, ", by_dma ", by_dma,
                       " of ", of, "; pv must divide kv, q program_q, and by_dma be within 0 and `of`"));
    }
  }
};

/// dst = softmax(scale q k^T) v for all batches and heads; causal drops key j > query i + kv_len - q_len.
/// shapes: as in AttentionArgs
/// needs: no bias; scale > 0; d <= partitions; kv_len >= 1; causal: kv_len >= q_len; a strip of kv_len scores (f32
/// and q's dtype) beside k and v within sbuf_usable_bytes
/// cost: 2 q_len kv_len (d + dv) FLOPs per head, causal half of it; reads k, v once per program
/// source: the order of engines: AWS NKI samples, tutorials/attention_fwd_performance, versions 7 and 8
template <Target T>
void strip_attention_kernel(T& nc, const AttentionArgs<T>& a, const StripBlocking& blocking) {
  using std::max;
  using std::min;
  const std::int64_t q_len = a.q.dim(2);
  const int kv_len = static_cast<int>(a.k.dim(2)), d = static_cast<int>(a.q.dim(3)),
            dv = static_cast<int>(a.v.dim(3));
  const int group = static_cast<int>(a.q.dim(1) / a.k.dim(1)), offset = static_cast<int>(kv_len - q_len);
  const int kv = blocking.kv, tiles = kv_len / kv, rest = kv_len % kv, columns = tiles + (rest > 0 ? 1 : 0);
  const int per_tile = kv / blocking.pv;
  const DType dtype = a.q.dtype();
  const bool dma_transposes = dtype != DType::f32;
  const LoadOptions reads{.reads = no_limit, .dge = Dge::none};

  for (auto b : nc.range(a.q.dim(0))) {
    for (auto kv_head : nc.range(a.k.dim(1))) {
      for (auto queries : nc.programs(q_len, blocking.program_q)) {
        auto kT = nc.input_array("kT", columns, d, min(kv, kv_len), dtype);
        auto v = nc.input_array("v", columns * per_tile, min(blocking.pv, kv_len), dv, dtype);
        const auto load_keys = [&](const auto& j, int size) {
          nc.load_transposed(kT, j, a.k.at(b).at(kv_head).rows(j * kv, size), reads);  // [d, kv]
          for (auto c : nc.tiles(size, blocking.pv))                                   // [pv, dv]
            nc.load(v, j * per_tile + c.index, a.v.at(b).at(kv_head).rows(j * kv + c.begin, c.size), reads);
        };
        for (auto j : nc.range(tiles)) load_keys(j, kv);
        if (rest > 0) load_keys(nc.index(tiles), rest);

        for (auto g : nc.range(group)) {
          const auto head = kv_head * group + g;
          for (auto i : nc.tiles(queries.size, blocking.q)) {
            const auto q_begin = queries.begin + i.begin;
            const auto qT =
                nc.load_transposed("qT", a.q.at(b).at(head).rows(q_begin, i.size), {.dge = Dge::none});
            auto strip = nc.sbuf("strip", i.size, kv_len, DType::f32);  // S
            auto p = nc.sbuf("p", i.size, kv_len, dtype);               // e^(scale (S - m))
            auto tops = nc.sbuf("tops", i.size, columns, DType::f32),
                 sums = nc.sbuf("sums", i.size, columns, DType::f32);
            nc.fill(sums, 0.f);  // one activation sums several tiles
            if (a.causal) nc.fill(tops, std::numeric_limits<float>::lowest());  // of tiles behind the mask

            // Score tile j, of `size` keys: S and the maximum of its rows.
            const auto score = [&](const auto& j, int size, bool masked) {
              auto s = nc.psum("s", i.size, size);
              const auto to = strip.free(j * kv, size), top = tops.free(j, 1);
              nc.matmul(s, qT, kT[j]);
              if (!masked) return nc.tensor_scalar_reduce(to, s, Alu::multiply, 1.f, Alu::max, top);
              nc.copy(to, s);
              nc.causal_select(to, to, q_begin + offset, j * kv, std::numeric_limits<float>::lowest());
              nc.reduce(top, Alu::max, to);
            };
            auto m = nc.sbuf("m", i.size, 1, DType::f32), shift = nc.sbuf("shift", i.size, 1, DType::f32),
                 l = nc.sbuf("l", i.size, 1, DType::f32);
            const auto exponential = [&](const auto& j, int size) {
              nc.activate(p.free(j * kv, size), Act::exp, strip.free(j * kv, size),
                          {.scale = a.scale, .bias = shift, .row_sum = sums.free(j, 1)});
            };
            auto o = nc.psum("o", i.size, dv);
            // The probabilities of score tile j, `size` keys, transposed and times v.
            const auto weigh = [&](const auto& j, int size, bool by_dma) {
              auto pT = nc.sbuf("pT", min(blocking.pv, size),
                                static_cast<int>(ceil_div(size, blocking.pv)) * i.size, dtype);
              const auto part = [&](const auto& tile, const auto& c) {
                return tile.partitions(nc.index(0), c.size).free(c.index * i.size, i.size);
              };
              if (by_dma) {
                for (auto c : nc.tiles(size, blocking.pv))
                  nc.transpose(part(pT, c), p.free(j * kv + c.begin, c.size));
              } else {
                auto bank = nc.psum("bank", pT.p(), pT.f(), dtype);
                for (auto c : nc.tiles(size, blocking.pv)) {
                  nc.transpose(part(bank, c), p.free(j * kv + c.begin, c.size));
                  nc.copy(part(pT, c), part(bank, c), {.engine = Engine::scalar});
                }
              }
              for (auto c : nc.tiles(size, blocking.pv)) {
                const auto tile = j * per_tile + c.index;
                nc.matmul(o, part(pT, c), v[tile], {.accumulate = tile > 0});  // += P V
              }
            };

            const auto zero = nc.index(0), all = nc.index(tiles);
            // Tiles [0, whole) are seen by all queries of the block, those up to `seen` by some.
            const auto seen = a.causal ? min((q_begin + (i.size + offset + kv - 1)) / kv, all) : all;
            const auto whole = a.causal ? min((q_begin + (offset + 1)) / kv, all) : all;
            const auto with_rest =
                [&](const auto& step) {  // once, for the rest of the keys, where it is seen
                  if (rest == 0) return;
                  const auto once =
                      a.causal ? min(max(q_begin + (i.size + offset) - tiles * kv, zero), nc.index(1))
                               : nc.index(1);
                  for (auto j : nc.range(all, all + once)) step(j);
                };
            for (auto j : nc.range(zero, whole)) score(j, kv, false);
            if (a.causal) {
              for (auto j : nc.range(whole, seen)) score(j, kv, true);
            }
            with_rest([&](const auto& j) { score(j, rest, a.causal); });
            nc.reduce(m, Alu::max, tops);
            nc.tensor_scalar(shift, m, Alu::multiply, -a.scale);
            for (auto j : nc.range(zero, seen / blocking.exp))
              exponential(j * blocking.exp, blocking.exp * kv);
            for (auto j : nc.range(seen / blocking.exp * blocking.exp, seen)) exponential(j, kv);
            with_rest([&](const auto& j) { exponential(j, rest); });
            nc.reduce(l, Alu::add, sums);
            for (auto j : nc.range(zero, seen / blocking.of)) {
              for (int c = 0; c < blocking.of; ++c)
                weigh(j * blocking.of + c, kv,
                      dma_transposes &&
                          (c + 1) * blocking.by_dma / blocking.of > c * blocking.by_dma / blocking.of);
            }
            for (auto j : nc.range(seen / blocking.of * blocking.of, seen)) weigh(j, kv, false);
            with_rest([&](const auto& j) { weigh(j, rest, false); });

            if (a.lse) {
              auto lse = nc.sbuf("lse", i.size, 1, DType::f32);
              nc.activate(lse, Act::log, l);
              nc.tensor_tensor(lse, lse, Alu::subtract, shift);  // ln l + scale m
              nc.store(a.lse.at(b).at(head).rows(q_begin, i.size), lse, {.dge = Dge::none});
            }
            nc.reciprocal(l, l);
            const auto dst = a.dst.at(b).at(head).rows(q_begin, i.size);
            const auto y = nc.staged("y", dst);
            nc.tensor_scalar(y, o, Alu::multiply, l);
            nc.store(dst, y, {.dge = Dge::none});
          }
        }
      }
    }
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
