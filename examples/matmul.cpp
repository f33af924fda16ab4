// A matrix product with bias and activation in one call, checked on a weight that is one diagonal.
//   g++ -std=c++20 -O2 -I include examples/matmul.cpp -o matmul && ./matmul
#include "neuron_kernels/matmul.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

namespace nk = neuron_kernels;

int main() {
  const int m = 300, n = 200, k = 200;
  std::vector<float> a(m * k), b(k * n, 0.f), bias(n, -1.f), dst(m * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 17) - 8.f;
  for (std::size_t i = 0; i < k; ++i) b[i * n + i] = 2.f;  // b = 2 I

  nk::MatmulOptions options;
  options.bias = nk::ConstView(bias.data(), {n});
  options.activation = nk::Act::relu;
  nk::matmul(nk::View(dst.data(), {m, n}), nk::ConstView(a.data(), {m, k}), nk::ConstView(b.data(), {k, n}),
             options);

  int wrong = 0;  // dst = relu(2 a - 1), exactly
  for (std::size_t i = 0; i < dst.size(); ++i) wrong += dst[i] == std::fmax(2.f * a[i] - 1.f, 0.f) ? 0 : 1;
  std::printf("matmul [%d, %d] x [%d, %d]: %d of %zu elements wrong\n", m, k, k, n, wrong, dst.size());
  return wrong == 0 ? 0 : 1;
}
