// Causal attention with grouped heads, checked:
// equal keys make every query the average of the values it sees.
//   g++ -std=c++20 -O2 -I include examples/flash_attention.cpp -o flash_attention && ./flash_attention
#include "neuron_kernels/flash_attention.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

namespace nk = neuron_kernels;

int main() {
  const int heads = 9, kv_heads = 3, tokens = 100, d = 64;
  std::vector<float> q(heads * tokens * d), k(kv_heads * tokens * d, 1.f), v(kv_heads * tokens * d),
      dst(heads * tokens * d);
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i / d % tokens);  // value = position

  nk::flash_attention(nk::View(dst.data(), {1, heads, tokens, d}),
                      nk::ConstView(q.data(), {1, heads, tokens, d}),
                      nk::ConstView(k.data(), {1, kv_heads, tokens, d}),
                      nk::ConstView(v.data(), {1, kv_heads, tokens, d}), {.causal = true});

  float worst = 0;  // query i sees positions 0 .. i: their average is i / 2
  for (std::size_t i = 0; i < dst.size(); ++i) {
    worst = std::fmax(worst, std::fabs(dst[i] - static_cast<float>(i / d % tokens) / 2));
  }
  std::printf("flash_attention, %d heads on %d kv heads, %d tokens: largest error %.1e\n", heads, kv_heads,
              tokens, static_cast<double>(worst));
  return worst < 1e-4f ? 0 : 1;
}
