/* The kernels of neuron_kernels for C and for every language that calls C. One shared library holds all
 * instruction sets; the best of this CPU is chosen at run time (variable NEURON_KERNELS_ISA: a lower one).
 *
 * Calls return NEURON_KERNELS_OK or an error of neuron_kernels_status; nothing is written then, and
 * neuron_kernels_error() says what was given and what is allowed. Calls are safe from any thread. */
#ifndef NEURON_KERNELS_H
#define NEURON_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NEURON_KERNELS_EXPORT __attribute__((visibility("default")))

enum neuron_kernels_status {
  NEURON_KERNELS_OK = 0,
  NEURON_KERNELS_BAD_ARGUMENT = 1,
  NEURON_KERNELS_OUT_OF_MEMORY = 2,
  NEURON_KERNELS_FAILED = 3
};

enum neuron_kernels_dtype { NEURON_KERNELS_F32 = 0, NEURON_KERNELS_BF16 = 1, NEURON_KERNELS_F16 = 2 };

enum neuron_kernels_activation {
  NEURON_KERNELS_IDENTITY = 0,
  NEURON_KERNELS_RELU = 1,
  NEURON_KERNELS_SILU = 2,
  NEURON_KERNELS_GELU = 3, /* by erf */
  NEURON_KERNELS_GELU_TANH = 4,
  NEURON_KERNELS_SIGMOID = 5,
  NEURON_KERNELS_TANH = 6
};

/* The caller's memory. rank 1 to 4; shape and stride have rank values, strides count elements. */
typedef struct neuron_kernels_tensor {
  void* data;
  int32_t dtype; /* neuron_kernels_dtype */
  int32_t rank;
  int64_t shape[4];
  int64_t stride[4];
} neuron_kernels_tensor;

/* In all calls: dst is written, the others are read; a NULL tensor is one that is not given; NULL options are
 * the defaults. */

typedef struct neuron_kernels_matmul_options {
  float alpha, beta;                     /* default 1 and 0; beta 0 never reads dst */
  int32_t activation;                    /* neuron_kernels_activation */
  const neuron_kernels_tensor* bias;     /* [n] */
  const neuron_kernels_tensor* residual; /* as dst */
} neuron_kernels_matmul_options;

/* dst = activation(alpha a b + beta dst + bias) + residual; a [.., m, k], b [.., k, n], dst [.., m, n]. */
NEURON_KERNELS_EXPORT int neuron_kernels_matmul(const neuron_kernels_tensor* dst,
                                                const neuron_kernels_tensor* a,
                                                const neuron_kernels_tensor* b,
                                                const neuron_kernels_matmul_options* options);

typedef struct neuron_kernels_norm_options {
  float eps;                             /* default 1e-5 (layernorm), 1e-6 (rmsnorm) */
  const neuron_kernels_tensor* weight;   /* [n] */
  const neuron_kernels_tensor* bias;     /* [n]; layernorm only */
  const neuron_kernels_tensor* residual; /* [.., n] of src's dtype; added to src */
  const neuron_kernels_tensor* sum;      /* [.., n] of src's dtype; written: src + residual */
} neuron_kernels_norm_options;

/* dst = (x - mean) / sqrt(var + eps) * weight + bias over the last dimension, x = src + residual. */
NEURON_KERNELS_EXPORT int neuron_kernels_layernorm(const neuron_kernels_tensor* dst,
                                                   const neuron_kernels_tensor* src,
                                                   const neuron_kernels_norm_options* options);

/* dst = x / sqrt(mean(x^2) + eps) * weight over the last dimension, x = src + residual. */
NEURON_KERNELS_EXPORT int neuron_kernels_rmsnorm(const neuron_kernels_tensor* dst,
                                                 const neuron_kernels_tensor* src,
                                                 const neuron_kernels_norm_options* options);

typedef struct neuron_kernels_mlp_weights {
  const neuron_kernels_tensor* up;   /* [inner, hidden] */
  const neuron_kernels_tensor* down; /* [hidden_dst, inner] */
  const neuron_kernels_tensor* gate; /* [inner, hidden]; NULL: the plain form */
  const neuron_kernels_tensor *up_bias, *down_bias, *gate_bias;
} neuron_kernels_mlp_weights;

/* Gated: dst = (act(x gate^T + gate_bias) * (x up^T + up_bias)) down^T + down_bias; plain: without the
 * product. */
NEURON_KERNELS_EXPORT int neuron_kernels_fused_mlp(const neuron_kernels_tensor* dst,
                                                   const neuron_kernels_tensor* x,
                                                   const neuron_kernels_mlp_weights* weights,
                                                   int32_t activation);

typedef struct neuron_kernels_attention_options {
  const float* scale;                /* NULL: 1 / sqrt(d) */
  int32_t causal;                    /* not 0: query i sees keys up to i + kv_len - q_len */
  const neuron_kernels_tensor* bias; /* [batch or 1, heads or 1, q_len or 1, kv_len]; added to the scores */
  const neuron_kernels_tensor*
      lse; /* [batch, heads, q_len] f32; written: ln of the sum of exp of the scores */
} neuron_kernels_attention_options;

/* dst = softmax(scale q k^T + bias) v; q [batch, heads, q_len, d], k and v [batch, kv_heads, kv_len, d or
 * dv]. */
NEURON_KERNELS_EXPORT int neuron_kernels_flash_attention(const neuron_kernels_tensor* dst,
                                                         const neuron_kernels_tensor* q,
                                                         const neuron_kernels_tensor* k,
                                                         const neuron_kernels_tensor* v,
                                                         const neuron_kernels_attention_options* options);

/* Why the last call of this thread failed; "" if none did. Valid until its next failure. */
NEURON_KERNELS_EXPORT const char* neuron_kernels_error(void);

/* The instruction set that runs: "portable", "avx2" or "avx512"; NULL if NEURON_KERNELS_ISA names none that
 * can. */
NEURON_KERNELS_EXPORT const char* neuron_kernels_instruction_set(void);

/* MAJOR.MINOR.PATCH */
NEURON_KERNELS_EXPORT const char* neuron_kernels_version(void);

#ifdef __cplusplus
}
#endif

#endif /* NEURON_KERNELS_H */
