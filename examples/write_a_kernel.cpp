// The matmuls of docs/write-a-kernel.md, from naive to blocked, on the CPU: dst [m, n] = aT^T b, checked and timed.
//   g++ -std=c++20 -O2 -I include examples/write_a_kernel.cpp -o write_a_kernel && ./write_a_kernel
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "neuron_kernels/host/launch.hpp"

namespace nk = neuron_kernels;
using nk::DType;

template <nk::Target T>
struct Matmul {
  typename T::Hbm aT{}, b{}, dst{};  // [k, m], [k, n], [m, n]; m, k multiples of 128, n of 512
  int m() const { return static_cast<int>(dst.dim(0)); }
  int n() const { return static_cast<int>(dst.dim(1)); }
  int k() const { return static_cast<int>(b.dim(0)); }
};

// level 1: naive
template <nk::Target T>
void matmul_naive(T& nc, const Matmul<T>& x) {
  for (auto m : nc.tiles(x.m(), 128)) {
    for (auto n : nc.tiles(x.n(), 512)) {
      auto acc = nc.psum("acc", m.size, n.size);
      for (auto k : nc.tiles(x.k(), 128)) {
        const auto aT = nc.load("aT", x.aT.rows(k.begin, k.size).cols(m.begin, m.size));  // [k, m]
        const auto b = nc.load("b", x.b.rows(k.begin, k.size).cols(n.begin, n.size));     // [k, n]
        nc.matmul(acc, aT, b, {.accumulate = k.index > 0});                               // += a b
      }
      auto y = nc.sbuf("y", m.size, n.size, x.dst.dtype());
      nc.copy(y, acc);
      nc.store(x.dst.rows(m.begin, m.size).cols(n.begin, n.size), y);
    }
  }
}
// end

// level 2: the strip of a is loaded once for all columns of b
template <nk::Target T>
void matmul_hoisted(T& nc, const Matmul<T>& x) {
  for (auto m : nc.tiles(x.m(), 128)) {
    auto aT = nc.input_array("aT", x.k() / 128, 128, m.size, x.aT.dtype());
    for (auto k : nc.tiles(x.k(), 128))
      nc.load(aT, k.index, x.aT.rows(k.begin, k.size).cols(m.begin, m.size), {.reads = x.n()});  // [k, m]
    for (auto n : nc.tiles(x.n(), 512)) {
      auto acc = nc.psum("acc", m.size, n.size);
      for (auto k : nc.tiles(x.k(), 128)) {
        const auto b = nc.load("b", x.b.rows(k.begin, k.size).cols(n.begin, n.size));  // [k, n]
        nc.matmul(acc, aT[k.index], b, {.accumulate = k.index > 0});                   // += a b
      }
      auto y = nc.sbuf("y", m.size, n.size, x.dst.dtype());
      nc.copy(y, acc);
      nc.store(x.dst.rows(m.begin, m.size).cols(n.begin, n.size), y);
    }
  }
}
// end

// level 3: blocks of 512 rows, 1024 columns and 1024 of k: each loaded tile is used four or two times over, and
// rows of transfers are 1 KiB and more
struct Block {
  int m = 512, n = 1024, k = 1024;
};

template <nk::Target T>
void matmul_blocked(T& nc, const Matmul<T>& x, const Block& block) {
  for (auto mb : nc.tiles(x.m(), block.m)) {
    for (auto nb : nc.tiles(x.n(), block.n)) {
      auto sum = nc.sbuf_array("sum", mb.size / 128, 128, nb.size, DType::f32);
      for (auto m : nc.tiles(mb.size, 128)) nc.fill(sum[m.index], 0.f);
      for (auto kb : nc.tiles(x.k(), block.k)) {
        auto aT = nc.input_array("aT", kb.size / 128, 128, mb.size, x.aT.dtype());
        auto b = nc.input_array("b", kb.size / 128, 128, nb.size, x.b.dtype());
        for (auto k : nc.tiles(kb.size, 128)) {
          const auto row = kb.begin + k.begin;
          nc.load(aT, k.index, x.aT.rows(row, k.size).cols(mb.begin, mb.size), {.reads = nb.size});  // [k, m]
          nc.load(b, k.index, x.b.rows(row, k.size).cols(nb.begin, nb.size), {.reads = mb.size});    // [k, n]
        }
        for (auto m : nc.tiles(mb.size, 128)) {
          for (auto n : nc.tiles(nb.size, 512)) {
            auto acc = nc.psum("acc", m.size, n.size);
            for (auto k : nc.tiles(kb.size, 128)) {
              nc.matmul(acc, aT[k.index].free(m.begin, m.size), b[k.index].free(n.begin, n.size),
                        {.accumulate = k.index > 0});  // += a b
            }
            const auto part = sum[m.index].free(n.begin, n.size);
            nc.tensor_tensor(part, part, nk::Alu::add, acc);
          }
        }
      }
      for (auto m : nc.tiles(mb.size, 128)) {
        auto y = nc.sbuf("y", m.size, nb.size, x.dst.dtype());
        nc.copy(y, sum[m.index]);
        nc.store(x.dst.rows(mb.begin + m.begin, m.size).cols(nb.begin, nb.size), y);
      }
    }
  }
}
// end

#ifndef NEURON_KERNELS_EXAMPLE_ONLY_KERNELS
int main() {
  const int m = 512, n = 1024, k = 1024;
  std::vector<float> aT(static_cast<std::size_t>(k * m)), b(static_cast<std::size_t>(k * n)),
      dst(static_cast<std::size_t>(m * n));
  for (std::size_t i = 0; i < aT.size(); ++i) aT[i] = static_cast<float>(i * 37 % 17) - 8.f;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 53 % 13) - 6.f;
  const Matmul<nk::Host> x{nk::ConstView(aT.data(), {k, m}), nk::ConstView(b.data(), {k, n}),
                           nk::View(dst.data(), {m, n})};
  const auto timed = [&](const char* name, const auto& kernel) {
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      nk::host::launch(nullptr, 1, kernel);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    for (const int at : {0, 1023, m * n / 2 + 77, m * n - 1}) {  // integers: exact
      double want = 0;
      for (int i = 0; i < k; ++i)
        want += static_cast<double>(aT[static_cast<std::size_t>(i * m + at / n)]) *
                static_cast<double>(b[static_cast<std::size_t>(i * n + at % n)]);
      if (static_cast<double>(dst[static_cast<std::size_t>(at)]) != want)
        return std::printf("%s is wrong\n", name), false;
    }
    std::printf("%-8s %6.1f GFLOP/s\n", name, 2e-9 * m * n * k / best);
    return true;
  };
  const bool right = timed("naive", [&](nk::Host& nc) { matmul_naive(nc, x); }) &&
                     timed("hoisted", [&](nk::Host& nc) { matmul_hoisted(nc, x); }) &&
                     timed("blocked", [&](nk::Host& nc) { matmul_blocked(nc, x, {}); });
  return right ? 0 : 1;
}
#endif
