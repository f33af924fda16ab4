"""layernorm for trn2, in NKI.

src [300, 1100] float32
dst [300, 1100] float32, returned
weight [1, 1100] float32
bias [1, 1100] float32
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


def row_statistics(dst, src):
    """dst [p, 2] = mean and variance of each row of src [p, n]."""
    p, n = src.shape
    most = nl.tile_size.bn_stats_fmax
    parts = (n + most - 1) // most
    stats = nl.ndarray((p, 6 * parts), dtype=nl.float32, buffer=nl.sbuf)
    for i in range(parts):
        columns = min(most, n - i * most)
        nisa.bn_stats(dst=stats[:, 6 * i : 6 * i + 6], data=src[:, nl.ds(i * most, columns)])
    nisa.bn_aggr(dst=dst, data=stats)


@nki.jit
def layernorm(src, weight, bias):
    assert src.shape == (300, 1100)
    assert weight.shape == (1, 1100)
    assert bias.shape == (1, 1100)
    dst = nl.ndarray((300, 1100), dtype=nl.float32, buffer=nl.shared_hbm)
    weight_1 = nl.ndarray((128, 1100), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=weight_1, src=weight.broadcast(0, 128))  # weight_1 = weight in each partition  [128, 1100]
    bias_1 = nl.ndarray((128, 1100), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=bias_1, src=bias.broadcast(0, 128))  # bias_1 = bias in each partition  [128, 1100]
    for i1 in range(2):  # 128 of 300 at a time
        x = nl.ndarray((128, 1100), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=src[nl.ds(i1 * 128, 128), :])
        stats = nl.ndarray((128, 2), dtype=nl.float32, buffer=nl.sbuf)
        row_statistics(dst=stats, src=x)  # stats = mean and variance of x  [128, 2]
        # stats[:, 1:2] = rsqrt(stats[:, 1:2] + 1e-05)  [128, 1]
        nisa.activation(dst=stats[:, 1:2], op=nl.rsqrt, data=stats[:, 1:2], bias=1e-05)
        y = nl.ndarray((128, 1100), dtype=nl.float32, buffer=nl.sbuf)
        centred = nl.ndarray((128, 1100), dtype=nl.float32, buffer=nl.sbuf)
        # centred = (x - stats[:, 0:1]) * weight_1  [128, 1100]
        nisa.scalar_tensor_tensor(
            dst=centred, data=x, op0=nl.subtract, operand0=stats[:, 0:1], op1=nl.multiply, operand1=weight_1
        )
        # y = (centred * stats[:, 1:2]) + bias_1  [128, 1100]
        nisa.scalar_tensor_tensor(
            dst=y, data=centred, op0=nl.multiply, operand0=stats[:, 1:2], op1=nl.add, operand1=bias_1
        )
        nisa.dma_copy(dst=dst[nl.ds(i1 * 128, 128), :], src=y)
    # the last 44 of 300
    x_1 = nl.ndarray((44, 1100), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x_1, src=src[256:300, :])
    stats_1 = nl.ndarray((44, 2), dtype=nl.float32, buffer=nl.sbuf)
    row_statistics(dst=stats_1, src=x_1)  # stats_1 = mean and variance of x_1  [44, 2]
    # stats_1[:, 1:2] = rsqrt(stats_1[:, 1:2] + 1e-05)  [44, 1]
    nisa.activation(dst=stats_1[:, 1:2], op=nl.rsqrt, data=stats_1[:, 1:2], bias=1e-05)
    y_1 = nl.ndarray((44, 1100), dtype=nl.float32, buffer=nl.sbuf)
    centred_1 = nl.ndarray((44, 1100), dtype=nl.float32, buffer=nl.sbuf)
    # centred_1 = (x_1 - stats_1[:, 0:1]) * weight_1  [44, 1100]
    nisa.scalar_tensor_tensor(
        dst=centred_1, data=x_1, op0=nl.subtract, operand0=stats_1[:, 0:1], op1=nl.multiply, operand1=weight_1[0:44, :]
    )
    # y_1 = (centred_1 * stats_1[:, 1:2]) + bias_1  [44, 1100]
    nisa.scalar_tensor_tensor(
        dst=y_1, data=centred_1, op0=nl.multiply, operand0=stats_1[:, 1:2], op1=nl.add, operand1=bias_1[0:44, :]
    )
    nisa.dma_copy(dst=dst[256:300, :], src=y_1)
    return dst


def reference(src, weight, bias):
    src = np.asarray(src, np.float64)
    weight = np.asarray(weight, np.float64)
    bias = np.asarray(bias, np.float64)
    x = src - src.mean(axis=-1, keepdims=True)
    variance = (x**2).mean(axis=-1, keepdims=True)
    return x / np.sqrt(variance + 1e-05) * weight + bias


if __name__ == "__main__":  # with NEURON_PLATFORM_TARGET_OVERRIDE=trn2
    rng = np.random.default_rng(0)
    src = rng.standard_normal((300, 1100)).astype(np.float32)
    weight = rng.standard_normal((1, 1100)).astype(np.float32)
    bias = rng.standard_normal((1, 1100)).astype(np.float32)
    simulated = nki.simulate(layernorm)  # on a NeuronCore call it itself
    want = reference(src, weight, bias)
    got = simulated(src, weight, bias)
    worst = np.abs(np.asarray(got, np.float32) - want).max()
    print(f"largest difference {worst:.1e} of {np.abs(want).max():.1e}")
