"""nki.language: dtypes, buffers, tensors and their views, operators."""

import math
import weakref
from dataclasses import dataclass

import numpy as np

from nki.limits import limits


@dataclass(frozen=True)
class DType:
    name: str
    itemsize: int


float32 = DType("float32", 4)
bfloat16 = DType("bfloat16", 2)
float16 = DType("float16", 2)

sbuf, psum, shared_hbm, private_hbm = "sbuf", "psum", "shared_hbm", "private_hbm"
hbm = private_hbm


def dtype_of_array(array):
    name = (array.dtype.metadata or {}).get("nki", str(array.dtype))
    return {"float32": float32, "float16": float16, "bfloat16": bfloat16}[name]


def round_to(x, dtype):
    """f32 numbers rounded to dtype, to nearest even; NaN stays NaN."""
    x = np.asarray(x, np.float32)
    if dtype == float32:
        return x
    if dtype == float16:
        with np.errstate(over="ignore"):
            return x.astype(np.float16).astype(np.float32)
    bits = np.ascontiguousarray(x).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), np.float32(np.nan), rounded.reshape(x.shape))


class ds:  # noqa: N801
    """`size` elements from `start` on."""

    def __init__(self, start, size):
        self.start, self.size = start, size


class Storage:
    """What an ndarray allocates: f32 numbers that dtype can represent."""

    placed = weakref.WeakSet()  # those with an address, which may overlap

    def __init__(self, shape, dtype, buffer, address):
        self.data = np.full(shape, np.nan, np.float32)
        self.by_matmul = np.zeros(shape, bool) if buffer == psum else None  # what the last write of each was
        self.dtype, self.buffer = dtype, buffer
        self.columns = math.prod(shape[1:])  # of one partition
        self.begin = None if address is None else address[1]
        if self.begin is not None:
            Storage.placed.add(self)

    def overwrite(self, rows, begin, end):
        """Something else was written to these bytes of these partitions."""
        first, last = (begin - self.begin) // self.dtype.itemsize, -((self.begin - end) // self.dtype.itemsize)
        if last > 0 and first < self.columns:
            self.data.reshape(-1, self.columns)[rows, max(first, 0) : last] = np.nan


