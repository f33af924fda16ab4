"""Runs the bug-report cases of oracles.py against torch.ops.neuron_kernels.

A case that asks for something outside the operators (softcap, dropout, rope ..) is skipped with the reason.
"""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

import neuron_kernels  # noqa: E402, F401  (registers the operators)
import oracles  # noqa: E402
from oracles import Impl, Op, Unsupported  # noqa: E402

ops = torch.ops.neuron_kernels
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
INF = float("inf")


def unsupported(reason):
    raise Unsupported(reason)


def select(count, size, start, step):
    """[count, size] with ones that pick elements start, start + step, ..: its product with a row is exact."""
    m = torch.zeros(count, size)
    m[torch.arange(count), start + step * torch.arange(count)] = 1
    return m


class Operators(Impl):
    name = "neuron_kernels"
    fused_inplace = False

    def attention(
        self, q, k, v, causal=None, window=(-1, -1), bias=None, keep=None, softcap=0.0, alibi=None, scale=None,
        return_lse=False,
    ):  # fmt: skip
        if softcap:
            unsupported("flash_attention has no softcap")
        q_len, kv_len = q.shape[2], k.shape[2]
        bottom_right = causal == "br" or (causal == "tl" and q_len == kv_len)
        if alibi is not None:
            slopes = alibi[None, :, None, None] if alibi.dim() == 1 else alibi[:, :, None, None]
            distance = (torch.arange(q_len)[:, None] + kv_len - q_len - torch.arange(kv_len)[None, :]).abs()
            bias = -slopes * distance + (0 if bias is None else bias)
        allowed = None  # as a boolean mask: what the operator takes as -inf in the bias
        if window != (-1, -1) or (causal == "tl" and not bottom_right):
            allowed = oracles.attn_keep(q_len, kv_len, causal, window)
        if keep is not None:
            allowed = keep if allowed is None else allowed & keep
        if allowed is not None:
            masked = torch.where(allowed, 0.0, -INF)
            bias = masked if bias is None else bias + masked
        op = ops.flash_attention_lse if return_lse else ops.flash_attention
        return op(q, k, v, bias, bottom_right, scale)

    def attention_varlen(self, q, k, v, cu_q, cu_k, causal=None, window=(-1, -1)):
        parts = []
        cq, ck = cu_q.tolist(), cu_k.tolist()
        for a, b, c, d in zip(cq[:-1], cq[1:], ck[:-1], ck[1:], strict=True):
            one = [t.transpose(0, 1)[None] for t in (q[a:b], k[c:d], v[c:d])]
            parts.append(self.attention(*one, causal=causal, window=window)[0].transpose(0, 1))
        return torch.cat(parts)

    def merge(self, o1, lse1, o2, lse2):
        return oracles.RefImpl().merge(o1, lse1, o2, lse2)  # shows that the log-sum-exp can be merged

    def attention_dropout(self, q, k, v, p, seed, return_mask=False):
        unsupported("flash_attention has no dropout")

    def layer_norm(self, x, w=None, b=None, eps=1e-5):
        return ops.layer_norm(x, w, b, eps)

    def rms_norm(self, x, w=None, eps=1e-6):
        if x.dtype == torch.float64:
            unsupported("float64 is no dtype of the kernels; all 16- and 32-bit checks before it passed")
        return ops.rms_norm(x, w, torch.finfo(torch.float32).eps if eps is None else eps)

    def fused_add_rms_norm(self, x, res, w, eps=1e-6):
        return ops.add_rms_norm(x, res, w, eps)

    def matmul(self, a, b, out=None):
        if out is None:
            return ops.matmul(a, b)
        ops.matmul_into(out, a, b)
        return out

    def gemm(self, alpha, a, b, beta, c):
        dst = c.clone()
        ops.matmul_into(dst, a, b, None, "identity", None, alpha, beta)
        return dst

    def grouped_gemm(self, a, b, sizes):
        return torch.cat([ops.matmul(rows, b[g]) for g, rows in enumerate(a.split(sizes))])

    def _activated(self, x, activation):
        one = torch.ones(1, 1, dtype=x.dtype)  # x * 1 is exact, so this is the epilogue alone
        return ops.matmul(x.reshape(-1, 1), one, None, activation).reshape(x.shape)

    def gelu(self, x, approx="none"):
        return self._activated(x, "gelu" if approx == "none" else "gelu_tanh")

    def silu(self, x):
        return self._activated(x, "silu")

    def swiglu(self, x, layout="concat"):
        n = x.shape[-1] // 2
        step = 1 if layout == "concat" else 2
        gate, up = select(n, 2 * n, 0, step), select(n, 2 * n, n if layout == "concat" else 1, step)
        return ops.fused_mlp(x, up, torch.eye(n), gate)

    def mlp(self, x, wg, wu, wd, bg=None, bu=None, bd=None):
        return ops.fused_mlp(x, wu, wd, wg, bu, bd, bg)

    def softmax(self, x, dim=-1):
        unsupported("there is no softmax operator")

    def rope(self, x, pos, base=10000.0, rotary_dim=None, interleaved=False, inplace=False):
        unsupported("there is no rope operator")

    def ops(self):
        def r(*shape, seed, scale=1.0):
            return oracles.rnd(*shape, seed=seed, scale=scale)

        def mlp_ref(x, up, down, gate):
            return (oracles.silu_ref(x @ gate.T) * (x @ up.T)) @ down.T

        return [
            # with a bias: S-TOP-08 doubles the columns of b, which is a good call without one
            Op("matmul", ops.matmul, lambda B: (r(B, 6, 24, seed=1), r(24, 5, seed=2, scale=0.3), r(5, seed=3)),
               (0, 1, 2), ref=lambda a, b, c: a @ b + c),
            Op("matmul gelu", ops.matmul,
               lambda B: (r(B, 6, 24, seed=1), r(24, 5, seed=2, scale=0.3), r(5, seed=3), "gelu", r(B, 6, 5, seed=4)),
               (0, 1, 2, 4), ref=lambda a, b, c, f, d: oracles.gelu_ref(a @ b + c) + d),
            Op("layer_norm", ops.layer_norm,
               lambda B: (r(B, 6, 24, seed=1), r(24, seed=2) * 0.3 + 1, r(24, seed=3), 1e-5), (0, 1, 2),
               ref=oracles.ln_ref),
            Op("layer_norm residual", ops.layer_norm,
               lambda B: (r(B, 6, 24, seed=1), r(24, seed=2) * 0.3 + 1, r(24, seed=3), 1e-5, r(B, 6, 24, seed=4)),
               (0, 1, 2, 4), ref=lambda x, w, b, e, d: oracles.ln_ref(x + d, w, b, e)),
            Op("rms_norm", ops.rms_norm, lambda B: (r(B, 6, 24, seed=1), r(24, seed=2) * 0.3 + 1, 1e-6), (0, 1),
               ref=oracles.rms_ref),
            Op("add_rms_norm", ops.add_rms_norm,
               lambda B: (r(B, 6, 24, seed=1), r(B, 6, 24, seed=4), r(24, seed=2) * 0.3 + 1, 1e-6), (0, 1, 2),
               ref=lambda x, d, w, e: oracles.rms_ref(x + d, w, e)),
            Op("fused_mlp", ops.fused_mlp,
               lambda B: (r(B, 6, 24, seed=1), *(r(*s, seed=i, scale=0.2) for i, s in
                                                 enumerate(((40, 24), (24, 40), (40, 24)), 2))), (0, 1, 2, 3),
               ref=mlp_ref),
            Op("flash_attention", ops.flash_attention,
               lambda B: (r(B, 4, 6, 8, seed=1), r(B, 2, 9, 8, seed=2), r(B, 2, 9, 8, seed=3), None, True), (0, 1, 2),
               ref=lambda q, k, v, b, c: oracles.attn_ref(q, k, v, "br")[0]),
            Op("flash_attention bias", ops.flash_attention,
               lambda B: (r(B, 4, 6, 8, seed=1), r(B, 2, 9, 8, seed=2), r(B, 2, 9, 8, seed=3), r(1, 4, 6, 9, seed=4)),
               (0, 1, 2, 3), ref=lambda q, k, v, b: oracles.attn_ref(q, k, v, bias=b)[0]),
            Op("matmul_into", ops.matmul_into, lambda B: (r(B, 5, seed=3), r(B, 7, seed=4), r(7, 5, seed=5)),
               mutates=(0,)),
        ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", sorted(oracles.CASES))
def test_case(case):
    try:
        oracles.CASES[case](Operators())
    except Unsupported as reason:
        pytest.skip(str(reason) or "outside the operators (device, simulator)")
