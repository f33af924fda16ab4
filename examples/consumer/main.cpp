// Normalises one row with rmsnorm from a package that CMake pulled, and prints it.
#include <cstdio>
#include <vector>

#include "neuron_kernels/rmsnorm.hpp"

namespace nk = neuron_kernels;

int main() {
  const std::vector<float> x{3.f, 4.f, 0.f, 0.f};  // mean of the squares 6.25, root 2.5
  std::vector<float> y(x.size());
  nk::rmsnorm(nk::View(y.data(), {1, 4}), nk::ConstView(x.data(), {1, 4}), {.eps = 0.f});
  for (const float value : y) std::printf("%.2f ", static_cast<double>(value));
  std::printf("\n");
}
