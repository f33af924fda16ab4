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
    kT = tile_list(9, (64, 128), nl.bfloat16, nl.sbuf)
    v_1 = tile_list(9, (128, 64), nl.bfloat16, nl.sbuf)
    for i3 in range(8):
        nisa.dma_transpose(dst=kT[i3], src=k[0, 0, nl.ds(i3 * 128, 128), :])  # kT[i3] = k^T  [64, 128]
        nisa.dma_copy(dst=v_1[i3], src=v[0, 0, nl.ds(i3 * 128, 128), :], dge_mode=nisa.dge_mode.none)
    for i3 in range(2):
        qT = nl.ndarray((64, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.dma_transpose(dst=qT, src=q[0, i3, :, :])  # qT = q^T  [64, 512]
        sample = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=sample, stationary=kT[0], moving=qT, accumulate=False)  # sample = kT[0]^T qT  [128, 512]
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
        p = nl.ndarray((128, 2048), dtype=nl.bfloat16, buffer=nl.sbuf)
        for i6 in range(2):
            s = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
            # s = kT[i6 * 2]^T qT  [128, 512]
            nisa.nc_matmul(dst=s[:, 0:1023:2], stationary=kT[i6 * 2], moving=qT, accumulate=False)
            # s = kT[i6 * 2 + 1]^T qT  [128, 512]
            nisa.nc_matmul(dst=s[:, 1:1024:2], stationary=kT[i6 * 2 + 1], moving=qT, accumulate=False)
            # p = exp(0.125 * s + bias)  [128, 1024]
            nisa.activation(dst=p[:, nl.ds(i6 * 1024, 1024)], op=nl.exp, data=s, scale=0.125, bias=bias)
            # oT (+)= v_1[i6 * 2]^T p  [64, 512]
            nisa.nc_matmul(
                dst=oT, stationary=v_1[i6 * 2], moving=p[:, i6 * 1024 : i6 * 1024 + 1023 : 2], accumulate=i6 * 2 > 0
            )
            # oT (+)= v_1[i6 * 2 + 1]^T p  [64, 512]
            nisa.nc_matmul(
                dst=oT,
                stationary=v_1[i6 * 2 + 1],
                moving=p[:, i6 * 1024 + 1 : i6 * 1024 + 1 + 1023 : 2],
                accumulate=True,
            )
        sum = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
        # sum = row sum of p  [128, 512]
        nisa.tensor_reduce(dst=sum, op=nl.add, data=p.reshape_dim(1, (2, 512, 2)).permute((0, 2, 1, 3)), axis=(2, 3))
        sums_1 = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.psum)
        for i6 in range(4):  # 128 of 512 at a time
            # sums_1[:, nl.ds(i6, 1)] = sum^T ones  [128, 1]
            nisa.nc_matmul(
                dst=sums_1[:, nl.ds(i6, 1)], stationary=sum[:, nl.ds(i6 * 128, 128)], moving=ones, accumulate=False
            )
        for i6 in range(4):  # 128 of 512 at a time
            # l[:, nl.ds(i6, 1)] = l[:, nl.ds(i6, 1)] + sums_1[:, nl.ds(i6, 1)]  [128, 1]
            nisa.tensor_tensor(
                dst=l[:, nl.ds(i6, 1)],
                data1=l[:, nl.ds(i6, 1)],
                data2=sums_1[:, nl.ds(i6, 1)],
                op=nl.add,
                engine=nisa.engine.vector,
            )
        s_1 = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        p_1 = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.nc_matmul(dst=s_1, stationary=kT[4], moving=qT, accumulate=False)  # s_1 = kT[4]^T qT  [128, 512]
        # p_1 = exp(0.125 * s_1 + bias)  [128, 512]
        nisa.activation(dst=p_1, op=nl.exp, data=s_1, scale=0.125, bias=bias)
        # p_1 = p_1, but 0.0 where the key is after the query  [128, 128]
        nisa.affine_select(
            dst=p_1[:, 0:128],
            pattern=[[1, 128]],
            offset=0,
            channel_multiplier=-1,
            on_true_tile=p_1[:, 0:128],
            on_false_value=0.0,
            cmp_op=nl.greater_equal,
        )
        nisa.nc_matmul(dst=oT, stationary=v_1[4], moving=p_1, accumulate=True)  # oT (+)= v_1[4]^T p_1  [64, 512]
        sums_2 = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.psum)
        for i6 in range(4):  # 128 of 512 at a time
            # sums_2[:, nl.ds(i6, 1)] = p_1^T ones  [128, 1]
            nisa.nc_matmul(
                dst=sums_2[:, nl.ds(i6, 1)], stationary=p_1[:, nl.ds(i6 * 128, 128)], moving=ones, accumulate=False
            )
        for i6 in range(4):  # 128 of 512 at a time
            # l[:, nl.ds(i6, 1)] = l[:, nl.ds(i6, 1)] + sums_2[:, nl.ds(i6, 1)]  [128, 1]
            nisa.tensor_tensor(
                dst=l[:, nl.ds(i6, 1)],
                data1=l[:, nl.ds(i6, 1)],
                data2=sums_2[:, nl.ds(i6, 1)],
                op=nl.add,
                engine=nisa.engine.vector,
            )
        s_2 = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        p_2 = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.memset(dst=p_2[:, 0:128], value=0.0, engine=nisa.engine.gpsimd)
        # s_2 = kT[5]^T qT  [128, 384]
        nisa.nc_matmul(dst=s_2[:, 128:512], stationary=kT[5], moving=qT[:, 128:512], accumulate=False)
        # p_2 = exp(0.125 * s_2 + bias)  [128, 384]
        nisa.activation(dst=p_2[:, 128:512], op=nl.exp, data=s_2[:, 128:512], scale=0.125, bias=bias)
        # p_2 = p_2, but 0.0 where the key is after the query  [128, 128]
        nisa.affine_select(
            dst=p_2[:, 128:256],
            pattern=[[1, 128]],
            offset=0,
            channel_multiplier=-1,
            on_true_tile=p_2[:, 128:256],
            on_false_value=0.0,
            cmp_op=nl.greater_equal,
        )
        nisa.nc_matmul(dst=oT, stationary=v_1[5], moving=p_2, accumulate=True)  # oT (+)= v_1[5]^T p_2  [64, 512]
        sums_3 = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.psum)
        for i6 in range(4):  # 128 of 512 at a time
            # sums_3[:, nl.ds(i6, 1)] = p_2^T ones  [128, 1]
            nisa.nc_matmul(
                dst=sums_3[:, nl.ds(i6, 1)], stationary=p_2[:, nl.ds(i6 * 128, 128)], moving=ones, accumulate=False
            )
        for i6 in range(4):  # 128 of 512 at a time
            # l[:, nl.ds(i6, 1)] = l[:, nl.ds(i6, 1)] + sums_3[:, nl.ds(i6, 1)]  [128, 1]
            nisa.tensor_tensor(
                dst=l[:, nl.ds(i6, 1)],
                data1=l[:, nl.ds(i6, 1)],
                data2=sums_3[:, nl.ds(i6, 1)],
                op=nl.add,
                engine=nisa.engine.vector,
            )
        s_3 = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        p_3 = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.memset(dst=p_3[:, 0:256], value=0.0, engine=nisa.engine.gpsimd)
        # s_3 = kT[6]^T qT  [128, 256]
        nisa.nc_matmul(dst=s_3[:, 256:512], stationary=kT[6], moving=qT[:, 256:512], accumulate=False)
        # p_3 = exp(0.125 * s_3 + bias)  [128, 256]
        nisa.activation(dst=p_3[:, 256:512], op=nl.exp, data=s_3[:, 256:512], scale=0.125, bias=bias)
        # p_3 = p_3, but 0.0 where the key is after the query  [128, 128]
        nisa.affine_select(
            dst=p_3[:, 256:384],
            pattern=[[1, 128]],
            offset=0,
            channel_multiplier=-1,
            on_true_tile=p_3[:, 256:384],
            on_false_value=0.0,
            cmp_op=nl.greater_equal,
        )
        nisa.nc_matmul(dst=oT, stationary=v_1[6], moving=p_3, accumulate=True)  # oT (+)= v_1[6]^T p_3  [64, 512]
        sums_4 = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.psum)
        for i6 in range(4):  # 128 of 512 at a time
            # sums_4[:, nl.ds(i6, 1)] = p_3^T ones  [128, 1]
            nisa.nc_matmul(
                dst=sums_4[:, nl.ds(i6, 1)], stationary=p_3[:, nl.ds(i6 * 128, 128)], moving=ones, accumulate=False
            )
        for i6 in range(4):  # 128 of 512 at a time
            # l[:, nl.ds(i6, 1)] = l[:, nl.ds(i6, 1)] + sums_4[:, nl.ds(i6, 1)]  [128, 1]
            nisa.tensor_tensor(
                dst=l[:, nl.ds(i6, 1)],
                data1=l[:, nl.ds(i6, 1)],
                data2=sums_4[:, nl.ds(i6, 1)],
                op=nl.add,
                engine=nisa.engine.vector,
            )
        s_4 = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        p_4 = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.memset(dst=p_4[:, 0:384], value=0.0, engine=nisa.engine.gpsimd)
        # s_4 = kT[7]^T qT  [128, 128]
        nisa.nc_matmul(dst=s_4[:, 384:512], stationary=kT[7], moving=qT[:, 384:512], accumulate=False)
        # p_4 = exp(0.125 * s_4 + bias)  [128, 128]
        nisa.activation(dst=p_4[:, 384:512], op=nl.exp, data=s_4[:, 384:512], scale=0.125, bias=bias)
        # p_4 = p_4, but 0.0 where the key is after the query  [128, 128]
        nisa.affine_select(
            dst=p_4[:, 384:512],
            pattern=[[1, 128]],
            offset=0,
            channel_multiplier=-1,
            on_true_tile=p_4[:, 384:512],
            on_false_value=0.0,
            cmp_op=nl.greater_equal,
        )
        nisa.nc_matmul(dst=oT, stationary=v_1[7], moving=p_4, accumulate=True)  # oT (+)= v_1[7]^T p_4  [64, 512]
        sums_5 = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.psum)
        for i6 in range(4):  # 128 of 512 at a time
            # sums_5[:, nl.ds(i6, 1)] = p_4^T ones  [128, 1]
            nisa.nc_matmul(
                dst=sums_5[:, nl.ds(i6, 1)], stationary=p_4[:, nl.ds(i6 * 128, 128)], moving=ones, accumulate=False
            )
        for i6 in range(4):  # 128 of 512 at a time
            # l[:, nl.ds(i6, 1)] = l[:, nl.ds(i6, 1)] + sums_5[:, nl.ds(i6, 1)]  [128, 1]
            nisa.tensor_tensor(
                dst=l[:, nl.ds(i6, 1)],
                data1=l[:, nl.ds(i6, 1)],
                data2=sums_5[:, nl.ds(i6, 1)],
                op=nl.add,
                engine=nisa.engine.vector,
            )
        o_sum = nl.ndarray((64, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
        r = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=o_sum, src=oT, engine=nisa.engine.vector)
        for i5 in range(4):  # 128 of 512 at a time
            # r[:, nl.ds(i5, 1)] = 1 / l[:, nl.ds(i5, 1)]  [128, 1]
            nisa.reciprocal(dst=r[:, nl.ds(i5, 1)], data=l[:, nl.ds(i5, 1)])
            o = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.psum)
            # o = o_sum^T  [128, 64]
            nisa.nc_transpose(dst=o, data=o_sum[:, nl.ds(i5 * 128, 128)], engine=nisa.engine.tensor)
            y = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.sbuf)
            # y = o * r[:, nl.ds(i5, 1)]  [128, 64]
            nisa.tensor_scalar(dst=y, data=o, op0=nl.multiply, operand0=r[:, nl.ds(i5, 1)], engine=nisa.engine.vector)
            nisa.dma_copy(dst=dst[0, i3, nl.ds(i5 * 128, 128), :], src=y, dge_mode=nisa.dge_mode.none)
            nisa.dma_copy(dst=sums[0, i3, nl.ds(i5 * 128, 128), :], src=l[:, nl.ds(i5, 1)], dge_mode=nisa.dge_mode.none)
            lse_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=lse_1, op=nl.log, data=l[:, nl.ds(i5, 1)])  # lse_1 = log(l[:, nl.ds(i5, 1)])  [128, 1]
            # lse_1 = lse_1 - bias  [128, 1]
            nisa.tensor_tensor(dst=lse_1, data1=lse_1, data2=bias, op=nl.subtract, engine=nisa.engine.vector)
            nisa.dma_copy(dst=lse[0, i3, nl.ds(i5 * 128, 128), :], src=lse_1, dge_mode=nisa.dge_mode.none)
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