class NkiTensor:
    """A view of some storage."""

    def __init__(self, shape, dtype, buffer, address=None):
        self.storage = Storage(shape, dtype, buffer, address)
        self.dtype, self.buffer = dtype, buffer
        self.data, self.by_matmul, self.read_only = self.storage.data, self.storage.by_matmul, False

    @property
    def shape(self):
        return self.data.shape

    @property
    def ndim(self):
        return self.data.ndim

    @property
    def on_chip(self):
        return self.buffer in (sbuf, psum)

    @property
    def offset(self):
        """In elements, from the start of the storage."""
        whole = self.storage.data.__array_interface__["data"][0]
        return (self.data.__array_interface__["data"][0] - whole) // 4

    @property
    def first_partition(self):
        return self.offset // self.storage.columns

    @property
    def free_offset(self):
        return self.offset % self.storage.columns

    def _view(self, of):
        view = NkiTensor.__new__(NkiTensor)
        view.__dict__.update(self.__dict__)
        view.data = of(self.data)
        if self.by_matmul is not None:
            view.by_matmul = of(self.by_matmul)
        return view

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        assert Ellipsis not in key and len(key) == self.ndim, f"{len(key)} indices into {self.shape}"
        parts = []
        for d, (k, n) in enumerate(zip(key, self.shape, strict=True)):
            if isinstance(k, ds):
                k = slice(k.start, k.start + k.size)
            if isinstance(k, slice):
                start, stop, step = k.start or 0, n if k.stop is None else k.stop, k.step or 1
                assert 0 <= start < stop <= n and step >= 1, f"[{start}:{stop}:{step}] of {n} in dimension {d}"
                k = slice(start, stop, step)
            else:
                assert 0 <= k < n, f"[{k}] of {n} in dimension {d}"
                assert not self.on_chip, "an integer index of a tile"
            parts.append(k)
        assert not self.on_chip or parts[0].step == 1, "partitions are contiguous"
        return self._view(lambda a: a[tuple(parts)])

    def reshape_dim(self, dim, shape):
        assert not self.on_chip or dim > 0
        assert math.prod(shape) == self.shape[dim], f"{shape} of {self.shape[dim]}"
        whole = self.shape[:dim] + tuple(shape) + self.shape[dim + 1 :]

        def split(a):
            inner, strides = a.strides[dim], []
            for n in reversed(shape):
                strides.insert(0, inner)
                inner *= n
            all_strides = a.strides[:dim] + tuple(strides) + a.strides[dim + 1 :]
            return np.lib.stride_tricks.as_strided(a, whole, all_strides)

        return self._view(split)

    def permute(self, dims):
        assert sorted(dims) == list(range(self.ndim))
        assert not self.on_chip or dims[0] == 0, "partitions stay outermost"
        return self._view(lambda a: a.transpose(dims))

    def broadcast(self, dim, size):
        assert self.shape[dim] == 1
        assert not self.on_chip or dim > 0
        view = self._view(lambda a: np.broadcast_to(a, a.shape[:dim] + (size,) + a.shape[dim + 1 :]))
        view.read_only = True
        return view

    def write(self, values, by):
        assert not self.read_only
        self.data[...] = round_to(np.asarray(values, np.float32).reshape(self.shape), self.dtype)
        if self.by_matmul is not None:
            self.by_matmul[...] = by == "matmul"
        if self.storage.begin is not None:
            self._overwrite_others()

    def _overwrite_others(self):
        """What lay in the same bytes before is lost: tiles that still need it are seen to have NaN."""
        size = self.dtype.itemsize
        span = sum((n - 1) * stride // 4 for n, stride in zip(self.shape[1:], self.data.strides[1:], strict=True)) + 1
        begin = self.storage.begin + self.free_offset * size
        rows = slice(self.first_partition, self.first_partition + self.shape[0])
        for other in Storage.placed:
            if other is not self.storage and other.buffer == self.buffer:
                other.overwrite(rows, begin, begin + span * size)


def ndarray(shape, dtype, buffer=sbuf, name="", address=None):
    del name
    if buffer in (sbuf, psum):
        lim = limits()
        size = math.prod(shape[1:]) * dtype.itemsize
        room = lim.psum_bank_bytes * lim.psum_banks if buffer == psum else lim.sbuf_bytes
        begin = 0 if address is None else address[1]
        assert len(shape) >= 2 and shape[0] <= lim.partitions, f"a tile of {shape}"
        assert begin + size <= room, f"{begin} + {size} bytes in a partition of {buffer}, which has {room}"
        assert begin % (lim.psum_bank_bytes if buffer == psum else dtype.itemsize) == 0, f"address {address}"
    assert all(n >= 1 for n in shape) or buffer in (shared_hbm, private_hbm)
    return NkiTensor(tuple(shape), dtype, buffer, address)


class _TileSize:
    pmax = property(lambda _: limits().partitions)
    bn_stats_fmax = property(lambda _: limits().bn_stats_fmax)
    gemm_moving_fmax = property(lambda _: 512)
    gemm_stationary_fmax = property(lambda _: limits().stationary_fmax)
    psum_bank_fmax_bytes = property(lambda _: limits().psum_bank_bytes)
    psum_bank_fmax = property(lambda _: limits().psum_bank_bytes // 4)


tile_size = _TileSize()

# Operators, on f32 arrays. nki/api/nki.api.shared.rst has the table of their names.
add, subtract, multiply, maximum, minimum = np.add, np.subtract, np.multiply, np.maximum, np.minimum
greater_equal = np.greater_equal
ALU = {add, subtract, multiply, maximum, minimum}
REDUCE = {add: np.add.reduce, multiply: np.multiply.reduce, maximum: np.maximum.reduce, minimum: np.minimum.reduce}


def _in_double(f):
    def function(x):
        with np.errstate(all="ignore"):
            return np.asarray(f(np.asarray(x, np.float64))).astype(np.float32)

    return function


def _stable_sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), 1 - 1 / (1 + np.exp(-np.abs(x))))


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _gelu_apprx_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


copy = _in_double(lambda x: x)
exp = _in_double(np.exp)
log = _in_double(np.log)
tanh = _in_double(np.tanh)
erf = _in_double(_erf)
sigmoid = _in_double(_stable_sigmoid)
rsqrt = _in_double(lambda x: 1 / np.sqrt(x))
square = _in_double(np.square)
relu = _in_double(lambda x: np.maximum(x, 0))
silu = _in_double(lambda x: x * _stable_sigmoid(x))
gelu = _in_double(lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))))
gelu_apprx_tanh = _in_double(_gelu_apprx_tanh)
ACTIVATIONS = {copy, exp, log, tanh, erf, sigmoid, rsqrt, square, relu, silu, gelu, gelu_apprx_tanh}
