"""Derivatives against float64 autograd, and autocast."""

import pytest
import references as ref
import torch
from calls import NAMES, calls, ops, tensors
from references import normal

f64 = torch.float64


def in_float64(name, arguments):
    """The call in float64 PyTorch, differentiable; same results as the operator."""
    a = [t.detach().to(f64).requires_grad_() if isinstance(t, torch.Tensor) else t for t in arguments]
    if name.startswith("matmul"):
        return a, [_matmul(*a)]
    if name.startswith("layer_norm"):
        return a, [_layer_norm(*a)]
    if name == "rms_norm":
        return a, [_rms(*a)]
    if name == "add_rms_norm":
        return a, [_rms(a[0] + a[1], *a[2:]), a[0] + a[1]]
    if "mlp" in name:
        return a, [_mlp(*a)]
    return a, list(_attention(*a))[: 2 if name.endswith("lse") else 1]


def _matmul(a, b, bias=None, activation="identity", residual=None, alpha=1.0):
    z = alpha * (a @ b)
    y = ref.ACTIVATIONS[activation](z if bias is None else z + bias)
    return y if residual is None else y + residual


def _layer_norm(x, weight=None, bias=None, eps=1e-5, residual=None):
    return torch.nn.functional.layer_norm(x if residual is None else x + residual, x.shape[-1:], weight, bias, eps)


def _rms(x, weight, eps):
    return x / (x * x).mean(-1, keepdim=True).add(eps).sqrt() * weight


def _mlp(x, up, down, gate, up_bias, down_bias, gate_bias, activation):
    act, u = ref.ACTIVATIONS[activation], x @ up.T + up_bias
    h = act(u) if gate is None else act(x @ gate.T + gate_bias) * u
    return h @ down.T + down_bias


def _attention(q, k, v, bias=None, causal=False, scale=None):
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    s = (q @ k.mT) * (q.shape[-1] ** -0.5 if scale is None else scale) + (0 if bias is None else bias)
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:]).tril(s.shape[-1] - s.shape[-2]) == 0, float("-inf"))
    return s.softmax(-1) @ v, s.logsumexp(-1)


def _run(name, arguments, wanting):
    operator = calls()[name][0]
    a = [t.clone().requires_grad_(i in wanting) if isinstance(t, torch.Tensor) else t for i, t in enumerate(arguments)]
    results = tensors(operator(*a))
    gradients = [normal(*t.shape, seed=50 + i).to(t.dtype) for i, t in enumerate(results)]
    return torch.autograd.grad(results, [a[i] for i in wanting], gradients), gradients


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name):
    arguments = calls()[name][1]
    wanting = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
    got, incoming = _run(name, arguments, wanting)
    a, results = in_float64(name, arguments)
    want = torch.autograd.grad(results, [a[i] for i in wanting], [g.to(f64) for g in incoming])
    for i, g, w in zip(wanting, got, want, strict=True):
        assert g.dtype == arguments[i].dtype
        assert (g - w).abs().max() <= 2e-5 * w.abs().max().clamp(min=1), f"gradient of argument {i}"
    for i in wanting:  # alone, as with frozen weights
        (alone,), _ = _run(name, arguments, [i])
        assert torch.equal(alone, got[wanting.index(i)])


def test_no_graph_without_gradients():
    x, w = normal(3, 8, seed=1).requires_grad_(), normal(8, seed=2)
    with torch.no_grad():
        assert not ops.rms_norm(x, w).requires_grad
    assert not ops.rms_norm(x.detach(), w).requires_grad
    with torch.inference_mode():
        assert ops.rms_norm(x, w).is_inference()


def test_rows_without_keys_have_zero_gradients():
    q, k, v = (normal(1, 1, n, 8, seed=n).requires_grad_() for n in (5, 2, 2))
    v = normal(1, 1, 2, 8, seed=9).requires_grad_()
    out = ops.flash_attention(q, k, v, None, True)
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), torch.ones_like(out))
    assert bool((out[:, :, :3] == 0).all()) and bool((dq[:, :, :3] == 0).all())
    assert all(bool(g.isfinite().all()) for g in (dq, dk, dv))


def test_matmul_into_says_that_it_has_no_derivative():
    a, b = normal(3, 4, seed=1).requires_grad_(), normal(4, 5, seed=2)
    with pytest.raises(RuntimeError, match="matmul_into: an argument requires grad.*use matmul"):
        ops.matmul_into(torch.zeros(3, 5), a, b)
    with torch.no_grad():
        ops.matmul_into(torch.zeros(3, 5), a, b)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "f16"])
def test_autocast(name, dtype):
    """Mixed dtypes work; products run in autocast's dtype as torch.matmul, norms in their input's as torch's."""
    operator, arguments = calls()[name]
    if "norm" not in name:
        want = dtype
    else:
        want = torch.float32
    mixed = [t.to(dtype) if i == 1 and isinstance(t, torch.Tensor) else t for i, t in enumerate(arguments)]
    a = [t.clone().requires_grad_() if isinstance(t, torch.Tensor) else t for t in mixed]
    with torch.autocast("cpu", dtype=dtype):
        results = tensors(operator(*a))
    assert results[0].dtype == want
    for got, exact in zip(results, tensors(operator(*arguments)), strict=True):
        assert (got.float() - exact).abs().max() <= 0.04 * exact.abs().max().clamp(min=1)
    sum(t.float().sum() for t in results).backward()
    assert all(t.grad.dtype == t.dtype and bool(t.grad.isfinite().all()) for t in a if isinstance(t, torch.Tensor))


@pytest.mark.parametrize("name", NAMES)
def test_16_bit_inputs_without_autocast(name):
    operator, arguments = calls(dtype=torch.bfloat16)[name]
    assert tensors(operator(*arguments))[0].dtype == torch.bfloat16
