"""Values of the operators against float64, for dtypes, sizes and strides; errors; threads."""

import neuron_kernels  # noqa: F401  (registers the operators)
import pytest
import references as ref
import torch
from references import DTYPES, assert_close, normal

ops = torch.ops.neuron_kernels
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).removeprefix("torch."))


def layouts(t):
    """The same values in memory as users have it: dense, transposed, with gaps, at an odd offset."""
    yield t.clone()
    yield t.transpose(-1, -2).contiguous().transpose(-1, -2)
    wide = torch.full((*t.shape[:-1], t.shape[-1] + 3), float("nan"), dtype=t.dtype)
    wide[..., 1:-2] = t
    yield wide[..., 1:-2]
    flat = torch.full((t.numel() + 1,), float("nan"), dtype=t.dtype)
    flat[1:] = t.reshape(-1)
    yield flat[1:].view(t.shape)


@each_dtype
@pytest.mark.parametrize("m,n,k", [(1, 1, 1), (1, 576, 192), (7, 33, 65), (31, 1, 17), (64, 80, 128), (3, 5, 0)])
def test_matmul_sizes(dtype, m, n, k):
    a, b = normal(m, k, seed=1, dtype=dtype), normal(k, n, seed=2, dtype=dtype)
    got = ops.matmul(a, b)
    assert got.dtype == dtype and got.is_contiguous()
    assert_close(got, *ref.matmul(a, b))


@each_dtype
@pytest.mark.parametrize("activation", ref.ACTIVATIONS)
def test_matmul_epilogue(dtype, activation):
    a, b = normal(2, 9, 24, seed=1, dtype=dtype), normal(24, 37, seed=2, dtype=dtype, scale=0.3)
    bias, residual = normal(37, seed=3), normal(2, 9, 37, seed=4, dtype=dtype)
    got = ops.matmul(a, b, bias, activation, residual, 0.5)
    assert_close(got, *ref.matmul(a, b, bias, activation, residual, 0.5))


@pytest.mark.parametrize(
    "a_sizes,b_sizes",
    [
        ((2, 3, 4, 5), (5, 6)),
        ((2, 3, 4, 5), (2, 3, 5, 6)),
        ((1, 4, 5), (3, 5, 6)),
        ((3, 1, 4, 5), (1, 2, 5, 6)),
        ((4, 5), (2, 5, 6)),
    ],
)
def test_matmul_batches(a_sizes, b_sizes):
    a, b = normal(*a_sizes, seed=1), normal(*b_sizes, seed=2)
    assert_close(ops.matmul(a, b), *ref.matmul(a, b))


def test_matmul_strides():
    a, b = normal(3, 8, 9, seed=1), normal(9, 7, seed=2)
    want = ref.matmul(a, b)
    for x in [*layouts(a), a.transpose(0, 1).contiguous().transpose(0, 1)]:
        for y in layouts(b):
            assert_close(ops.matmul(x, y), *want)
    assert_close(ops.matmul(a[:1].expand(3, 8, 9), b), *ref.matmul(a[:1].expand(3, 8, 9), b))


def test_matmul_into_writes_only_dst():
    a, b = normal(6, 5, seed=1), normal(5, 7, seed=2)
    memory = torch.full((6, 20), 9.0)
    dst = memory[:, 1:15:2]
    version = dst._version
    assert ops.matmul_into(dst, a, b) is None
    assert dst._version > version
    assert_close(dst, *ref.matmul(a, b))
    assert bool((memory[:, 0::2] == 9).all()) and bool((memory[:, 15:] == 9).all())
    dst.fill_(float("nan"))
    ops.matmul_into(dst, a, b, None, "identity", None, 2.0, 0.0)  # beta 0 does not read dst
    want, bound = ref.matmul(a, b, alpha=2.0)
    assert_close(dst, want, bound)
    ops.matmul_into(dst, a, b, None, "identity", None, 1.0, 3.0)
    assert_close(dst, 2.5 * want + want, 8 * bound + 1e-5)


@each_dtype
@pytest.mark.parametrize(
    "sizes", [(1,), (5,), (1, 1, 576), (3, 2, 33), (2, 3, 4, 65), (2, 1, 3, 2, 17), (4, 0), (0, 7)]
)
def test_norms(dtype, sizes):
    x, residual = normal(*sizes, seed=1, dtype=dtype), normal(*sizes, seed=2, dtype=dtype)
    weight, bias = normal(sizes[-1], seed=3) * 0.3 + 1, normal(sizes[-1], seed=4)
    y, total = ops.add_rms_norm(x, residual, weight, 1e-6)
    if x.numel() == 0:
        assert y.shape == total.shape == ops.rms_norm(x).shape == ops.layer_norm(x, weight, bias).shape == x.shape
        return
    assert_close(ops.rms_norm(x, weight, 1e-6), *ref.rms_norm(x, weight, 1e-6))
    assert_close(ops.layer_norm(x, weight, bias, 1e-5), *ref.layer_norm(x, weight, bias, 1e-5))
    assert_close(ops.layer_norm(x, weight, bias, 1e-5, residual), *ref.layer_norm(x, weight, bias, 1e-5, residual))
    assert torch.equal(total, x + residual)
    assert_close(y, *ref.rms_norm(total, weight, 1e-6))


