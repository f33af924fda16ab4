// RMS normalisation in place in bf16, checked by the mean square of each row.
//   g++ -std=c++20 -O2 -I include examples/rmsnorm.cpp -o rmsnorm && ./rmsnorm
#include "neuron_kernels/rmsnorm.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

namespace nk = neuron_kernels;

int main() {
  const int tokens = 32, hidden = 576;
  std::vector<nk::bf16> x(tokens * hidden);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = nk::to_bf16(static_cast<float>(i * 29 % 103) - 50.f);
  const std::vector<float> weight(hidden, 0.5f);

  const nk::View rows(x.data(), {tokens, hidden});
  nk::RmsnormOptions options;
  options.weight = nk::ConstView(weight.data(), {hidden});
  nk::rmsnorm(rows, rows, options);

  double worst = 0;
  for (std::size_t row = 0; row < tokens; ++row) {
    double square = 0;
    for (std::size_t i = 0; i < hidden; ++i)
      square += std::pow(static_cast<double>(nk::to_f32(x[row * hidden + i])), 2);
    worst = std::fmax(worst, std::fabs(std::sqrt(square / hidden) - 0.5));
  }
  std::printf("rmsnorm [%d, %d] bf16: root mean square is the weight within %.1e\n", tokens, hidden, worst);
  return worst < 0x1p-9 ? 0 : 1;  // half of bf16's rounding of 0.5
}
