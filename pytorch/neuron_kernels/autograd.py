"""Derivatives of the operators, in PyTorch operations on float32, and their behaviour under torch.autocast.

The forward runs on the C++ kernels; the backward recomputes what it needs from the inputs.
"""

import torch
from torch import Tensor
from torch.amp.autocast_mode import _cast

from ._build import NAMESPACE
from ._ops import ops

_LIBRARY = torch.library.Library(NAMESPACE, "FRAGMENT")
_aten = torch.ops.aten

# Derivative of each activation: (incoming gradient, pre-activation) -> gradient.
_ACTIVATION_BACKWARD = {
    "identity": lambda g, z: g,
    "relu": lambda g, z: _aten.threshold_backward(g, z, 0),
    "silu": lambda g, z: _aten.silu_backward(g, z),
    "gelu": lambda g, z: _aten.gelu_backward(g, z, approximate="none"),
    "gelu_tanh": lambda g, z: _aten.gelu_backward(g, z, approximate="tanh"),
    "sigmoid": lambda g, z: _aten.sigmoid_backward(g, z.sigmoid()),
    "tanh": lambda g, z: _aten.tanh_backward(g, z.tanh()),
}
ACTIVATIONS = {
    "identity": lambda z: z,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda z: torch.nn.functional.gelu(z, approximate="tanh"),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}


def _f32(t):
    return None if t is None else t.to(torch.float32)


def _like(gradient, t):
    """gradient with the sizes and the dtype of the input that it belongs to."""
    return None if t is None else gradient.sum_to_size(t.shape).to(t.dtype)


def _register(name, backward, scalars):
    """backward(tensors, scalars, *gradients) gives one gradient per tensor argument, in order, or None."""
    schema = getattr(ops, name).default._schema
    is_scalar = [argument.name in scalars for argument in schema.arguments]

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*(x for x, s in zip(inputs, is_scalar, strict=True) if not s))
        ctx.scalars = [x for x, s in zip(inputs, is_scalar, strict=True) if s]

    def run(ctx, *gradients):
        result = iter(backward(ctx.saved_tensors, ctx.scalars, *gradients))
        return tuple(None if s else next(result) for s in is_scalar)

    torch.library.register_autograd(f"{NAMESPACE}::{name}", run, setup_context=setup_context)


def _matmul_backward(tensors, scalars, g):
    a, b, bias, residual = tensors
    activation, alpha = scalars
    a32, b32, g32 = _f32(a), _f32(b), _f32(g)
    dz = g32
    if activation != "identity":
        z = alpha * (a32 @ b32)
        dz = _ACTIVATION_BACKWARD[activation](g32, z if bias is None else z + _f32(bias))
    da = alpha * (dz @ b32.transpose(-1, -2))
    db = alpha * (a32.transpose(-1, -2) @ dz)
    return _like(da, a), _like(db, b), _like(dz, bias), _like(g32, residual)


def _layer_norm_backward(tensors, scalars, g):
    x, weight, bias, residual = tensors
    (eps,) = scalars
    x32, g32 = _f32(x if residual is None else x + residual), _f32(g)
    centred = x32 - x32.mean(-1, keepdim=True)
    rstd = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + eps)
    normal = centred * rstd
    gw = g32 if weight is None else g32 * _f32(weight)
    dx = rstd * (gw - gw.mean(-1, keepdim=True) - normal * (gw * normal).mean(-1, keepdim=True))
    return _like(dx, x), _like(g32 * normal, weight), _like(g32, bias), _like(dx, residual)


def _rms_backward(x, weight, eps, g):
    x32, g32 = _f32(x), _f32(g)
    rstd = torch.rsqrt((x32 * x32).mean(-1, keepdim=True) + eps)
    normal = x32 * rstd
    gw = g32 if weight is None else g32 * _f32(weight)
    return rstd * (gw - normal * (gw * normal).mean(-1, keepdim=True)), _like(g32 * normal, weight)


def _rms_norm_backward(tensors, scalars, g):
    x, weight = tensors
    dx, dweight = _rms_backward(x, weight, scalars[0], g)
    return _like(dx, x), dweight


def _add_rms_norm_backward(tensors, scalars, g, g_sum):
    x, residual, weight = tensors
    dx, dweight = _rms_backward(x + residual, weight, scalars[0], g)
    dx = dx + _f32(g_sum)
    return _like(dx, x), _like(dx, residual), dweight


def _fused_mlp_backward(tensors, scalars, g):
    x, up, down, gate, up_bias, down_bias, gate_bias = tensors
    (activation,) = scalars
    slope = _ACTIVATION_BACKWARD[activation]

    def linear(weight, bias):
        return torch.nn.functional.linear(rows, _f32(weight), _f32(bias))

    rows = _f32(x).reshape(-1, x.shape[-1])
    g32 = _f32(g).reshape(-1, g.shape[-1])
    u = linear(up, up_bias)
    dh = g32 @ _f32(down)
    if gate is None:
        h = ACTIVATIONS[activation](u)
        du = slope(dh, u)
        dx, dgate, dz = du @ _f32(up), None, None
    else:
        z = linear(gate, gate_bias)
        h = ACTIVATIONS[activation](z) * u
        du = dh * ACTIVATIONS[activation](z)
        dz = slope(dh * u, z)
        dx, dgate = du @ _f32(up) + dz @ _f32(gate), (dz.t() @ rows).to(gate.dtype)
    return (
        dx.reshape(x.shape).to(x.dtype),
        (du.t() @ rows).to(up.dtype),
        (g32.t() @ h).to(down.dtype),
        dgate,
        _like(du, up_bias),
        _like(g32, down_bias),
        _like(dz, gate_bias),
    )


