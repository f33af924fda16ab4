"""The stand-in itself: each instruction against its meaning, element by element, and each limit that it asserts."""

import inspect
import math

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
import signatures

RNG = np.random.default_rng(1)


@pytest.fixture(autouse=True)
def on_trn2(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")


@pytest.fixture
def on(monkeypatch):
    return lambda chip: monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", chip)


def tile(p, f, dtype=nl.float32, buffer=nl.sbuf, values=None):
    t = nl.ndarray((p, f), dtype=dtype, buffer=buffer)
    t.write(RNG.standard_normal((p, f)) if values is None else values, by="test")
    return t


def fresh(p, f, dtype=nl.float32, buffer=nl.sbuf):
    return nl.ndarray((p, f), dtype=dtype, buffer=buffer)


def rejected(call, *arguments, **named):
    with pytest.raises(AssertionError):
        call(*arguments, **named)


def test_signatures_are_those_of_the_documentation():
    for table, module in ((signatures.ISA, nisa), (signatures.LANGUAGE, nl)):
        for name, signature in table.items():
            parameters = inspect.signature(getattr(module, name)).parameters.values()
            assert tuple(p.name for p in parameters) == signature.all, name
            required = tuple(p.name for p in parameters if p.default is inspect.Parameter.empty)
            assert required == signature.required, name


def test_fresh_memory_is_nan():
    for buffer in (nl.sbuf, nl.psum, nl.shared_hbm):
        assert np.isnan(fresh(3, 4, buffer=buffer).data).all()


def test_rounding():
    x = np.array([1, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 3e38, 3.4e38, np.inf, np.nan, -0.0], np.float32)
    want = np.array([1, 1, 1 + 2**-6, 1 + 2**-7, 3e38, np.inf, np.inf, np.nan, -0.0])
    got = nl.round_to(x, nl.bfloat16)
    assert np.array_equal(np.delete(got, 4), np.delete(want, 4), equal_nan=True) and abs(got[4] / 3e38 - 1) < 2**-8
    assert nl.round_to(np.float32(70000), nl.float16) == np.inf and nl.round_to(x[1], nl.float16) == x[1]


def test_views():
    t = tile(8, 24)
    assert np.array_equal(t[2:6, nl.ds(3, 20)].data, t.data[2:6, 3:23])
    assert np.array_equal(t[:, 1:24:2].data, t.data[:, 1::2])
    split = t[:, 1:24:2].reshape_dim(1, (3, 4)).permute((0, 2, 1))
    for j in range(4):
        for b in range(3):
            assert np.array_equal(split.data[:, j, b], t.data[:, 1 + 2 * (4 * b + j)])
    row = nki.tensor(np.arange(6).reshape(1, 6)).broadcast(0, 4)
    assert np.array_equal(row.data, np.tile(np.arange(6), (4, 1)))
    assert t[4:8, nl.ds(5, 3)].first_partition == 4 and t[4:8, nl.ds(5, 3)].free_offset == 5
    for key in (
        (slice(0, 9), slice(None)),
        (slice(0, 8, 2), slice(None)),
        (0, slice(None)),
        (slice(None), nl.ds(20, 5)),
    ):
        rejected(t.__getitem__, key)
    rejected(t.permute, (1, 0))
    rejected(t.broadcast, 0, 2)
    rejected(t.reshape_dim, 1, (5, 5))


def test_allocation(on):
    rejected(fresh, 129, 4)
    rejected(fresh, 4, 57345)
    fresh(4, 57344)
    rejected(fresh, 4, 4097, buffer=nl.psum)
    rejected(nl.ndarray, (4, 4), nl.float32, buffer=nl.psum, address=(0, 4))
    rejected(nl.ndarray, (4, 4), nl.float32, buffer=nl.psum, address=(0, 8 * 2048))
    nl.ndarray((4, 4), nl.float32, buffer=nl.psum, address=(0, 7 * 2048))
    on("trn1")
    rejected(fresh, 4, 57344)


def test_placed_tiles_share_memory():
    a = nl.ndarray((4, 8), nl.float32, address=(0, 64))  # bytes 64 to 96
    b = nl.ndarray((4, 16), nl.bfloat16, address=(0, 80))  # bytes 80 to 112
    elsewhere = nl.ndarray((4, 16), nl.float32, buffer=nl.psum, address=(0, 0))
    unplaced = tile(4, 8)
    for t in (a, elsewhere):
        nisa.memset(dst=t, value=1.0)
    nisa.memset(dst=b[0:2, 2:5], value=2.0)  # bytes 84 to 90
    assert np.array_equal(np.isnan(a.data[0]), [False] * 5 + [True, True, False])
    assert not np.isnan(a.data[2:]).any() and np.isnan(b.data[0, :2]).all()
    assert (elsewhere.data == 1).all() and not np.isnan(unplaced.data).any()
    nisa.memset(dst=a[:, 7:8], value=1.0)  # bytes 92 to 96
    assert (b.data[0, 2:5] == 2).all() and np.isnan(b.data[0, 5:]).all()


def test_accesses():
    t = tile(128, 4)
    nisa.memset(dst=t[96:128, :], value=1.0)
    for p, n in ((1, 4), (32, 64), (64, 65), (16, 32)):
        if p + n <= 128:
            rejected(nisa.memset, dst=t[p : p + n, :], value=1.0)
    nisa.memset(dst=t[64:128, :], value=1.0)


def test_matmul():
    a, b, dst = tile(5, 3), tile(5, 7), fresh(3, 7, buffer=nl.psum)
    nisa.nc_matmul(dst=dst, stationary=a, moving=b, accumulate=False)
    want = np.array(
        [[sum(float(a.data[k, i]) * float(b.data[k, j]) for k in range(5)) for j in range(7)] for i in range(3)]
    )
    assert np.allclose(dst.data, want, rtol=1e-5, atol=1e-6)
    nisa.nc_matmul(dst=dst, stationary=a, moving=b, accumulate=True)
    assert np.allclose(dst.data, 2 * want, rtol=1e-5, atol=1e-6)
    nisa.nc_matmul(dst=dst, stationary=a, moving=b)
    assert np.allclose(dst.data, 3 * want, rtol=1e-5, atol=1e-6)


def test_matmul_limits(on):
    a, b = tile(4, 4), tile(4, 512)
    psum = fresh(4, 1024, buffer=nl.psum)
    rejected(nisa.nc_matmul, fresh(4, 512), a, b)
    rejected(nisa.nc_matmul, psum[:, 0:512], tile(4, 4, buffer=nl.psum), b)
    rejected(nisa.nc_matmul, psum[:, 100:612], a, b)
    rejected(nisa.nc_matmul, psum[:, 0:512], a, tile(4, 512, nl.bfloat16))
    rejected(nisa.nc_matmul, psum[:, 0:513], a, tile(4, 513))
    rejected(nisa.nc_matmul, fresh(129, 1, buffer=nl.shared_hbm), tile(4, 129), tile(4, 1))
    rejected(nisa.nc_matmul, fresh(4, 512, nl.bfloat16, nl.psum), a, b)
    rejected(nisa.nc_matmul, psum[:, 0:512], tile(5, 4), b)
    nisa.memset(dst=psum, value=0.0)
    rejected(nisa.nc_matmul, psum[:, 0:512], a, b, accumulate=True)
    nisa.nc_matmul(psum[:, 0:512], a, b, accumulate=False)
    nisa.nc_matmul(psum[:, 0:1023:2], a, b, accumulate=False)
    on("trn3")
    nisa.nc_matmul(fresh(4, 1024, nl.bfloat16, nl.psum), a, tile(4, 1024))


def test_transposes(on):
    a = tile(20, 30, nl.bfloat16)
    dst = fresh(30, 20, nl.bfloat16, nl.psum)
    nisa.nc_transpose(dst=dst, data=a, engine=nisa.engine.tensor)
    assert np.array_equal(dst.data, a.data.T)
    rejected(nisa.nc_transpose, fresh(30, 20, nl.bfloat16), a, nisa.engine.tensor)
    rejected(nisa.nc_transpose, fresh(30, 20, buffer=nl.psum), a, nisa.engine.tensor)
    rejected(nisa.nc_transpose, fresh(33, 20), tile(20, 33), nisa.engine.vector)
    turned = fresh(30, 20)
    b = tile(20, 30)
    nisa.nc_transpose(dst=turned, data=b, engine=nisa.engine.vector)
    assert np.array_equal(turned.data, b.data.T)
    by_dma = fresh(30, 20, nl.bfloat16)
    nisa.dma_transpose(dst=by_dma, src=a)
    assert np.array_equal(by_dma.data, a.data.T)
    rejected(nisa.dma_transpose, fresh(30, 20), b)
    rejected(nisa.dma_transpose, dst, a)
    rejected(nisa.dma_transpose, by_dma, a, dge_mode=nisa.dge_mode.hwdge)
    rejected(nisa.dma_transpose, by_dma, a, dge_mode=nisa.dge_mode.swdge)
    on("trn1")
    rejected(nisa.dma_transpose, by_dma, a)
    a.write(np.full(a.shape, np.inf), by="test")
    rejected(nisa.nc_transpose, dst, a, nisa.engine.tensor)


def test_copies(on):
    hbm = nki.tensor(RNG.standard_normal((6, 9)))
    t = fresh(6, 9, nl.bfloat16)
    nisa.dma_copy(dst=t, src=hbm)
    assert np.array_equal(t.data, nl.round_to(hbm.data, nl.bfloat16))
    rejected(nisa.dma_copy, t[:, 0:8], hbm)
    rejected(nisa.dma_copy, hbm, tile(6, 9, buffer=nl.psum))
    rejected(nisa.dma_copy, hbm.broadcast, 0, 2)
    psum = fresh(6, 9, buffer=nl.psum)
    nisa.tensor_copy(dst=psum, src=t)
    assert np.array_equal(psum.data, t.data)
    rejected(nisa.tensor_copy, t, psum, engine=nisa.engine.gpsimd)
    rejected(nisa.tensor_copy, t, psum, engine=nisa.engine.tensor)
    nisa.tensor_copy(dst=t, src=psum, engine=nisa.engine.scalar)
    nisa.memset(dst=t, value=0.1)
    assert (t.data == nl.round_to(np.float32(0.1), nl.bfloat16)).all()
    rejected(nisa.memset, t, 0.0, engine=nisa.engine.scalar)
    on("trn1")
    rejected(nisa.tensor_copy, t, psum, engine=nisa.engine.scalar)
    rejected(nisa.dma_copy, t, hbm, dge_mode=nisa.dge_mode.hwdge)


SCALAR_OPS = {
    nl.add: lambda a, b: a + b,
    nl.subtract: lambda a, b: a - b,
    nl.multiply: lambda a, b: a * b,
    nl.maximum: max,
    nl.minimum: min,
}


@pytest.mark.parametrize("op", SCALAR_OPS, ids=lambda op: op.__name__)
def test_arithmetic(op):
    f = SCALAR_OPS[op]
    a, b, column, dst = tile(3, 5), tile(3, 5), tile(3, 1), fresh(3, 5)

    def check(want):
        for i in range(3):
            for j in range(5):
                assert dst.data[i, j] == np.float32(want(i, j))

    A, B, C = a.data, b.data, column.data
    nisa.tensor_tensor(dst=dst, data1=a, data2=b, op=op)
    check(lambda i, j: f(A[i, j], B[i, j]))
    nisa.tensor_scalar(dst=dst, data=a, op0=op, operand0=0.7)
    check(lambda i, j: f(A[i, j], np.float32(0.7)))
    nisa.tensor_scalar(dst=dst, data=a, op0=op, operand0=column, op1=nl.subtract, operand1=0.5)
    check(lambda i, j: f(A[i, j], C[i, 0]) - np.float32(0.5))
    nisa.scalar_tensor_tensor(dst=dst, data=a, op0=nl.subtract, operand0=column, op1=op, operand1=b)
    check(lambda i, j: f(A[i, j] - C[i, 0], B[i, j]))
    nisa.tensor_tensor_scan(dst=dst, data0=a, data1=b, initial=column, op0=nl.multiply, op1=op)
    for i in range(3):
        state = C[i, 0]
        for j in range(5):
            state = f(A[i, j] * state, B[i, j])
            assert dst.data[i, j] == state


def test_arithmetic_limits(on):
    a, b, dst = tile(3, 5), tile(3, 5), fresh(3, 5)
    pa, pb = tile(3, 5, buffer=nl.psum), tile(3, 5, buffer=nl.psum)
    rejected(nisa.tensor_tensor, dst, pa, pb, nl.add)
    rejected(nisa.scalar_tensor_tensor, dst, pa, nl.add, 1.0, nl.add, pb)
    rejected(nisa.tensor_tensor_scan, dst, pa, pb, 0.0, nl.add, nl.add)
    rejected(nisa.tensor_tensor, dst, a, pb, nl.add, engine=nisa.engine.gpsimd)
    rejected(nisa.tensor_tensor, dst, a, b, nl.add, engine=nisa.engine.scalar)
    rejected(nisa.tensor_tensor, dst, a, tile(3, 4), nl.add)
    rejected(nisa.tensor_tensor, dst, a, b, nl.exp)
    rejected(nisa.tensor_scalar, dst, a, nl.add, tile(3, 1, nl.bfloat16))
    rejected(nisa.tensor_scalar, dst, a, nl.add, tile(3, 2))
    rejected(nisa.tensor_scalar, dst, a, nl.maximum, 1.0, engine=nisa.engine.scalar)
    rejected(nisa.tensor_scalar, dst, a, nl.add, 1.0, engine=nisa.engine.gpsimd)
    rejected(nisa.tensor_scalar, dst, a, nl.add, 1.0, op1=nl.add)
    nisa.tensor_scalar(dst, a, nl.multiply, 2.0, op1=nl.add, operand1=1.0, engine=nisa.engine.scalar)
    on("trn1")
    rejected(nisa.tensor_scalar, dst, a, nl.add, 1.0, engine=nisa.engine.scalar)


def test_reductions():
    a = tile(3, 12)
    for op, f in ((nl.add, math.fsum), (nl.maximum, max), (nl.minimum, min)):
        dst = fresh(3, 1)
        nisa.tensor_reduce(dst=dst, op=op, data=a, axis=1)
        assert np.allclose(dst.data[:, 0], [f(row) for row in a.data.tolist()], rtol=1e-5, atol=1e-6)
        parts = fresh(3, 4)
        nisa.tensor_reduce(dst=parts, op=op, data=a.reshape_dim(1, (4, 3)), axis=2)
        for j in range(4):
            want = [f(row[3 * j : 3 * j + 3]) for row in a.data.tolist()]
            assert np.allclose(parts.data[:, j], want, rtol=1e-5, atol=1e-6)
        rounded, column = fresh(3, 12, nl.bfloat16), fresh(3, 1)
        nisa.tensor_scalar_reduce(rounded, a, nl.multiply, 2.0, op, column)
        assert np.allclose(column.data[:, 0], [2 * f(row) for row in a.data.tolist()], rtol=1e-5, atol=1e-6)
        assert np.array_equal(rounded.data, nl.round_to(2 * a.data, nl.bfloat16))
    rejected(nisa.tensor_reduce, fresh(3, 1), nl.add, a, 0)
    rejected(nisa.tensor_reduce, fresh(3, 4), nl.add, a.reshape_dim(1, (4, 3)), 1)
    rejected(nisa.tensor_reduce, fresh(3, 2), nl.add, a, 1)
    rejected(nisa.tensor_reduce, fresh(3, 1), nl.subtract, a, 1)


FUNCTIONS = {
    nl.copy: lambda x: x,
    nl.exp: math.exp,
    nl.log: lambda x: math.log(x) if x > 0 else math.nan,
    nl.tanh: math.tanh,
    nl.erf: math.erf,
    nl.sigmoid: lambda x: 1 / (1 + math.exp(-x)),
    nl.rsqrt: lambda x: x**-0.5 if x > 0 else math.nan,
    nl.square: lambda x: x * x,
    nl.relu: lambda x: max(x, 0),
    nl.silu: lambda x: x / (1 + math.exp(-x)),
    nl.gelu: lambda x: x * (1 + math.erf(x / 2**0.5)) / 2,
    nl.gelu_apprx_tanh: lambda x: x * (1 + math.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_activation(op):
    assert set(FUNCTIONS) == nl.ACTIVATIONS
    a, scale, bias, total = tile(3, 8), tile(3, 1), tile(3, 1), fresh(3, 1)
    dst = fresh(3, 8, nl.bfloat16)
    column = {"reduce_op": nl.add, "reduce_res": total, "reduce_cmd": nisa.reduce_cmd.reset_reduce}
    nisa.activation(dst, op, a, scale=scale, bias=bias, **column)
    for i in range(3):
        x = [float(v) * float(scale.data[i, 0]) + float(bias.data[i, 0]) for v in a.data[i]]
        want = [FUNCTIONS[op](v) for v in x]
        assert np.allclose(dst.data[i], want, rtol=2**-7, atol=1e-5, equal_nan=True)
        assert np.allclose(total.data[i, 0], sum(want), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_activation_limits(on):
    a, dst = tile(3, 8), fresh(3, 8)
    rejected(nisa.activation, dst, nl.add, a)
    rejected(nisa.activation, dst, nl.exp, a, scale=tile(3, 8))
    rejected(nisa.activation, dst, nl.exp, a, reduce_op=nl.maximum, reduce_res=fresh(3, 1))
    nisa.activation(dst, nl.exp, a, bias=1.0)
    on("trn1")
    rejected(nisa.activation, dst, nl.exp, a, bias=1.0)


def test_statistics():
    for n in (1, 2, 7, 512):
        a = tile(3, n, values=RNG.standard_normal((3, n)) + 5)
        stats, dst = fresh(3, 6), fresh(3, 2)
        nisa.bn_stats(dst=stats, data=a)
        nisa.bn_aggr(dst=dst, data=stats)
        assert np.allclose(dst.data[:, 0], a.data.mean(axis=1), rtol=1e-5)
        assert np.allclose(dst.data[:, 1], a.data.astype(np.float64).var(axis=1), rtol=1e-4, atol=1e-6)
    rejected(nisa.bn_stats, stats, tile(3, 513))
    rejected(nisa.bn_aggr, dst, tile(3, 7))
    inverse = fresh(3, 2)
    nisa.reciprocal(dst=inverse, data=dst)
    assert np.array_equal(inverse.data, np.float32(1) / dst.data)


@pytest.mark.parametrize(("step", "multiplier", "offset"), [(-1, 1, 3), (1, -1, -2), (2, -3, 1)])
def test_affine_select(step, multiplier, offset):
    a, dst = tile(6, 9), fresh(6, 9)
    nisa.affine_select(
        dst=dst,
        pattern=[[step, 9]],
        channel_multiplier=multiplier,
        on_true_tile=a,
        on_false_value=-7.0,
        cmp_op=nl.greater_equal,
        offset=offset,
    )
    for i in range(6):
        for j in range(9):
            assert dst.data[i, j] == (a.data[i, j] if offset + multiplier * i + step * j >= 0 else -7)
    rejected(nisa.affine_select, fresh(6, 9, buffer=nl.psum), [[1, 9]], 1, a, 0.0)
    rejected(nisa.affine_select, dst, [[1, 9]], 1, tile(6, 9, buffer=nl.psum), 0.0)
    rejected(nisa.affine_select, dst, [[1, 8]], 1, a, 0.0)