def test_norm_strides():
    x, weight, bias = normal(2, 6, 24, seed=1), normal(24, seed=2), normal(24, seed=3)
    for t in layouts(x):
        assert_close(ops.rms_norm(t, weight), *ref.rms_norm(x, weight, 1e-6))
        assert_close(ops.layer_norm(t, weight, bias), *ref.layer_norm(x, weight, bias, 1e-5))
        y, total = ops.add_rms_norm(t, x, weight)
        assert torch.equal(total, x + x) and y.is_contiguous()
    every_second = normal(48, seed=4)[::2]
    assert_close(ops.rms_norm(x, every_second), *ref.rms_norm(x, every_second, 1e-6))


@each_dtype
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("sizes", [(24,), (1, 24), (2, 5, 24), (2, 2, 3, 24), (1, 2, 1, 3, 24), (0, 24)])
def test_fused_mlp(dtype, gated, sizes):
    up, gate = (normal(40, 24, seed=s, dtype=dtype, scale=0.3) for s in (1, 2))
    down = normal(24, 40, seed=3, dtype=dtype, scale=0.3)
    biases = [normal(40, seed=4), normal(24, seed=5), normal(40, seed=6)]
    x = normal(*sizes, seed=7, dtype=dtype)
    for activation in ("silu", "gelu", "gelu_tanh", "relu"):
        args = (x, up, down, gate if gated else None, biases[0], biases[1], biases[2] if gated else None, activation)
        assert_close(ops.fused_mlp(*args), *ref.fused_mlp(*args))


def test_fused_mlp_strides():
    """GPT-2 keeps its weights transposed."""
    x, up, down = normal(2, 6, 24, seed=1), normal(40, 24, seed=2, scale=0.3), normal(24, 40, seed=3, scale=0.3)
    want = ref.fused_mlp(x, up, down, activation="gelu_tanh")
    for t in layouts(x):
        for u in layouts(up):
            got = ops.fused_mlp(t, u, down.t().contiguous().t(), activation="gelu_tanh")
            assert_close(got, *want)


@each_dtype
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "q_len,kv_len,d,dv", [(1, 1, 8, 8), (1, 300, 64, 64), (5, 5, 64, 64), (33, 70, 40, 24), (6, 2, 16, 16)]
)
def test_attention(dtype, causal, q_len, kv_len, d, dv):
    q, k = normal(2, 6, q_len, d, seed=1, dtype=dtype), normal(2, 2, kv_len, d, seed=2, dtype=dtype)
    v = normal(2, 2, kv_len, dv, seed=3, dtype=dtype)
    want, bound, want_lse = ref.attention(q, k, v, None, causal)
    got, lse = ops.flash_attention_lse(q, k, v, None, causal)
    assert_close(got, want, bound)
    finite = want_lse.isfinite()
    assert torch.equal(lse.isneginf(), ~finite)
    assert bool(((lse - want_lse)[finite].abs() <= 1e-5).all())
    assert torch.equal(ops.flash_attention(q, k, v, None, causal), got)
    assert got.transpose(1, 2).is_contiguous()


@pytest.mark.parametrize("sizes", [(9,), (1,), (7, 9), (2, 1, 1, 9), (1, 4, 7, 1), (2, 4, 7, 9)])
def test_attention_bias(sizes):
    q, k, v = normal(2, 4, 7, 16, seed=1), normal(2, 2, 9, 16, seed=2), normal(2, 2, 9, 16, seed=3)
    bias = normal(*sizes, seed=4)
    if bias.shape[-1] == 9:
        bias[..., 2] = float("-inf")
    want, bound, _ = ref.attention(q, k, v, bias, False, 0.3)
    assert_close(ops.flash_attention(q, k, v, bias, False, 0.3), want, bound + 1e-6 * want.abs())


def test_attention_strides():
    q, k, v = normal(2, 4, 6, 16, seed=1), normal(2, 2, 9, 16, seed=2), normal(2, 2, 9, 16, seed=3)
    want, bound, _ = ref.attention(q, k, v)
    for a in (*layouts(q), q.transpose(1, 2).contiguous().transpose(1, 2)):
        for b in (k.clone(), k.transpose(1, 2).contiguous().transpose(1, 2), torch.cat([k, k], -1)[..., :16]):
            assert_close(ops.flash_attention(a, b, v), want, bound)


X, W = normal(4, 8, seed=1), normal(8, 6, seed=2)
Q = normal(1, 4, 3, 8, seed=3)


