"""What the operators return, without computing it: sizes, dtypes and strides for tracing and torch.compile.

Strides are exactly those of the C++ operators; sizes stay symbolic, so that one graph serves every batch size.
"""

import torch

from ._build import NAMESPACE


def _fake(name):
    return torch.library.register_fake(f"{NAMESPACE}::{name}")


def _check_width(call, argument, got, want):
    torch._check(got == want, lambda: f"{call}: argument {argument}: size {got}; needed is {want}")


@_fake("matmul")
def _matmul(a, b, bias=None, activation="identity", residual=None, alpha=1.0):
    torch._check(a.dim() >= 2 and b.dim() >= 2, lambda: f"matmul: a {a.shape}, b {b.shape}; allowed are ranks 2 to 4")
    _check_width("matmul", "b", b.shape[-2], a.shape[-1])
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.new_empty((*batch, a.shape[-2], b.shape[-1]))


@_fake("matmul_into")
def _matmul_into(dst, a, b, bias=None, activation="identity", residual=None, alpha=1.0, beta=0.0):
    _check_width("matmul_into", "b", b.shape[-2], a.shape[-1])


@_fake("layer_norm")
def _layer_norm(x, weight=None, bias=None, eps=1e-5, residual=None):
    if weight is not None:
        _check_width("layer_norm", "weight", weight.shape[0], x.shape[-1])
    return x.new_empty(x.shape)


@_fake("rms_norm")
def _rms_norm(x, weight=None, eps=1e-6):
    if weight is not None:
        _check_width("rms_norm", "weight", weight.shape[0], x.shape[-1])
    return x.new_empty(x.shape)


@_fake("add_rms_norm")
def _add_rms_norm(x, residual, weight=None, eps=1e-6):
    if weight is not None:
        _check_width("add_rms_norm", "weight", weight.shape[0], x.shape[-1])
    return x.new_empty(x.shape), x.new_empty(x.shape)


@_fake("fused_mlp")
def _fused_mlp(x, up, down, gate=None, up_bias=None, down_bias=None, gate_bias=None, activation="silu"):
    _check_width("fused_mlp", "up", up.shape[1], x.shape[-1])
    _check_width("fused_mlp", "down", down.shape[1], up.shape[0])
    return x.new_empty((*x.shape[:-1], down.shape[0]))


def _attention_out(q, k, v):
    torch._check(
        q.dim() == 4 and k.dim() == 4 and v.dim() == 4,
        lambda: f"flash_attention: q {q.shape}, k {k.shape}, v {v.shape}; needed is [batch, heads, tokens, d]",
    )
    batch, heads, q_len, _ = q.shape
    return q.new_empty((batch, q_len, heads, v.shape[-1])).transpose(1, 2)


@_fake("flash_attention")
def _flash_attention(q, k, v, bias=None, causal=False, scale=None):
    return _attention_out(q, k, v)


@_fake("flash_attention_lse")
def _flash_attention_lse(q, k, v, bias=None, causal=False, scale=None):
    return _attention_out(q, k, v), q.new_empty(q.shape[:3], dtype=torch.float32)
