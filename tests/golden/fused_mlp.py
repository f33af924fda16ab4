"""fused_mlp for trn2, in NKI.

x [600, 256] bfloat16
up [384, 256] bfloat16
gate [384, 256] bfloat16
down [200, 384] bfloat16
dst [600, 200] bfloat16, returned
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


def tile_list(count, shape, dtype, buffer):
    """`count` fresh tiles of one shape."""
    tiles = []
    for _ in range(count):
        tiles.append(nl.ndarray(shape, dtype=dtype, buffer=buffer))
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


def store_transposed(dst, src, dge_mode=nisa.dge_mode.unknown):
    """dst [f, p] in HBM = src^T, src [p, f] in SBUF: in blocks of 128 columns, by the tensor engine through PSUM."""
    p, f = src.shape
    for begin in range(0, f, 128):
        rows = min(128, f - begin)
        turned = nl.ndarray((rows, p), dtype=src.dtype, buffer=nl.psum)
        block = nl.ndarray((rows, p), dtype=dst.dtype, buffer=nl.sbuf)
        nisa.nc_transpose(dst=turned, data=src[:, nl.ds(begin, rows)], engine=nisa.engine.tensor)
        nisa.tensor_copy(dst=block, src=turned, engine=nisa.engine.vector)
        nisa.dma_copy(dst=dst[nl.ds(begin, rows), :], src=block, dge_mode=dge_mode)


@nki.jit
def fused_mlp(x, up, gate, down):
    assert x.shape == (600, 256)
    assert up.shape == (384, 256)
    assert gate.shape == (384, 256)
    assert down.shape == (200, 384)
    dst = nl.ndarray((600, 200), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    # the first 512 of 600
    xT = tile_list(2, (128, 512), nl.bfloat16, nl.sbuf)
    for i2 in range(2):  # 128 of 256 at a time
        nisa.dma_transpose(dst=xT[i2], src=x[0:512, nl.ds(i2 * 128, 128)])  # xT[i2] = x^T  [128, 512]
    hT = tile_list(3, (128, 512), nl.bfloat16, nl.sbuf)
    for i2 in range(3):  # 128 of 384 at a time
        up_1 = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        for i3 in range(2):  # 128 of 256 at a time
            wT = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
            nisa.dma_transpose(dst=wT, src=up[nl.ds(i2 * 128, 128), nl.ds(i3 * 128, 128)])  # wT = up^T  [128, 128]
            # up_1 (+)= wT^T xT[i3]  [128, 512]
            nisa.nc_matmul(dst=up_1, stationary=wT, moving=xT[i3], accumulate=i3 > 0)
        up_bias_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=up_bias_1, value=0.0, engine=nisa.engine.gpsimd)
        gate_1 = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        for i3 in range(2):  # 128 of 256 at a time
            wT_1 = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
            # wT_1 = gate^T  [128, 128]
            nisa.dma_transpose(dst=wT_1, src=gate[nl.ds(i2 * 128, 128), nl.ds(i3 * 128, 128)])
            # gate_1 (+)= wT_1^T xT[i3]  [128, 512]
            nisa.nc_matmul(dst=gate_1, stationary=wT_1, moving=xT[i3], accumulate=i3 > 0)
        activated = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        gate_bias = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=gate_bias, value=0.0, engine=nisa.engine.gpsimd)
        # activated = silu(gate_1 + gate_bias)  [128, 512]
        nisa.activation(dst=activated, op=nl.silu, data=gate_1, bias=gate_bias)
        # hT[i2] = (up_1 + up_bias_1) * activated  [128, 512]
        nisa.scalar_tensor_tensor(
            dst=hT[i2], data=up_1, op0=nl.add, operand0=up_bias_1, op1=nl.multiply, operand1=activated
        )
    # the first 128 of 200
    yT = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for i3 in range(3):  # 128 of 384 at a time
        dT = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.dma_transpose(dst=dT, src=down[0:128, nl.ds(i3 * 128, 128)])  # dT = down^T  [128, 128]
        nisa.nc_matmul(dst=yT, stationary=dT, moving=hT[i3], accumulate=i3 > 0)  # yT (+)= dT^T hT[i3]  [128, 512]
    y = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    down_bias_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=down_bias_1, value=0.0, engine=nisa.engine.gpsimd)
    # y = yT + down_bias_1  [128, 512]
    nisa.tensor_scalar(dst=y, data=yT, op0=nl.add, operand0=down_bias_1, engine=nisa.engine.vector)
    store_transposed(dst=dst[0:512, 0:128], src=y)  # dst = y^T
    # the last 72 of 200
    yT_1 = nl.ndarray((72, 512), dtype=nl.float32, buffer=nl.psum)
    for i3 in range(3):  # 128 of 384 at a time
        dT_1 = nl.ndarray((128, 72), dtype=nl.bfloat16, buffer=nl.sbuf)
        load_transposed(dst=dT_1, src=down[128:200, nl.ds(i3 * 128, 128)])  # dT_1 = down^T  [128, 72]
        # yT_1 (+)= dT_1^T hT[i3]  [72, 512]
        nisa.nc_matmul(dst=yT_1, stationary=dT_1, moving=hT[i3], accumulate=i3 > 0)
    y_1 = nl.ndarray((72, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    down_bias_2 = nl.ndarray((72, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=down_bias_2, value=0.0, engine=nisa.engine.gpsimd)
    # y_1 = yT_1 + down_bias_2  [72, 512]
    nisa.tensor_scalar(dst=y_1, data=yT_1, op0=nl.add, operand0=down_bias_2, engine=nisa.engine.vector)
    store_transposed(dst=dst[0:512, 128:200], src=y_1)  # dst = y_1^T
    # the last 88 of 600
    xT_1 = tile_list(2, (128, 88), nl.bfloat16, nl.sbuf)
    for i2 in range(2):  # 128 of 256 at a time
        load_transposed(dst=xT_1[i2], src=x[512:600, nl.ds(i2 * 128, 128)])  # xT_1[i2] = x^T  [128, 88]
    hT_1 = tile_list(3, (128, 88), nl.bfloat16, nl.sbuf)
    for i2 in range(3):  # 128 of 384 at a time
        up_2 = nl.ndarray((128, 88), dtype=nl.float32, buffer=nl.psum)
        for i3 in range(2):  # 128 of 256 at a time
            wT_2 = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
            nisa.dma_transpose(dst=wT_2, src=up[nl.ds(i2 * 128, 128), nl.ds(i3 * 128, 128)])  # wT_2 = up^T  [128, 128]
            # up_2 (+)= wT_2^T xT_1[i3]  [128, 88]
            nisa.nc_matmul(dst=up_2, stationary=wT_2, moving=xT_1[i3], accumulate=i3 > 0)
        up_bias_2 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=up_bias_2, value=0.0, engine=nisa.engine.gpsimd)
        gate_2 = nl.ndarray((128, 88), dtype=nl.float32, buffer=nl.psum)
        for i3 in range(2):  # 128 of 256 at a time
            wT_3 = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
            # wT_3 = gate^T  [128, 128]
            nisa.dma_transpose(dst=wT_3, src=gate[nl.ds(i2 * 128, 128), nl.ds(i3 * 128, 128)])
            # gate_2 (+)= wT_3^T xT_1[i3]  [128, 88]
            nisa.nc_matmul(dst=gate_2, stationary=wT_3, moving=xT_1[i3], accumulate=i3 > 0)
        activated_1 = nl.ndarray((128, 88), dtype=nl.float32, buffer=nl.sbuf)
        gate_bias_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=gate_bias_1, value=0.0, engine=nisa.engine.gpsimd)
        # activated_1 = silu(gate_2 + gate_bias_1)  [128, 88]
        nisa.activation(dst=activated_1, op=nl.silu, data=gate_2, bias=gate_bias_1)
        # hT_1[i2] = (up_2 + up_bias_2) * activated_1  [128, 88]
        nisa.scalar_tensor_tensor(
            dst=hT_1[i2], data=up_2, op0=nl.add, operand0=up_bias_2, op1=nl.multiply, operand1=activated_1
        )
    # the first 128 of 200
    yT_2 = nl.ndarray((128, 88), dtype=nl.float32, buffer=nl.psum)
    for i3 in range(3):  # 128 of 384 at a time
        dT_2 = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.dma_transpose(dst=dT_2, src=down[0:128, nl.ds(i3 * 128, 128)])  # dT_2 = down^T  [128, 128]
        # yT_2 (+)= dT_2^T hT_1[i3]  [128, 88]
        nisa.nc_matmul(dst=yT_2, stationary=dT_2, moving=hT_1[i3], accumulate=i3 > 0)
    y_2 = nl.ndarray((128, 88), dtype=nl.bfloat16, buffer=nl.sbuf)
    down_bias_3 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=down_bias_3, value=0.0, engine=nisa.engine.gpsimd)
    # y_2 = yT_2 + down_bias_3  [128, 88]
    nisa.tensor_scalar(dst=y_2, data=yT_2, op0=nl.add, operand0=down_bias_3, engine=nisa.engine.vector)
    store_transposed(dst=dst[512:600, 0:128], src=y_2)  # dst = y_2^T
    # the last 72 of 200
    yT_3 = nl.ndarray((72, 88), dtype=nl.float32, buffer=nl.psum)
    for i3 in range(3):  # 128 of 384 at a time
        dT_3 = nl.ndarray((128, 72), dtype=nl.bfloat16, buffer=nl.sbuf)
        load_transposed(dst=dT_3, src=down[128:200, nl.ds(i3 * 128, 128)])  # dT_3 = down^T  [128, 72]
        # yT_3 (+)= dT_3^T hT_1[i3]  [72, 88]
        nisa.nc_matmul(dst=yT_3, stationary=dT_3, moving=hT_1[i3], accumulate=i3 > 0)
    y_3 = nl.ndarray((72, 88), dtype=nl.bfloat16, buffer=nl.sbuf)
    down_bias_4 = nl.ndarray((72, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=down_bias_4, value=0.0, engine=nisa.engine.gpsimd)
    # y_3 = yT_3 + down_bias_4  [72, 88]
    nisa.tensor_scalar(dst=y_3, data=yT_3, op0=nl.add, operand0=down_bias_4, engine=nisa.engine.vector)
    store_transposed(dst=dst[512:600, 128:200], src=y_3)  # dst = y_3^T
    return dst


def reference(x, up, gate, down):
    x = np.asarray(x, np.float64)
    up = np.asarray(up, np.float64)
    gate = np.asarray(gate, np.float64)
    down = np.asarray(down, np.float64)
    h = x @ up.T
    x = x @ gate.T
    return (h * (x / (1 + np.exp(-x)))) @ down.T


if __name__ == "__main__":  # with NEURON_PLATFORM_TARGET_OVERRIDE=trn2
    from ml_dtypes import bfloat16

    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 256)).astype(bfloat16)
    up = rng.standard_normal((384, 256)).astype(bfloat16)
    gate = rng.standard_normal((384, 256)).astype(bfloat16)
    down = rng.standard_normal((200, 384)).astype(bfloat16)
    simulated = nki.simulate(fused_mlp)  # on a NeuronCore call it itself
    want = reference(x, up, gate, down)
    got = simulated(x, up, gate, down)
    worst = np.abs(np.asarray(got, np.float32) - want).max()
    print(f"largest difference {worst:.1e} of {np.abs(want).max():.1e}")
