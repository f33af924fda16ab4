"""shared_shift_attention for trn2, in NKI.

q [1, 2, 512, 64] bfloat16
k [1, 1, 1024, 64] bfloat16
v [1, 1, 1024, 64] bfloat16
dst [1, 2, 512, 64] bfloat16, returned
lse [1, 2, 512, 1] float32, returned
sums [1, 2, 512, 1] float32, returned
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


@nki.jit
def shared_shift_attention(q, k, v):
    assert q.shape == (1, 2, 512, 64)
    assert k.shape == (1, 1, 1024, 64)
    assert v.shape == (1, 1, 1024, 64)
    dst = nl.ndarray((1, 2, 512, 64), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    lse = nl.ndarray((1, 2, 512, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    sums = nl.ndarray((1, 2, 512, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = nl.ndarray((128, 1), dtype=nl.bfloat16, buffer=nl.sbuf)
    row_of_ones = nl.ndarray((1, 128), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0, engine=nisa.engine.gpsimd)
    nisa.memset(dst=row_of_ones, value=1.0, engine=nisa.engine.gpsimd)
    kT = tile_list(16, (64, 128), nl.bfloat16, nl.sbuf)
    v_1 = tile_list(16, (128, 64), nl.bfloat16, nl.sbuf)
    for i2 in range(2):
        for _ in range((i2 + 1) // 2, 1):
            for i4 in range(8):
                nisa.dma_transpose(dst=kT[i4], src=k[0, 0, nl.ds(i4 * 128, 128), :])  # kT[i4] = k^T  [64, 128]
                nisa.dma_copy(dst=v_1[i4], src=v[0, 0, nl.ds(i4 * 128, 128), :], dge_mode=nisa.dge_mode.none)
        qT = nl.ndarray((64, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.dma_transpose(dst=qT, src=q[0, i2, :, :])  # qT = q^T  [64, 512]
        sample = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        # sample = kT[0]^T qT  [128, 128]
        nisa.nc_matmul(dst=sample, stationary=kT[0], moving=qT[:, 0:509:4], accumulate=False)
        top = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        peak = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.sbuf)
        topT = nl.ndarray((1, 128), dtype=nl.float32, buffer=nl.psum)
        peaks = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.psum)
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=sample, axis=1)  # top = row maximum of sample  [128, 1]
        nisa.nc_transpose(dst=topT, data=top, engine=nisa.engine.tensor)  # topT = top^T  [1, 128]
        nisa.tensor_reduce(dst=peak, op=nl.maximum, data=topT, axis=1)  # peak = row maximum of topT  [1, 1]
        # peaks = row_of_ones^T peak  [128, 1]
        nisa.nc_matmul(dst=peaks, stationary=row_of_ones, moving=peak, accumulate=False)
        bias = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        # bias = peaks * -0.125  [128, 1]
        nisa.tensor_scalar(dst=bias, data=peaks, op0=nl.multiply, operand0=-0.125, engine=nisa.engine.vector)
        oT = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.psum)
        l = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=l, value=0.0, engine=nisa.engine.gpsimd)
        p = tile_list(3, (128, 4096), nl.bfloat16, nl.sbuf)
        for i3 in range(4):
            s = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
            # s = kT[i3 * 2]^T qT  [128, 512]
            nisa.nc_matmul(dst=s[:, 0:512], stationary=kT[i3 * 2], moving=qT, accumulate=False)
            # s = kT[i3 * 2 + 1]^T qT  [128, 512]
            nisa.nc_matmul(dst=s[:, 512:1024], stationary=kT[i3 * 2 + 1], moving=qT, accumulate=False)
            # p[0] = exp(0.125 * s + bias)  [128, 1024]
            nisa.activation(
                dst=p[0][:, nl.ds(i3 * 1024, 1024)].reshape_dim(1, (512, 2)).permute((0, 2, 1)),
                op=nl.exp,
                data=s.reshape_dim(1, (2, 512)),
                scale=0.125,
                bias=bias,
            )
            for i4 in range(max(i3, 2), i3 + 1):
                # p[0] = p[0], but 0.0 where the key is after the query  [128, 512]
                nisa.affine_select(
                    dst=p[0][:, i3 * 1024 : i3 * 1024 + 1023 : 2],
                    pattern=[[1, 512]],
                    offset=512 - i4 * 256,
                    channel_multiplier=-1,
                    on_true_tile=p[0][:, i3 * 1024 : i3 * 1024 + 1023 : 2],
                    on_false_value=0.0,
                    cmp_op=nl.greater_equal,
                )
                # p[0] = p[0], but 0.0 where the key is after the query  [128, 512]
                nisa.affine_select(
                    dst=p[0][:, i3 * 1024 + 1 : i3 * 1024 + 1 + 1023 : 2],
                    pattern=[[1, 512]],
                    offset=512 - (i4 * 2 + 1) * 128,
                    channel_multiplier=-1,
                    on_true_tile=p[0][:, i3 * 1024 + 1 : i3 * 1024 + 1 + 1023 : 2],
                    on_false_value=0.0,
                    cmp_op=nl.greater_equal,
                )
            # oT (+)= v_1[i3 * 2]^T p[0]  [64, 512]
            nisa.nc_matmul(
                dst=oT, stationary=v_1[i3 * 2], moving=p[0][:, i3 * 1024 : i3 * 1024 + 1023 : 2], accumulate=i3 * 2 > 0
            )
            # oT (+)= v_1[i3 * 2 + 1]^T p[0]  [64, 512]
            nisa.nc_matmul(
                dst=oT,
                stationary=v_1[i3 * 2 + 1],
                moving=p[0][:, i3 * 1024 + 1 : i3 * 1024 + 1 + 1023 : 2],
                accumulate=True,
            )
            sum = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
            for _ in range((i3 + 1) // 4):
                # sum = row sum of p[0]  [128, 512]
                nisa.tensor_reduce(
                    dst=sum, op=nl.add, data=p[0].reshape_dim(1, (4, 512, 2)).permute((0, 2, 1, 3)), axis=(2, 3)
                )
            for _ in range((i3 + 1) // 4):
                sums_1 = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.psum)
                for i5 in range(4):  # 128 of 512 at a time
                    # sums_1[:, nl.ds(i5, 1)] = sum^T ones  [128, 1]
                    nisa.nc_matmul(
                        dst=sums_1[:, nl.ds(i5, 1)],
                        stationary=sum[:, nl.ds(i5 * 128, 128)],
                        moving=ones,
                        accumulate=False,
                    )
                # l = l + sums_1  [128, 4]
                nisa.tensor_tensor(dst=l, data1=l, data2=sums_1, op=nl.add, engine=nisa.engine.vector)
        rests = tile_list(2, (128, 512), nl.bfloat16, nl.sbuf)
        o_sum = nl.ndarray((64, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
        r = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
        o = nl.ndarray((128, 256), dtype=nl.bfloat16, buffer=nl.psum)
        nisa.tensor_copy(dst=o_sum, src=oT, engine=nisa.engine.vector)
        nisa.reciprocal(dst=r, data=l)  # r = 1 / l  [128, 4]
        for i3 in range(4):  # 128 of 512 at a time
            # o = o_sum^T  [128, 64]
            nisa.nc_transpose(
                dst=o[:, nl.ds(i3 * 64, 64)], data=o_sum[:, nl.ds(i3 * 128, 128)], engine=nisa.engine.tensor
            )
        for i3 in range(4):  # 128 of 512 at a time
            y = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.sbuf)
            # y = o * r[:, nl.ds(i3, 1)]  [128, 64]
            nisa.tensor_scalar(
                dst=y,
                data=o[:, nl.ds(i3 * 64, 64)],
                op0=nl.multiply,
                operand0=r[:, nl.ds(i3, 1)],
                engine=nisa.engine.vector,
            )
            nisa.dma_copy(dst=dst[0, i2, nl.ds(i3 * 128, 128), :], src=y, dge_mode=nisa.dge_mode.none)
            nisa.dma_copy(dst=sums[0, i2, nl.ds(i3 * 128, 128), :], src=l[:, nl.ds(i3, 1)], dge_mode=nisa.dge_mode.none)
            lse_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=lse_1, op=nl.log, data=l[:, nl.ds(i3, 1)])  # lse_1 = log(l[:, nl.ds(i3, 1)])  [128, 1]
            # lse_1 = lse_1 - bias  [128, 1]
            nisa.tensor_tensor(dst=lse_1, data1=lse_1, data2=bias, op=nl.subtract, engine=nisa.engine.vector)
            nisa.dma_copy(dst=lse[0, i2, nl.ds(i3 * 128, 128), :], src=lse_1, dge_mode=nisa.dge_mode.none)
    return dst, lse, sums


if __name__ == "__main__":  # with NEURON_PLATFORM_TARGET_OVERRIDE=trn2
    from ml_dtypes import bfloat16

    rng = np.random.default_rng(0)
    q = rng.standard_normal((1, 2, 512, 64)).astype(bfloat16)
    k = rng.standard_normal((1, 1, 1024, 64)).astype(bfloat16)
    v = rng.standard_normal((1, 1, 1024, 64)).astype(bfloat16)
    simulated = nki.simulate(shared_shift_attention)  # on a NeuronCore call it itself
    got = simulated(q, k, v)
    print(got)
