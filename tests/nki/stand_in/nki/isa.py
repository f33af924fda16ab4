"""nki.isa: the instructions that emitted kernels use, each with the checks that its page demands.

Source of every rule: AWS Neuron SDK, nki/api/nki/isa, the docstring of the function of that name.
"""

from enum import Enum

import numpy as np

from nki import language as nl
from nki.limits import limits, start_partition_ok

engine = Enum("engine", {"unknown": 0, "tensor": 1, "scalar": 2, "gpsimd": 3, "dma": 4, "vector": 5, "sync": 6})
_engines = engine  # for functions with a parameter of that name
dge_mode = Enum("dge_mode", {"unknown": 0, "swdge": 1, "hwdge": 2, "none": 3})
oob_mode = Enum("oob_mode", {"error": 0, "skip": 1})
matmul_perf_mode = Enum("matmul_perf_mode", {"none": 0, "double_row": 1})
reduce_cmd = Enum("reduce_cmd", {"idle": 0, "reset": 1, "reduce": 2, "reset_reduce": 3, "load_reduce": 4})


def _tile(t, *buffers):
    """A view that an engine can access, in one of the buffers."""
    lim = limits()
    assert isinstance(t, nl.NkiTensor) and t.buffer in buffers, f"in {t.buffer}, allowed are {buffers}"
    partitions, free = t.shape[0], t.shape[1:]
    assert partitions <= lim.partitions and len(free) <= lim.access_dims
    assert start_partition_ok(t.first_partition, partitions), f"{partitions} partitions from {t.first_partition}"
    most = lim.psum_access if t.buffer == nl.psum else lim.sbuf_access
    assert np.prod(free) <= most, f"{free} elements in a partition"


def _on_chip(*tiles):
    for t in tiles:
        _tile(t, nl.sbuf, nl.psum)


def _same(dst, *sources):
    for s in sources:
        assert s.shape[0] == dst.shape[0] and np.prod(s.shape[1:]) == np.prod(dst.shape[1:]), (dst.shape, s.shape)


def _not_both_in_psum(a, b):
    assert not (a.buffer == nl.psum and b.buffer == nl.psum), "two sources in PSUM"


def _engine(given, *allowed, tiles=()):
    assert given == engine.unknown or given in allowed, f"{given}, allowed are {allowed}"
    assert given != engine.gpsimd or all(t.buffer == nl.sbuf for t in tiles), "GpSimd does not reach PSUM"


def _operand(k, data):
    """A number, or a column of f32 as an array that broadcasts along every free axis of data."""
    if not isinstance(k, nl.NkiTensor):
        return np.float32(k)
    _on_chip(k)
    assert k.shape == (data.shape[0], 1) and k.dtype == nl.float32, (k.shape, k.dtype)
    return k.data.reshape(-1, *[1] * (data.data.ndim - 1))


def _alu(op, a, b):
    assert op in nl.ALU
    with np.errstate(all="ignore"):
        return op(a, b, dtype=np.float32)


def _dma(dst, src, mode):
    for t in (dst, src):
        assert t.buffer != nl.psum, "DMA does not reach PSUM"
        if t.on_chip:
            _tile(t, nl.sbuf)
    assert mode != dge_mode.hwdge or limits().generation >= 3


def dma_copy(
    dst,
    src,
    priority=None,
    oob_mode=oob_mode.error,
    dge_mode=dge_mode.unknown,
    engine=engine.unknown,
    name=None,
):
    assert priority is None and engine.name == "unknown" and oob_mode.name == "error"
    _dma(dst, src, dge_mode)
    assert dst.shape == src.shape, f"{dst.shape} = {src.shape}"
    dst.write(src.data, by="dma")


def dma_transpose(dst, src, axes=None, priority=None, dge_mode=dge_mode.unknown, oob_mode=oob_mode.error, name=None):
    assert priority is None and oob_mode.name == "error"
    assert limits().generation >= 3, "trn1 has no DMA transpose"
    _dma(dst, src, dge_mode)
    assert dst.buffer == nl.sbuf and dst.dtype == src.dtype and src.dtype.itemsize == 2
    assert src.ndim == 2 and axes in (None, (1, 0)) and src.shape[1] <= 128
    assert dge_mode.name in ("unknown", "hwdge")
    assert dge_mode.name == "unknown" or src.shape[0] == 16
    assert dst.shape == src.shape[::-1]
    dst.write(src.data.T.copy(), by="dma")


