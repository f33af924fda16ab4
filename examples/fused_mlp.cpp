// A gated MLP block (SwiGLU, as in Llama), checked: with unit matrices as weights it is silu(x) x.
//   g++ -std=c++20 -O2 -I include examples/fused_mlp.cpp -o fused_mlp && ./fused_mlp
#include "neuron_kernels/fused_mlp.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

namespace nk = neuron_kernels;

int main() {
  const int tokens = 100, hidden = 64, inner = 128;  // weights as torch.nn.Linear stores them: [to, from]
  std::vector<float> x(tokens * hidden), dst(tokens * hidden), up(inner * hidden, 0.f),
      down(hidden * inner, 0.f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 4.f * std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < hidden; ++i) up[i * hidden + i] = down[i * inner + i] = 1.f;

  nk::MlpWeights weights;
  weights.gate = nk::ConstView(up.data(), {inner, hidden});
  weights.up = nk::ConstView(up.data(), {inner, hidden});
  weights.down = nk::ConstView(down.data(), {hidden, inner});
  nk::fused_mlp(nk::View(dst.data(), {tokens, hidden}), nk::ConstView(x.data(), {tokens, hidden}), weights,
                {.activation = nk::Act::silu});

  float worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    worst = std::fmax(worst, std::fabs(dst[i] - x[i] / (1 + std::exp(-x[i])) * x[i]));
  }
  std::printf("fused_mlp [%d, %d], inner %d: largest error %.1e\n", tokens, hidden, inner,
              static_cast<double>(worst));
  return worst < 1e-5f ? 0 : 1;
}