def _attention_backward(tensors, scalars, g, g_lse=None):
    """dS = P (dP - sum(dP P) + dlse), per group of query heads that share a key head. Takes O(q_len kv_len) memory."""
    q, k, v, bias = tensors
    causal, scale = scalars
    batch, heads, q_len, d = q.shape
    kv_heads, kv_len = k.shape[1], k.shape[2]
    group = heads // kv_heads if kv_heads != 0 else 1
    scale = d**-0.5 if scale is None else scale

    def grouped(t):  # [batch, kv_heads, group, ..]
        return _f32(t).reshape(batch, kv_heads, group, *t.shape[2:])

    q5, g5, k5, v5 = grouped(q), grouped(g), _f32(k).unsqueeze(2), _f32(v).unsqueeze(2)
    s = scale * (q5 @ k5.transpose(-1, -2))
    if bias is not None:
        full = _f32(bias).expand(batch, heads, q_len, kv_len)
        s = s + full.reshape(batch, kv_heads, group, q_len, kv_len)
    if causal:
        at = torch.arange(q_len, device=q.device).unsqueeze(1) + (kv_len - q_len)
        s = s.masked_fill(torch.arange(kv_len, device=q.device) > at, float("-inf"))
    p = torch.softmax(s, -1).masked_fill(torch.isneginf(s), 0.0)  # a row without keys: softmax NaN, here 0
    dp = g5 @ v5.transpose(-1, -2)
    rest = (dp * p).sum(-1, keepdim=True)
    if g_lse is not None:
        rest = rest - grouped(g_lse).unsqueeze(-1)
    ds = p * (dp - rest)
    dq = (scale * (ds @ k5)).reshape(q.shape)
    dk = scale * (ds.transpose(-1, -2) @ q5).sum(2)
    dv = (p.transpose(-1, -2) @ g5).sum(2)
    dbias = None if bias is None else _like(ds.reshape(batch, heads, q_len, kv_len), bias)
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), dbias


_register("matmul", _matmul_backward, {"activation", "alpha"})
_register("layer_norm", _layer_norm_backward, {"eps"})
_register("rms_norm", _rms_norm_backward, {"eps"})
_register("add_rms_norm", _add_rms_norm_backward, {"eps"})
_register("fused_mlp", _fused_mlp_backward, {"activation"})
_register("flash_attention", _attention_backward, {"causal", "scale"})
_register("flash_attention_lse", _attention_backward, {"causal", "scale"})


def _matmul_into_autograd(keyset, dst, *args):
    if torch.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in (dst, *args)):
        raise RuntimeError("matmul_into: an argument requires grad, and writing into dst has no derivative; use matmul")
    with torch._C._AutoDispatchBelowAutograd():
        ops.matmul_into.default.redispatch(keyset & torch._C._after_autograd_keyset, dst, *args)


def _matmul_into_version(keyset, dst, *args):
    """Tells autograd that dst changed, as every in-place operator of PyTorch does."""
    torch.autograd.graph.increment_version(dst)
    with torch._C._AutoDispatchBelowADInplaceOrView():
        ops.matmul_into.default.redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, dst, *args)


_LIBRARY.impl("matmul_into", _matmul_into_autograd, "Autograd", with_keyset=True)
_LIBRARY.impl("matmul_into", _matmul_into_version, "ADInplaceOrView", with_keyset=True)


def _register_autocast(name, cast):
    """Under torch.autocast on the CPU the operator gets cast(its arguments)."""
    operator = getattr(ops, name).default
    autocast = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)

    def run(*args):
        with torch._C._ExcludeDispatchKeyGuard(autocast):
            return operator(*cast(args))

    _LIBRARY.impl(name, run, "AutocastCPU")


def _lower(count):
    """The first count arguments in autocast's dtype, as torch.matmul; biases and residuals may have any."""
    return lambda args: (*_cast(args[:count], "cpu", torch.get_autocast_dtype("cpu")), *args[count:])


def _widest(*positions):
    """The arguments at these positions in the widest of their dtypes, as x + residual."""

    def cast(args):
        tensors = [args[i] for i in positions if i < len(args) and isinstance(args[i], Tensor)]
        if len({t.dtype for t in tensors}) < 2 or not all(t.is_floating_point() for t in tensors):
            return args
        dtype = torch.promote_types(tensors[0].dtype, tensors[1].dtype)
        return tuple(a.to(dtype) if i in positions and isinstance(a, Tensor) else a for i, a in enumerate(args))

    return cast


_register_autocast("matmul", _lower(2))
_register_autocast("fused_mlp", _lower(7))
_register_autocast("flash_attention", _lower(3))
_register_autocast("flash_attention_lse", _lower(3))
_register_autocast("layer_norm", _widest(0, 4))
_register_autocast("add_rms_norm", _widest(0, 1))
