// All functions of a page and its table, made of what the including page defined before:
// Vec, tile_rows, tile_vecs and page_name. Included inside a page's namespace and target region.

#include "neuron_kernels/host/gemm.inl"
#include "neuron_kernels/host/math.inl"
#include "neuron_kernels/host/rows.inl"

#include "neuron_kernels/host/activate.inl"  // these after rows.inl
#include "neuron_kernels/host/convert.inl"

inline constexpr Page page = {
    .name = page_name,
    .vector_len = Vec::len,
    .tile_rows = tile_rows,
    .tile_cols = tile_vecs * Vec::len,
    .gemm = gemm,
    .gemm_dot = gemm_dot,
    .transpose = transpose,
    .widen_bf16 = widen_bf16,
    .widen_f16 = widen_f16,
    .narrow_bf16 = narrow_bf16,
    .narrow_f16 = narrow_f16,
    .binary = binary,
    .scalar = scalar,
    .scalar_scalar = scalar_scalar,
    .scalar_tensor = scalar_tensor,
    .reduce = reduce,
    .activate = activate,
    .stats = stats,
    .finish_stores = finish_stores,
};
