// Layer normalisation with a residual: the sum and its normal form in one pass, checked by mean and variance.
//   g++ -std=c++20 -O2 -I include examples/layernorm.cpp -o layernorm && ./layernorm
#include "neuron_kernels/layernorm.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

namespace nk = neuron_kernels;

int main() {
  const int tokens = 64, hidden = 384;
  std::vector<float> x(tokens * hidden), residual(tokens * hidden, 1e6f), sum(tokens * hidden),
      dst(tokens * hidden);
  // On a mean of a million.
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101);

  nk::LayernormOptions options;
  options.residual = nk::ConstView(residual.data(), {tokens, hidden});
  options.sum = nk::View(sum.data(), {tokens, hidden});
  nk::layernorm(nk::View(dst.data(), {tokens, hidden}), nk::ConstView(x.data(), {tokens, hidden}), options);

  double worst = 0;
  for (std::size_t row = 0; row < tokens; ++row) {
    double mean = 0, square = 0;
    for (std::size_t i = row * hidden; i < (row + 1) * hidden; ++i) {
      mean += static_cast<double>(dst[i]) / hidden;
      square += static_cast<double>(dst[i]) * static_cast<double>(dst[i]) / hidden;
    }
    worst = std::fmax(worst, std::fmax(std::fabs(mean), std::fabs(square - mean * mean - 1)));
  }
  std::printf("layernorm [%d, %d]: mean 0 and variance 1 within %.1e\n", tokens, hidden, worst);
  return worst < 1e-2 ? 0 : 1;  // an f32 near 1e6 moves in steps of 0.06, 0.002 of the spread of these rows
}
