"""What the operators must give, in float64, with the bound within which they must give it."""

import math

import torch

F32 = 2.0**-24  # unit roundoff of the sums
UNIT = {torch.float32: 2.0**-24, torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
DTYPES = tuple(UNIT)
f64 = torch.float64

ACTIVATIONS = {
    "identity": lambda z: z,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda z: torch.nn.functional.gelu(z, approximate="tanh"),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}


def normal(*sizes, seed=0, dtype=torch.float32, scale=1.0):
    """Seeded normal values, rounded to dtype."""
    values = torch.randn(*sizes, generator=torch.Generator().manual_seed(seed), dtype=f64)
    return (values * scale).to(dtype)


def assert_close(got, want, bound):
    """Each element within its bound; the worst one is printed."""
    assert got.shape == want.shape, f"sizes {tuple(got.shape)}, expected {tuple(want.shape)}"
    error = (got.to(f64) - want).abs()
    inside = error <= bound
    if not bool(inside.all()):
        excess = (error - bound).nan_to_num(nan=math.inf).flatten()
        i = int(excess.argmax())
        g, w, b = (t.flatten()[i].item() for t in (got, want, bound.expand_as(want)))
        raise AssertionError(
            f"{int((~inside).sum())} of {got.numel()} elements outside their bound; worst is element {i}: "
            f"got {g}, expected {w} +- {b}"
        )


def matmul(a, b, bias=None, activation="identity", residual=None, alpha=1.0):
    """Value and bound: one rounding of the result, k roundings of float32 sums; activations stretch by 1.13 at most."""
    unit = UNIT[a.dtype]
    a, b = a.to(f64), b.to(f64)
    z, size = alpha * (a @ b), abs(alpha) * (a.abs() @ b.abs())
    if bias is not None:
        z, size = z + bias.to(f64), size + bias.to(f64).abs()
    y = ACTIVATIONS[activation](z)
    rest = 0 if residual is None else residual.to(f64)
    bound = unit * (y + rest).abs() + 1.13 * (a.shape[-1] + 8) * F32 * size + 8 * F32 * (y.abs() + abs(rest)) + 1e-30
    return y + rest, bound


def layer_norm(x, weight, bias, eps, residual=None):
    total = x if residual is None else (x.to(torch.float32) + residual.to(torch.float32)).to(x.dtype)
    x64, w, b = total.to(f64), weight.to(f64), bias.to(f64)
    mean = x64.mean(-1, keepdim=True)
    std = ((x64 - mean) ** 2).mean(-1, keepdim=True).add(eps).sqrt()
    y = (x64 - mean) / std * w + b
    n = x.shape[-1]
    mean_error = n * F32 * x64.abs().mean(-1, keepdim=True) / std
    return y, UNIT[x.dtype] * y.abs() + (mean_error + (n + 16) * F32 * (y.abs() + b.abs())) * (1 + w.abs())


def rms_norm(x, weight, eps):
    x64 = x.to(f64)
    y = x64 / (x64 * x64).mean(-1, keepdim=True).add(eps).sqrt() * weight.to(f64)
    return y, (UNIT[x.dtype] + (x.shape[-1] + 16) * F32) * y.abs() + 1e-30


def fused_mlp(x, up, down, gate=None, up_bias=None, down_bias=None, gate_bias=None, activation="silu"):
    """Value and bound; the hidden activation may be rounded to x's dtype on the way."""
    unit = UNIT[x.dtype]
    x, up, down = x.to(f64), up.to(f64), down.to(f64)

    def linear(weight, bias):
        z, size = x @ weight.T, x.abs() @ weight.T.abs()
        return (z, size) if bias is None else (z + bias.to(f64), size + bias.to(f64).abs())

    u, u_size = linear(up, up_bias)
    u_error = (x.shape[-1] + 8) * F32 * u_size
    if gate is None:
        h, h_error = ACTIVATIONS[activation](u), 1.13 * u_error
    else:
        g, g_size = linear(gate.to(f64), gate_bias)
        a = ACTIVATIONS[activation](g)
        h = a * u
        h_error = a.abs() * u_error + 1.13 * (x.shape[-1] + 8) * F32 * g_size * (u.abs() + u_error)
    h_error = h_error + (unit + 16 * F32) * h.abs()
    y = h @ down.T if down_bias is None else h @ down.T + down_bias.to(f64)
    sums = (down.shape[-1] + 8) * F32 * (h.abs() @ down.T.abs())
    return y, unit * y.abs() + h_error @ down.T.abs() + sums + 8 * F32 * y.abs() + 1e-30


def attention(q, k, v, bias=None, causal=False, scale=None):
    """Value, bound and log-sum-exp. A row without keys is 0 and -inf."""
    unit = UNIT[q.dtype]
    group = q.shape[1] // k.shape[1]
    q, k, v = q.to(f64), k.to(f64).repeat_interleave(group, 1), v.to(f64).repeat_interleave(group, 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = scale * (q @ k.mT)
    score_error = (q.shape[-1] + 8) * F32 * abs(scale) * (q.abs() @ k.abs().mT) + 4 * F32 * s.abs()
    if bias is not None:
        s = s + bias.to(f64)
    if causal:
        q_len, kv_len = s.shape[-2:]
        s = s.masked_fill(torch.ones(q_len, kv_len).tril(kv_len - q_len) == 0, -math.inf)
    lse = torch.logsumexp(s, -1)
    p = (s - lse.masked_fill(lse.isneginf(), 0).unsqueeze(-1)).exp()
    y = p @ v
    # p rounded to the inputs' dtype before p v; each score's error e changes p by 2 e p at most
    p_error = p * (2 * score_error.amax(-1, keepdim=True) + unit + (k.shape[-2] + 32) * F32)
    return y, unit * y.abs() + 2 * p_error @ v.abs() + 1e-30, lse
