// matmul as a tile program: dst = activation(alpha a b + beta dst + bias) + residual.
//
// Public call: neuron_kernels/matmul.hpp. Loads of b are hoisted: a block of its columns stays on chip while
// the rows of a go by (AWS Neuron SDK, nki/guides/tutorials/matrix_multiplication.rst, "hoisting loads").
#pragma once

#include "neuron_kernels/kernels/steps.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

template <class T>
struct MatmulArgs {
  using Hbm = typename T::Hbm;
  Hbm a{}, b{}, dst{};         // [batch, batch, m, k], [batch, batch, k, n], [batch, batch, m, n]
  Hbm packed_b{};              // instead of b's columns, [n / blocking.n, k, blocking.n]; maybe not given
  Hbm row_bias{}, col_bias{};  // [1, n], [m, 1]; either, none, not both
  Hbm residual{};              // [batch, batch, m, n]; maybe not given
  float alpha = 1.f, beta = 0.f;
  Act activation = Act::identity;
};

struct MatmulShape {
  std::int64_t m, n, k;
};

struct MatmulBlocking {
  int m = 128, n = 512, k = 128;           // of one matmul op
  int program_m = 2048, program_n = 1024;  // of dst per program

  /// Errors: ShapeError naming the field.
  void check(const Limits& l) const {
    check_block("matmul", "m", m, std::min(l.gemm_stationary_fmax, l.partitions), l);
    check_block("matmul", "n", n, std::min(l.gemm_moving_fmax, l.psum_bank_bytes / 4), l);
    check_block("matmul", "k", k, l.partitions, l);
    check_block("matmul", "program_m", program_m, no_limit, l);
    check_block("matmul", "program_n", program_n, no_limit, l);
  }

  static MatmulBlocking default_for(const Limits& l, const MatmulShape& s) {
    if (!l.is_host()) return {.m = l.partitions, .n = std::min(l.gemm_moving_fmax, 512), .k = l.partitions};
    // Few rows: b is read once, as it lies, at the speed of memory; programs only share it among threads.
    if (s.m <= few_rows) {
      return {.m = few_rows,
              .n = 256,
              .k = no_limit,
              .program_m = few_rows,
              .program_n = even_step(s.n, 512, 16)};
    }
    // Many: a panel of b [k, 32] stays in L1 (48 KiB; AVX2: [k, 16]), a [m, k] and the sums [m, n] in L2.
    // 42 = lcm(6, 14) is a multiple of the register rows of AVX2 and AVX-512. Each program copies its columns
    // of b: the more rows the better, but at least four programs, so that threads have something to share.
    constexpr std::int64_t n_block = 128, least_programs = 4, least_rows = 84, most_rows = 1024;
    const std::int64_t wanted = std::min(ceil_div(least_programs, ceil_div(s.n, 2 * n_block)),
                                         std::max<std::int64_t>(1, s.m / least_rows));
    const int program_m = even_step(s.m, std::min(most_rows, ceil_div(s.m, wanted)), 42);
    return {.m = even_step(program_m, 168, 42),
            .n = n_block,
            .k = even_step(s.k, 384, 8),
            .program_m = program_m,
            .program_n = 2 * n_block};
  }
  static constexpr int few_rows = 8;
};

/// dst = activation(alpha a b + beta dst + bias) + residual, for all batches.
/// shapes: as in MatmulArgs; any sizes, 0 among them (k = 0: a b is 0)
/// needs: a, b of one dtype; beta = 0 unless dst may be read
/// cost: 2 m n k FLOPs; reads a once per block of n, b once per program_m rows
/// source: Goto, van de Geijn 2008 (doi 10.1145/1356052.1356053) for what stays in which cache
template <Target T>
void matmul_kernel(T& nc, const MatmulArgs<T>& args, const MatmulBlocking& blocking) {
  using Span = typename T::Span;
  const std::int64_t m_len = args.dst.dim(2), n_len = args.dst.dim(3), k_len = args.a.dim(3);
  const auto k_steps = static_cast<int>(ceil_div(k_len, blocking.k));
  const int k_block = static_cast<int>(std::min<std::int64_t>(blocking.k, k_len));

  // Rows mp.begin + m.begin on, columns np.begin + n.begin on.
  const auto finish = [&](auto& acc, const auto& dst, const auto& residual, const Span& np, const Span& n,
                          const Span& mp, const Span& m) {
    const auto at = [&](const typename T::Hbm& h) {
      return h.rows(mp.begin + m.begin, m.size).cols(np.begin + n.begin, n.size);
    };
    if (args.alpha != 1.f) nc.tensor_scalar(acc, acc, Alu::multiply, args.alpha);
    if (args.beta != 0.f)
      nc.scalar_tensor_tensor(acc, nc.load("c", at(dst)), Alu::multiply, args.beta, Alu::add, acc);
    if (args.row_bias) {
      const auto bias = nc.load_broadcast("bias", args.row_bias.cols(np.begin + n.begin, n.size), m.size);
      nc.tensor_tensor(acc, acc, Alu::add, bias);
    }
    if (args.col_bias) {
      const auto bias = nc.sbuf("bias", m.size, 1, DType::f32);
      nc.copy(bias, nc.load("bias_in", args.col_bias.rows(mp.begin + m.begin, m.size)));
      nc.tensor_scalar(acc, acc, Alu::add, bias);
    }
    if (args.residual && args.activation != Act::identity) nc.activate(acc, args.activation, acc);
    const auto y = nc.staged("y", at(dst));
    if (args.residual) {
      nc.tensor_tensor(y, acc, Alu::add, nc.load("residual", at(residual)));
    } else if (args.activation != Act::identity) {
      nc.activate(y, args.activation, acc);
    } else {
      nc.copy(y, acc);
    }
    nc.store(at(dst), y);
  };

  for (auto outer : nc.range(args.dst.dim(0))) {
    for (auto inner : nc.range(args.dst.dim(1))) {
      const auto a = args.a.at(outer).at(inner), b = args.b.at(outer).at(inner),
                 dst = args.dst.at(outer).at(inner);
      const auto residual = args.residual ? args.residual.at(outer).at(inner) : args.residual;
      for (auto np : nc.tiles(n_len, blocking.program_n)) {
        for (auto mp : nc.programs(m_len, blocking.program_m)) {
          for (auto n : nc.tiles(np.size, blocking.n)) {
            auto moving =
                nc.input_array("b", std::max(k_steps, 1), std::max(k_block, 1), n.size, args.b.dtype());
            for (auto k : nc.tiles(k_len, blocking.k)) {
              if (args.packed_b) {
                const auto columns = args.packed_b.at((np.begin + n.begin) / blocking.n);
                nc.load(moving, k.index, columns.rows(k.begin, k.size).cols(nc.index(0), n.size));  // [k, n]
              } else {
                nc.load(moving, k.index, b.rows(k.begin, k.size).cols(np.begin + n.begin, n.size),
                        {.reads = mp.size});
              }
            }
            for (auto m : nc.tiles(mp.size, blocking.m)) {
              auto acc = nc.psum("acc", m.size, n.size);
              if (k_len == 0) nc.fill(acc, 0.f);
              for (auto k : nc.tiles(k_len, blocking.k)) {
                const auto aT = nc.load_transposed(
                    "aT", a.rows(mp.begin + m.begin, m.size).cols(k.begin, k.size));  // [k, m]
                nc.matmul(acc, aT, moving[k.index], {.accumulate = k.index > 0});     // += a b
              }
              finish(acc, dst, residual, np, n, mp, m);
            }
          }
        }
      }
    }
  }
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
