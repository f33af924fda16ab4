// Built as low_count (-march=x86-64) and high_count (-march=x86-64-v3): counts wrong results of the library.
//
// It uses nothing of the standard library: every symbol that both builds share is the doing of the headers.
#include "neuron_kernels/flash_attention.hpp"
#include "neuron_kernels/matmul.hpp"

namespace nk = neuron_kernels;

namespace {

constexpr int m = 257, n = 389, k = 61;  // enough work for several threads
float a[m * k], b[k * n], dst[m * n];    // small integers: every sum is exact

int wrong_of_matmul() {
  for (int i = 0; i < m * k; ++i) a[i] = static_cast<float>(i % 7 - 3);
  for (int i = 0; i < k * n; ++i) b[i] = static_cast<float>(i % 5 - 2);
  nk::matmul(nk::View(dst, {m, n}), nk::ConstView(a, {m, k}), nk::ConstView(b, {k, n}));
  int wrong = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      float sum = 0.f;
      for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[l * n + j];
      wrong += dst[i * n + j] != sum;
    }
  }
  return wrong;
}

constexpr int kv_len = 50, d = 16;
float q[d], keys[kv_len * d], values[kv_len * d], attended[d];

// All values equal: whatever the weights are, they sum to 1 and give that value back.
int wrong_of_attention() {
  for (int i = 0; i < d; ++i) q[i] = static_cast<float>(i % 3);
  for (int i = 0; i < kv_len * d; ++i) keys[i] = static_cast<float>(i % 11 - 5) / 8;
  for (int i = 0; i < kv_len * d; ++i) values[i] = 2.f;
  nk::flash_attention(nk::View(attended, {1, 1, 1, d}), nk::ConstView(q, {1, 1, 1, d}),
                      nk::ConstView(keys, {1, 1, kv_len, d}), nk::ConstView(values, {1, 1, kv_len, d}));
  int wrong = 0;
  for (const float x : attended) wrong += !(x > 1.9999f && x < 2.0001f);
  return wrong;
}

int missed_errors() {
  try {
    nk::matmul(nk::View(dst, {m, n}), nk::ConstView(a, {m, k}), nk::ConstView(b, {n, k}));
  } catch (const nk::ShapeError&) {
    return 0;
  }
  return 1;
}

}  // namespace

int COUNT() { return wrong_of_matmul() + wrong_of_attention() + missed_errors(); }