def nc_matmul(
    dst,
    stationary,
    moving,
    is_stationary_onezero=False,
    is_moving_onezero=False,
    is_transpose=False,
    accumulate=None,
    tile_position=(),
    tile_size=(),
    perf_mode=matmul_perf_mode.none,
    name=None,
):
    assert not (is_stationary_onezero or is_moving_onezero or is_transpose or tile_position or tile_size)
    assert perf_mode.name == "none"
    lim = limits()
    _tile(stationary, nl.sbuf)
    _tile(moving, nl.sbuf)
    _tile(dst, nl.psum)
    (k, m), (k_moving, n) = stationary.shape, moving.shape
    assert k == k_moving and dst.shape == (m, n), (stationary.shape, moving.shape, dst.shape)
    assert k <= lim.partitions and m <= lim.stationary_fmax and n <= lim.moving_fmax
    assert (stationary.dtype == nl.float32) == (moving.dtype == nl.float32), "f32 pairs with f32"
    assert dst.dtype == nl.float32 or (lim.generation >= 4 and dst.dtype == nl.bfloat16)
    if lim.generation < 4 and (n == 1 or dst.data.strides[1] == 4):  # one bank
        first = dst.free_offset * 4 % lim.psum_bank_bytes
        assert first + n * 4 <= lim.psum_bank_bytes, "crosses a PSUM bank"
    with np.errstate(all="ignore"):
        product = np.matmul(stationary.data.T, moving.data)
    if accumulate is None:
        assert dst.by_matmul.all() or not dst.by_matmul.any()
        accumulate = dst.by_matmul.all()
    if accumulate:
        assert dst.by_matmul.all(), "accumulates on what no matmul wrote"
        product = dst.data + product
    dst.write(product, by="matmul")


def nc_transpose(dst, data, engine=engine.unknown, name=None):
    lim = limits()
    assert engine.name in ("tensor", "vector"), "emitted sources say which"
    assert dst.dtype == data.dtype and dst.shape == data.shape[::-1], (dst.shape, data.shape)
    if engine.name == "tensor":
        _tile(data, nl.sbuf)
        _tile(dst, nl.psum)
        assert max(data.shape) <= 128
        assert lim.generation >= 3 or np.isfinite(data.data).all(), "not exact on NeuronCore-v2"
    else:
        _on_chip(data, dst)
        assert max(data.shape) <= 32
    dst.write(data.data.T.copy(), by="transpose")


def memset(dst, value, engine=engine.unknown, name=None):
    _on_chip(dst)
    _engine(engine, _engines.vector, _engines.gpsimd, tiles=(dst,))
    dst.write(np.full(dst.shape, value, np.float32), by="memset")


def tensor_copy(dst, src, engine=engine.unknown, name=None):
    _on_chip(dst, src)
    _same(dst, src)
    _engine(engine, _engines.vector, _engines.scalar, _engines.gpsimd, tiles=(dst, src))
    assert engine != _engines.scalar or limits().generation >= 3, "trn1: activation with nl.copy"
    dst.write(src.data.copy(), by="copy")


def tensor_reduce(dst, op, data, axis, negate=False, keepdims=False, name=None):
    _on_chip(dst, data)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    assert op in nl.REDUCE and not negate and not keepdims
    assert axes == tuple(range(data.ndim - len(axes), data.ndim)) and 0 not in axes, "the last free axes"
    with np.errstate(all="ignore"):
        value = nl.REDUCE[op](data.data, axis=axes, dtype=np.float32)
    assert value.shape[0] == dst.shape[0] and value.size == np.prod(dst.shape), (value.shape, dst.shape)
    dst.write(value, by="reduce")


def tensor_tensor(dst, data1, data2, op, engine=engine.unknown, name=None):
    _on_chip(dst, data1, data2)
    _same(dst, data1, data2)
    _not_both_in_psum(data1, data2)
    _engine(engine, _engines.vector, _engines.gpsimd, tiles=(dst, data1, data2))
    dst.write(_alu(op, data1.data, data2.data), by="vector")


def tensor_scalar(
    dst,
    data,
    op0,
    operand0,
    reverse0=False,
    op1=None,
    operand1=None,
    reverse1=False,
    engine=engine.unknown,
    name=None,
):
    assert not reverse0 and not reverse1 and (op1 is None) == (operand1 is None)
    _on_chip(dst, data)
    _same(dst, data)
    _engine(engine, _engines.vector, _engines.scalar)
    if engine == _engines.scalar:
        assert limits().generation >= 3
        assert (op0, op1) in ((nl.multiply, nl.add), (nl.multiply, None), (nl.add, None))
    value = _alu(op0, data.data, _operand(operand0, data))
    if op1 is not None:
        value = _alu(op1, value, _operand(operand1, data))
    dst.write(value, by="vector")


