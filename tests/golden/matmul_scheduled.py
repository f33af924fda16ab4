"""matmul_scheduled for trn2, in NKI.

a [2, 1, 300, 256] bfloat16
b [2, 1, 256, 700] bfloat16
dst [2, 1, 300, 700] bfloat16, returned
row_bias [1, 700] float32
residual [2, 1, 300, 700] bfloat16
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


def placed_list(count, shape, dtype, buffer, address, stride, buffers, first):
    """`count` tiles of one shape in a ring of `buffers`, `stride` bytes apart from `address` on."""
    tiles = []
    for i in range(count):
        where = (0, address + (first + i) % buffers * stride)
        tiles.append(nl.ndarray(shape, dtype=dtype, buffer=buffer, address=where))
    return tiles


def load_transposed(dst, src, dge_mode=nisa.dge_mode.unknown):
    """dst [c, r] in SBUF = src^T, src [r, c] in HBM: in blocks of 128 rows, by the tensor engine through PSUM."""
    r, c = src.shape
    for begin in range(0, r, 128):
        rows = min(128, r - begin)
        block = nl.ndarray((rows, c), dtype=src.dtype, buffer=nl.sbuf)
        turned = nl.ndarray((c, rows), dtype=src.dtype, buffer=nl.psum)
        nisa.dma_copy(dst=block, src=src[nl.ds(begin, rows), :], dge_mode=dge_mode)
        nisa.nc_transpose(dst=turned, data=block, engine=nisa.engine.tensor)
        nisa.tensor_copy(dst=dst[:, nl.ds(begin, rows)], src=turned, engine=nisa.engine.vector)


@nki.jit
def matmul_scheduled(a, b, row_bias, residual):
    assert a.shape == (2, 1, 300, 256)
    assert b.shape == (2, 1, 256, 700)
    assert row_bias.shape == (1, 700)
    assert residual.shape == (2, 1, 300, 700)
    dst = nl.ndarray((2, 1, 300, 700), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    for i0 in range(2):
        for i1 in range(1):
            for i2 in range(1):
                for i3 in range(1):
                    for i4 in range(1):
                        b_1 = placed_list(
                            2,
                            (128, 512),
                            nl.bfloat16,
                            nl.sbuf,
                            address=0,
                            stride=1024,
                            buffers=4,
                            first=2 * (i4 + i3 + i2 + i1 + i0),
                        )
                        for i5 in range(2):
                            nisa.dma_copy(
                                dst=b_1[i5], src=b[i0, 0, nl.ds(i5 * 128, 128), 0:512], dge_mode=nisa.dge_mode.none
                            )
                        for i5 in range(2):
                            acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum, address=(0, 2048 * (i5 % 2)))
                            for i6 in range(2):
                                aT = nl.ndarray(
                                    (128, 128),
                                    dtype=nl.bfloat16,
                                    buffer=nl.sbuf,
                                    address=(0, 20480 + 256 * ((i6 + 2 * i5 + 4 * i4 + 4 * i3 + 4 * i2 + 4 * i1 + 4 * i0) % 8)),
                                )
                                # aT = a^T  [128, 128]
                                nisa.dma_transpose(dst=aT, src=a[i0, 0, nl.ds(i5 * 128, 128), nl.ds(i6 * 128, 128)])
                                # acc (+)= aT^T b_1[i6]  [128, 512]
                                nisa.nc_matmul(dst=acc, stationary=aT, moving=b_1[i6], accumulate=i6 > 0)
                            # acc = acc * 0.5  [128, 512]
                            nisa.tensor_scalar(
                                dst=acc, data=acc, op0=nl.multiply, operand0=0.5, engine=nisa.engine.vector
                            )
                            bias = nl.ndarray(
                                (128, 512),
                                dtype=nl.float32,
                                buffer=nl.sbuf,
                                address=(0, 4096 + 2048 * ((i5 + 2 * i4 + 2 * i3 + 2 * i2 + 2 * i1 + 2 * i0) % 4)),
                            )
                            # bias = row_bias in each partition  [128, 512]
                            nisa.dma_copy(
                                dst=bias, src=row_bias[:, 0:512].broadcast(0, 128), dge_mode=nisa.dge_mode.none
                            )
                            # acc = acc + bias  [128, 512]
                            nisa.tensor_tensor(dst=acc, data1=acc, data2=bias, op=nl.add, engine=nisa.engine.vector)
                            nisa.activation(dst=acc, op=nl.gelu, data=acc)  # acc = gelu(acc)  [128, 512]
                            y = nl.ndarray(
                                (128, 512),
                                dtype=nl.bfloat16,
                                buffer=nl.sbuf,
                                address=(0, 12288 + 1024 * ((i5 + 2 * i4 + 2 * i3 + 2 * i2 + 2 * i1 + 2 * i0) % 4)),
                            )
                            residual_1 = nl.ndarray(
                                (128, 512),
                                dtype=nl.bfloat16,
                                buffer=nl.sbuf,
                                address=(0, 16384 + 1024 * ((i5 + 2 * i4 + 2 * i3 + 2 * i2 + 2 * i1 + 2 * i0) % 4)),
                            )
                            nisa.dma_copy(
                                dst=residual_1,
                                src=residual[i0, 0, nl.ds(i5 * 128, 128), 0:512],
                                dge_mode=nisa.dge_mode.none,
                            )
                            # y = acc + residual_1  [128, 512]
                            nisa.tensor_tensor(dst=y, data1=acc, data2=residual_1, op=nl.add, engine=nisa.engine.vector)
                            nisa.dma_copy(
                                dst=dst[i0, 0, nl.ds(i5 * 128, 128), 0:512], src=y, dge_mode=nisa.dge_mode.none
                            )
                        for i5 in range(2, 3):
                            acc_1 = nl.ndarray(
                                (44, 512),
                                dtype=nl.float32,
                                buffer=nl.psum,
                                address=(0, 4096 + 2048 * ((i5 + i4 + i3 + i2 + i1 + i0) % 2)),
                            )
                            for i6 in range(2):
                                aT_1 = nl.ndarray(
                                    (128, 44),
                                    dtype=nl.bfloat16,
                                    buffer=nl.sbuf,
                                    address=(0, 30720 + 96 * ((i6 + 2 * i5 + 2 * i4 + 2 * i3 + 2 * i2 + 2 * i1 + 2 * i0) % 4)),
                                )
                                # aT_1 = a^T  [128, 44]
                                load_transposed(
                                    dst=aT_1, src=a[i0, 0, 256:300, nl.ds(i6 * 128, 128)], dge_mode=nisa.dge_mode.none
                                )
                                # acc_1 (+)= aT_1^T b_1[i6]  [44, 512]
                                nisa.nc_matmul(dst=acc_1, stationary=aT_1, moving=b_1[i6], accumulate=i6 > 0)
                            # acc_1 = acc_1 * 0.5  [44, 512]
                            nisa.tensor_scalar(
                                dst=acc_1, data=acc_1, op0=nl.multiply, operand0=0.5, engine=nisa.engine.vector
                            )
                            bias_1 = nl.ndarray(
                                (44, 512),
                                dtype=nl.float32,
                                buffer=nl.sbuf,
                                address=(0, 22528 + 2048 * ((i5 + i4 + i3 + i2 + i1 + i0) % 2)),
                            )
                            # bias_1 = row_bias in each partition  [44, 512]
                            nisa.dma_copy(
                                dst=bias_1, src=row_bias[:, 0:512].broadcast(0, 44), dge_mode=nisa.dge_mode.none
                            )
                            # acc_1 = acc_1 + bias_1  [44, 512]
                            nisa.tensor_tensor(
                                dst=acc_1, data1=acc_1, data2=bias_1, op=nl.add, engine=nisa.engine.vector
                            )
                            nisa.activation(dst=acc_1, op=nl.gelu, data=acc_1)  # acc_1 = gelu(acc_1)  [44, 512]
                            y_1 = nl.ndarray(
                                (44, 512),
                                dtype=nl.bfloat16,
                                buffer=nl.sbuf,
                                address=(0, 26624 + 1024 * ((i5 + i4 + i3 + i2 + i1 + i0) % 2)),
                            )
                            residual_2 = nl.ndarray(
                                (44, 512),
                                dtype=nl.bfloat16,
                                buffer=nl.sbuf,
                                address=(0, 28672 + 1024 * ((i5 + i4 + i3 + i2 + i1 + i0) % 2)),
                            )
                            nisa.dma_copy(
                                dst=residual_2, src=residual[i0, 0, 256:300, 0:512], dge_mode=nisa.dge_mode.none
                            )
                            # y_1 = acc_1 + residual_2  [44, 512]
                            nisa.tensor_tensor(
                                dst=y_1, data1=acc_1, data2=residual_2, op=nl.add, engine=nisa.engine.vector
                            )
                            nisa.dma_copy(dst=dst[i0, 0, 256:300, 0:512], src=y_1, dge_mode=nisa.dge_mode.none)
                    for i4 in range(1, 2):
                        b_2 = placed_list(
                            2,
                            (128, 188),
                            nl.bfloat16,
                            nl.sbuf,
                            address=31104,
                            stride=384,
                            buffers=4,
                            first=2 * (i4 + i3 + i2 + i1 + i0),
                        )
                        for i5 in range(2):
                            nisa.dma_copy(
                                dst=b_2[i5], src=b[i0, 0, nl.ds(i5 * 128, 128), 512:700], dge_mode=nisa.dge_mode.none
                            )
                        for i5 in range(2):
                            acc_2 = nl.ndarray(
                                (128, 188), dtype=nl.float32, buffer=nl.psum, address=(0, 8192 + 2048 * (i5 % 2))
                            )
                            for i6 in range(2):
                                aT_2 = nl.ndarray(
                                    (128, 128),
                                    dtype=nl.bfloat16,
                                    buffer=nl.sbuf,
                                    address=(0, 38784 + 256 * ((i6 + 2 * i5 + 4 * i4 + 4 * i3 + 4 * i2 + 4 * i1 + 4 * i0) % 8)),
                                )
                                # aT_2 = a^T  [128, 128]
                                nisa.dma_transpose(dst=aT_2, src=a[i0, 0, nl.ds(i5 * 128, 128), nl.ds(i6 * 128, 128)])
                                # acc_2 (+)= aT_2^T b_2[i6]  [128, 188]
                                nisa.nc_matmul(dst=acc_2, stationary=aT_2, moving=b_2[i6], accumulate=i6 > 0)
                            # acc_2 = acc_2 * 0.5  [128, 188]
                            nisa.tensor_scalar(
                                dst=acc_2, data=acc_2, op0=nl.multiply, operand0=0.5, engine=nisa.engine.vector
                            )
                            bias_2 = nl.ndarray(
                                (128, 188),
                                dtype=nl.float32,
                                buffer=nl.sbuf,
                                address=(0, 32640 + 768 * ((i5 + 2 * i4 + 2 * i3 + 2 * i2 + 2 * i1 + 2 * i0) % 4)),
                            )
                            # bias_2 = row_bias in each partition  [128, 188]
                            nisa.dma_copy(
                                dst=bias_2, src=row_bias[:, 512:700].broadcast(0, 128), dge_mode=nisa.dge_mode.none
                            )
                            # acc_2 = acc_2 + bias_2  [128, 188]
                            nisa.tensor_tensor(
                                dst=acc_2, data1=acc_2, data2=bias_2, op=nl.add, engine=nisa.engine.vector
                            )
                            nisa.activation(dst=acc_2, op=nl.gelu, data=acc_2)  # acc_2 = gelu(acc_2)  [128, 188]
                            y_2 = nl.ndarray(
                                (128, 188),
                                dtype=nl.bfloat16,
                                buffer=nl.sbuf,
                                address=(0, 35712 + 384 * ((i5 + 2 * i4 + 2 * i3 + 2 * i2 + 2 * i1 + 2 * i0) % 4)),
                            )
                            residual_3 = nl.ndarray(
                                (128, 188),
                                dtype=nl.bfloat16,
                                buffer=nl.sbuf,
                                address=(0, 37248 + 384 * ((i5 + 2 * i4 + 2 * i3 + 2 * i2 + 2 * i1 + 2 * i0) % 4)),
                            )
                            nisa.dma_copy(
                                dst=residual_3,
                                src=residual[i0, 0, nl.ds(i5 * 128, 128), 512:700],
                                dge_mode=nisa.dge_mode.none,
                            )
                            # y_2 = acc_2 + residual_3  [128, 188]
                            nisa.tensor_tensor(
                                dst=y_2, data1=acc_2, data2=residual_3, op=nl.add, engine=nisa.engine.vector
                            )
                            nisa.dma_copy(
                                dst=dst[i0, 0, nl.ds(i5 * 128, 128), 512:700], src=y_2, dge_mode=nisa.dge_mode.none
                            )
                        for i5 in range(2, 3):
                            acc_3 = nl.ndarray(
                                (44, 188),
                                dtype=nl.float32,
                                buffer=nl.psum,
                                address=(0, 12288 + 2048 * ((i5 + i4 + i3 + i2 + i1 + i0) % 2)),
                            )
                            for i6 in range(2):
                                aT_3 = nl.ndarray(
                                    (128, 44),
                                    dtype=nl.bfloat16,
                                    buffer=nl.sbuf,
                                    address=(0, 43904 + 96 * ((i6 + 2 * i5 + 2 * i4 + 2 * i3 + 2 * i2 + 2 * i1 + 2 * i0) % 4)),
                                )
                                # aT_3 = a^T  [128, 44]
                                load_transposed(
                                    dst=aT_3, src=a[i0, 0, 256:300, nl.ds(i6 * 128, 128)], dge_mode=nisa.dge_mode.none
                                )
                                # acc_3 (+)= aT_3^T b_2[i6]  [44, 188]
                                nisa.nc_matmul(dst=acc_3, stationary=aT_3, moving=b_2[i6], accumulate=i6 > 0)
                            # acc_3 = acc_3 * 0.5  [44, 188]
                            nisa.tensor_scalar(
                                dst=acc_3, data=acc_3, op0=nl.multiply, operand0=0.5, engine=nisa.engine.vector
                            )
                            bias_3 = nl.ndarray(
                                (44, 188),
                                dtype=nl.float32,
                                buffer=nl.sbuf,
                                address=(0, 40832 + 768 * ((i5 + i4 + i3 + i2 + i1 + i0) % 2)),
                            )
                            # bias_3 = row_bias in each partition  [44, 188]
                            nisa.dma_copy(
                                dst=bias_3, src=row_bias[:, 512:700].broadcast(0, 44), dge_mode=nisa.dge_mode.none
                            )
                            # acc_3 = acc_3 + bias_3  [44, 188]
                            nisa.tensor_tensor(
                                dst=acc_3, data1=acc_3, data2=bias_3, op=nl.add, engine=nisa.engine.vector
                            )
                            nisa.activation(dst=acc_3, op=nl.gelu, data=acc_3)  # acc_3 = gelu(acc_3)  [44, 188]
                            y_3 = nl.ndarray(
                                (44, 188),
                                dtype=nl.bfloat16,
                                buffer=nl.sbuf,
                                address=(0, 42368 + 384 * ((i5 + i4 + i3 + i2 + i1 + i0) % 2)),
                            )
                            residual_4 = nl.ndarray(
                                (44, 188),
                                dtype=nl.bfloat16,
                                buffer=nl.sbuf,
                                address=(0, 43136 + 384 * ((i5 + i4 + i3 + i2 + i1 + i0) % 2)),
                            )
                            nisa.dma_copy(
                                dst=residual_4, src=residual[i0, 0, 256:300, 512:700], dge_mode=nisa.dge_mode.none
                            )
                            # y_3 = acc_3 + residual_4  [44, 188]
                            nisa.tensor_tensor(
                                dst=y_3, data1=acc_3, data2=residual_4, op=nl.add, engine=nisa.engine.vector
                            )
                            nisa.dma_copy(dst=dst[i0, 0, 256:300, 512:700], src=y_3, dge_mode=nisa.dge_mode.none)
    return dst


def reference(a, b, row_bias, residual):
    import math

    a = np.asarray(a, np.float64)
    b = np.asarray(b, np.float64)
    row_bias = np.asarray(row_bias, np.float64)
    residual = np.asarray(residual, np.float64)
    x = 0.5 * (a @ b) + row_bias
    return (0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))) + residual


if __name__ == "__main__":  # with NEURON_PLATFORM_TARGET_OVERRIDE=trn2
    from ml_dtypes import bfloat16

    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, 1, 300, 256)).astype(bfloat16)
    b = rng.standard_normal((2, 1, 256, 700)).astype(bfloat16)
    row_bias = rng.standard_normal((1, 700)).astype(np.float32)
    residual = rng.standard_normal((2, 1, 300, 700)).astype(bfloat16)
    simulated = nki.simulate(matmul_scheduled)  # on a NeuronCore call it itself
    want = reference(a, b, row_bias, residual)
    got = simulated(a, b, row_bias, residual)
    worst = np.abs(np.asarray(got, np.float32) - want).max()
    print(f"largest difference {worst:.1e} of {np.abs(want).max():.1e}")
