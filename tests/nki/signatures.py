"""Signatures of what emitted sources call: name -> parameters in order, those without a default first.

Source: AWS Neuron SDK (github.com/aws-neuron/aws-neuron-sdk), documentation of NKI at commit 81ce03ae (2026-08-21):
nki/api/nki/isa/__init__.py, nki/api/nki/language/__init__.py, nki/api/nki/__init__.py.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Signature:
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()

    @property
    def all(self):
        return self.required + self.optional


def _signature(required, optional=""):
    return Signature(tuple(required.split()), tuple(optional.split()))


ISA = {
    "activation": _signature("dst op data", "bias scale reduce_op reduce_res reduce_cmd name"),
    "affine_select": _signature("dst pattern channel_multiplier on_true_tile on_false_value", "cmp_op offset name"),
    "bn_aggr": _signature("dst data", "name"),
    "bn_stats": _signature("dst data", "name"),
    "dma_copy": _signature("dst src", "priority oob_mode dge_mode engine name"),
    "dma_transpose": _signature("dst src", "axes priority dge_mode oob_mode name"),
    "memset": _signature("dst value", "engine name"),
    "nc_matmul": _signature(
        "dst stationary moving",
        "is_stationary_onezero is_moving_onezero is_transpose accumulate tile_position tile_size perf_mode name",
    ),
    "nc_transpose": _signature("dst data", "engine name"),
    "reciprocal": _signature("dst data", "name"),
    "scalar_tensor_tensor": _signature("dst data op0 operand0 op1 operand1", "reverse0 reverse1 name"),
    "tensor_copy": _signature("dst src", "engine name"),
    "tensor_reduce": _signature("dst op data axis", "negate keepdims name"),
    "tensor_scalar": _signature("dst data op0 operand0", "reverse0 op1 operand1 reverse1 engine name"),
    "tensor_scalar_reduce": _signature(
        "dst data op0 operand0 reduce_op",
        "reduce_res reverse0 reduce_cmd reduce_init reduce_res_negate name",
    ),
    "tensor_tensor": _signature("dst data1 data2 op", "engine name"),
    "tensor_tensor_scan": _signature("dst data0 data1 initial op0 op1", "reverse0 reverse1 name"),
}

LANGUAGE = {
    "ds": _signature("start size"),
    "ndarray": _signature("shape dtype", "buffer name address"),
}

# Methods of NkiTensor.
TENSOR = {
    "broadcast": _signature("dim size"),
    "permute": _signature("dims"),
    "reshape_dim": _signature("dim shape"),
}

NKI = {"jit": _signature("", "fn"), "simulate": _signature("kernel")}

# What else of nki.language and nki.isa a source may name: dtypes, buffers, operators, enumerations.
LANGUAGE_NAMES = set(
    "float32 bfloat16 float16 sbuf psum shared_hbm tile_size add subtract multiply maximum minimum greater_equal "
    "copy exp log tanh erf sigmoid rsqrt square relu silu gelu gelu_apprx_tanh".split()
)
TILE_SIZES = {
    "pmax",
    "psum_bank_fmax",
    "psum_bank_fmax_bytes",
    "gemm_stationary_fmax",
    "gemm_moving_fmax",
    "bn_stats_fmax",
}
ISA_ENUMS = {
    "engine": {"tensor", "vector", "scalar", "gpsimd", "dma", "sync", "unknown"},
    "dge_mode": {"unknown", "swdge", "hwdge", "none"},
    "reduce_cmd": {"idle", "reset", "reduce", "reset_reduce", "load_reduce"},
}