def tensor_scalar_reduce(
    dst,
    data,
    op0,
    operand0,
    reduce_op,
    reduce_res=None,
    reverse0=False,
    reduce_cmd=reduce_cmd.reset_reduce,
    reduce_init=None,
    reduce_res_negate=False,
    name=None,
):
    assert not reverse0 and reduce_cmd.name == "reset_reduce" and reduce_init is None and not reduce_res_negate
    _on_chip(dst, data, reduce_res)
    _same(dst, data)
    assert reduce_res.shape == (data.shape[0], 1) and reduce_op in nl.REDUCE
    value = _alu(op0, data.data, _operand(operand0, data))
    with np.errstate(all="ignore"):
        reduced = nl.REDUCE[reduce_op](value, axis=1, dtype=np.float32)
    dst.write(value, by="vector")
    reduce_res.write(reduced, by="vector")


def scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False, name=None):
    assert not reverse0 and not reverse1
    _on_chip(dst, data, operand1)
    _same(dst, data, operand1)
    _not_both_in_psum(data, operand1)
    value = _alu(op0, data.data, _operand(operand0, data))
    dst.write(_alu(op1, value, operand1.data), by="vector")


def tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False, name=None):
    assert not reverse0 and not reverse1
    _on_chip(dst, data0, data1)
    _same(dst, data0, data1)
    _not_both_in_psum(data0, data1)
    state = np.broadcast_to(_operand(initial, data0), (data0.shape[0], 1))[:, 0]
    value = np.empty(data0.shape, np.float32)
    for i in range(data0.shape[1]):
        state = value[:, i] = _alu(op1, _alu(op0, data0.data[:, i], state), data1.data[:, i])
    dst.write(value, by="vector")


def activation(
    dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle, name=None
):
    _on_chip(dst, data)
    _same(dst, data)
    assert op in nl.ACTIVATIONS
    assert bias is None or isinstance(bias, nl.NkiTensor) or limits().generation >= 3, "trn1: bias is a column"
    with np.errstate(all="ignore"):
        x = data.data * _operand(scale, data)
        value = op(x if bias is None else x + _operand(bias, data))
    if reduce_res is not None:
        assert reduce_op == nl.add and reduce_cmd.name == "reset_reduce"
        _on_chip(reduce_res)
        assert reduce_res.shape == (data.shape[0], 1)
        reduced = value.sum(axis=1, dtype=np.float32)
    dst.write(value, by="scalar")
    if reduce_res is not None:
        reduce_res.write(reduced, by="scalar")


def reciprocal(dst, data, name=None):
    _on_chip(dst, data)
    _same(dst, data)
    with np.errstate(all="ignore"):
        dst.write(np.float32(1) / data.data, by="vector")


def bn_stats(dst, data, name=None):
    _on_chip(dst, data)
    assert data.ndim == 2 and data.shape[1] <= limits().bn_stats_fmax
    assert dst.shape == (data.shape[0], 6)
    value = np.zeros(dst.shape, np.float32)
    for first in (0, 1):  # the even elements, the odd ones
        part = data.data[:, first::2].astype(np.float64)
        count = part.shape[1]
        value[:, 3 * first] = count
        if count > 0:
            value[:, 3 * first + 1] = part.mean(axis=1)
            value[:, 3 * first + 2] = part.var(axis=1) * count
    dst.write(value, by="vector")


def bn_aggr(dst, data, name=None):
    _on_chip(dst, data)
    assert dst.shape == (data.shape[0], 2) and data.shape[1] % 3 == 0
    count, mean, squares = (data.data[:, i::3].astype(np.float64) for i in range(3))
    whole = count.sum(axis=1)
    middle = (count * mean).sum(axis=1) / whole
    spread = (squares + count * (mean - middle[:, None]) ** 2).sum(axis=1) / whole
    dst.write(np.stack([middle, spread], axis=1), by="vector")


def affine_select(dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op=np.equal, offset=0, name=None):
    _tile(dst, nl.sbuf)
    _tile(on_true_tile, nl.sbuf)
    _same(dst, on_true_tile)
    assert 1 <= len(pattern) <= 4
    assert np.prod([n for _, n in pattern]) == np.prod(dst.shape[1:]), "pattern and free size"
    index = np.int64(offset) + channel_multiplier * np.arange(dst.shape[0], dtype=np.int64)[:, None]
    for step, n in pattern:
        index = (index[:, :, None] + step * np.arange(n)).reshape(dst.shape[0], -1)
    assert np.abs(index).max() < 2**31, "int32"
    keep = cmp_op(index, 0).reshape(dst.shape)
    dst.write(np.where(keep, on_true_tile.data.reshape(dst.shape), np.float32(on_false_value)), by="gpsimd")
