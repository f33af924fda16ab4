// The problems that every contestant is given: sizes, inputs and where to write. Plain data.
//
// Nothing of neuron_kernels is included here: peers are compiled with -march=native, where the library's own
// names differ (core/abi.hpp), and must be able to share these types with the rest.
#pragma once

#include <cstdint>

namespace bench {

enum class Type { f32, bf16 };

constexpr std::int64_t size_of(Type t) { return t == Type::f32 ? 4 : 2; }
constexpr const char* name_of(Type t) { return t == Type::f32 ? "f32" : "bf16"; }

/// dst [m, n] = a [m, k] b; b is [k, n], or a weight [n, k] as torch.nn.Linear has it.
struct Matmul {
  Type type = Type::f32;
  std::int64_t m = 0, n = 0, k = 0;
  bool weight = false;
  const void *a = nullptr, *b = nullptr;
  void* dst = nullptr;
};

/// dst = softmax(q k^T / sqrt(d)) v; q, dst [batch, heads, q_len, d], k, v [batch, kv_heads, kv_len, d].
struct Attention {
  Type type = Type::f32;
  std::int64_t batch = 1, heads = 1, kv_heads = 1, q_len = 0, kv_len = 0, d = 0;
  bool causal = false;  // then q_len == kv_len
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void* dst = nullptr;
};

/// gated: dst = (silu(x gate^T) * (x up^T)) down^T; plain: dst = gelu(x up^T) down^T, gelu with erf.
/// No biases. x, dst [tokens, hidden], up, gate [inner, hidden], down [hidden, inner].
struct Mlp {
  Type type = Type::f32;
  std::int64_t tokens = 0, hidden = 0, inner = 0;
  bool gated = false;
  const void *x = nullptr, *gate = nullptr, *up = nullptr, *down = nullptr;
  void* dst = nullptr;
};

/// layernorm (weight, bias, eps 1e-5) or rmsnorm (weight, eps 1e-6) of rows [rows, n]; weight, bias [n].
struct Norm {
  Type type = Type::f32;
  std::int64_t rows = 0, n = 0;
  bool rms = false;
  const void *src = nullptr, *weight = nullptr, *bias = nullptr;
  void* dst = nullptr;
};

constexpr float norm_eps(const Norm& p) { return p.rms ? 1e-6f : 1e-5f; }

}  // namespace bench