@pytest.mark.parametrize(
    "call,said",
    [
        (lambda: ops.matmul(X, X), ["matmul", "argument b", "8"]),
        (lambda: ops.matmul(X, W.double()), ["matmul", "argument b", "Double", "Float"]),
        (lambda: ops.matmul(X.int(), W.int()), ["matmul", "argument a", "Int", "BFloat16"]),
        (lambda: ops.matmul(X, W.bfloat16()), ["matmul", "argument b", "bf16", "f32"]),
        (lambda: ops.matmul(X[0], W), ["matmul", "[8]", "ranks 2 to 4"]),
        (lambda: ops.matmul(X, W, X[0]), ["matmul", "argument bias", "8", "6"]),
        (lambda: ops.matmul(X, W, None, "swish"), ["matmul", "argument activation", "swish", "silu"]),
        (lambda: ops.matmul(normal(2, 4, 8), normal(3, 8, 6)), ["matmul", "batch"]),
        (lambda: ops.matmul_into(X, X, normal(8, 8)), ["argument dst"]),
        (lambda: ops.rms_norm(torch.tensor(1.0)), ["rms_norm", "argument x", "scalar"]),
        (lambda: ops.rms_norm(X, W), ["argument weight"]),
        (lambda: ops.rms_norm(X, normal(16)), ["argument weight", "16", "8"]),
        (lambda: ops.rms_norm(X > 0), ["argument x", "Bool"]),
        (lambda: ops.layer_norm(X, normal(16), None), ["argument weight", "16", "8"]),
        (lambda: ops.layer_norm(X, None, None, 1e-5, X[:2]), ["argument residual", "[2, 8]", "[4, 8]"]),
        (lambda: ops.add_rms_norm(X, X.bfloat16()), ["argument residual", "BFloat16", "Float"]),
        (lambda: ops.add_rms_norm(X, X[:, :4]), ["argument residual", "[4, 4]", "[4, 8]"]),
        (lambda: ops.fused_mlp(X, W, W), ["fused_mlp", "argument up"]),
        (lambda: ops.fused_mlp(X, W.t(), X[0]), ["argument down", "[8]"]),
        (lambda: ops.fused_mlp(X, W.t(), W, None, None, None, None, "exp"), ["argument activation", "exp"]),
        (lambda: ops.fused_mlp(X.to(torch.complex64), W.t(), W), ["argument x", "Complex"]),
        (lambda: ops.flash_attention(X, X, X), ["argument q", "[4, 8]", "[batch, heads, tokens, d]"]),
        (lambda: ops.flash_attention(Q, Q, Q[:, :, :2]), ["argument v", "2", "3"]),
        (lambda: ops.flash_attention(Q, Q[:, :3], Q[:, :3]), ["3", "4", "multiple"]),
        (lambda: ops.flash_attention(Q, Q, Q, normal(2, 3)), ["argument bias", "2"]),
        (lambda: ops.flash_attention(normal(1, 1, 2, 300), *[normal(1, 1, 2, 300)] * 2), ["300", "256"]),
    ],
)
def test_errors_name_argument_given_and_allowed(call, said):
    with pytest.raises(ValueError) as error:
        call()
    assert all(word in str(error.value) for word in said), str(error.value)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def test_bitwise_equal_for_any_number_of_threads(threads):
    x, w = normal(70, 192, seed=1), normal(192, 300, seed=2, scale=0.1)
    up, gate, down = normal(300, 192, seed=3), normal(300, 192, seed=4), normal(192, 300, seed=5)
    q, k = normal(1, 6, 70, 32, seed=6), normal(1, 2, 2000, 32, seed=7)

    def everything():
        yield ops.matmul(x, w)
        yield ops.matmul(x[:1], w)
        yield ops.layer_norm(x)
        yield from ops.add_rms_norm(x, x)
        yield ops.fused_mlp(x, up, down, gate)
        yield ops.fused_mlp(x[:1], up, down, gate)
        yield ops.flash_attention(q, k, k, None, True)
        yield from ops.flash_attention_lse(q[:, :, :1], k, k)  # split over the keys

    threads(1)
    want = list(everything())
    for n in (2, 3, 7):
        threads(n)
        for i, (a, b) in enumerate(zip(everything(), want, strict=True)):
            assert torch.equal(a, b), f"result {i} differs between 1 and {n} threads"


def test_number_of_threads_is_honoured(threads):
    """With one thread no other thread of the process computes: its CPU time is the whole process's."""
    import time

    threads(1)
    a = normal(400, 400, seed=1)
    ops.matmul(a, a)
    process, own = time.process_time(), time.thread_time()
    for _ in range(20):
        ops.matmul(a, a)
    process, own = time.process_time() - process, time.thread_time() - own
    assert process <= 1.05 * own + 0.01


def test_calls_from_several_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor

    x, up, down = normal(50, 64, seed=1), normal(96, 64, seed=2), normal(64, 96, seed=3)
    want = ops.fused_mlp(x, up, down)
    with ThreadPoolExecutor(4) as pool:
        assert all(torch.equal(y, want) for y in pool.map(lambda _: ops.fused_mlp(x, up, down), range(40)))
