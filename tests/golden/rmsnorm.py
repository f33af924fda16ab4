"""rmsnorm for trn2, in NKI.

src [300, 1100] float32
dst [300, 1100] float32, returned
weight [1, 1100] float32
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def rmsnorm(src, weight):
    assert src.shape == (300, 1100)
    assert weight.shape == (1, 1100)
    dst = nl.ndarray((300, 1100), dtype=nl.float32, buffer=nl.shared_hbm)
    weight_1 = nl.ndarray((128, 1100), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=weight_1, src=weight.broadcast(0, 128))  # weight_1 = weight in each partition  [128, 1100]
    for i1 in range(2):  # 128 of 300 at a time
        x = nl.ndarray((128, 1100), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=src[nl.ds(i1 * 128, 128), :])
        squares = nl.ndarray((128, 1100), dtype=nl.float32, buffer=nl.sbuf)
        rrms = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        # squares = square(x)  [128, 1100]; rrms = row sum
        nisa.activation(
            dst=squares,
            op=nl.square,
            data=x,
            reduce_op=nl.add,
            reduce_res=rrms,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        # rrms = rsqrt(0.0009090909 * rrms + 1e-06)  [128, 1]
        nisa.activation(dst=rrms, op=nl.rsqrt, data=rrms, scale=0.0009090909, bias=1e-06)
        y = nl.ndarray((128, 1100), dtype=nl.float32, buffer=nl.sbuf)
        # y = (x * rrms) * weight_1  [128, 1100]
        nisa.scalar_tensor_tensor(dst=y, data=x, op0=nl.multiply, operand0=rrms, op1=nl.multiply, operand1=weight_1)
        nisa.dma_copy(dst=dst[nl.ds(i1 * 128, 128), :], src=y)
    # the last 44 of 300
    x_1 = nl.ndarray((44, 1100), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x_1, src=src[256:300, :])
    squares_1 = nl.ndarray((44, 1100), dtype=nl.float32, buffer=nl.sbuf)
    rrms_1 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
    # squares_1 = square(x_1)  [44, 1100]; rrms_1 = row sum
    nisa.activation(
        dst=squares_1,
        op=nl.square,
        data=x_1,
        reduce_op=nl.add,
        reduce_res=rrms_1,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    # rrms_1 = rsqrt(0.0009090909 * rrms_1 + 1e-06)  [44, 1]
    nisa.activation(dst=rrms_1, op=nl.rsqrt, data=rrms_1, scale=0.0009090909, bias=1e-06)
    y_1 = nl.ndarray((44, 1100), dtype=nl.float32, buffer=nl.sbuf)
    # y_1 = (x_1 * rrms_1) * weight_1  [44, 1100]
    nisa.scalar_tensor_tensor(
        dst=y_1, data=x_1, op0=nl.multiply, operand0=rrms_1, op1=nl.multiply, operand1=weight_1[0:44, :]
    )
    nisa.dma_copy(dst=dst[256:300, :], src=y_1)
    return dst


def reference(src, weight):
    src = np.asarray(src, np.float64)
    weight = np.asarray(weight, np.float64)
    square = (src**2).mean(axis=-1, keepdims=True)
    return src / np.sqrt(square + 1e-06) * weight


if __name__ == "__main__":  # with NEURON_PLATFORM_TARGET_OVERRIDE=trn2
    rng = np.random.default_rng(0)
    src = rng.standard_normal((300, 1100)).astype(np.float32)
    weight = rng.standard_normal((1, 1100)).astype(np.float32)
    simulated = nki.simulate(rmsnorm)  # on a NeuronCore call it itself
    want = reference(src, weight)
    got = simulated(src, weight)
    worst = np.abs(np.asarray(got, np.float32) - want).max()
    print(f"largest difference {worst:.1e} of {np.abs(want).max():.1e}")
