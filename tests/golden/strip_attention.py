"""strip_attention for trn2, in NKI.

q [1, 2, 256, 64] bfloat16
k [1, 1, 2700, 64] bfloat16
v [1, 1, 2700, 64] bfloat16
dst [1, 2, 256, 64] bfloat16, returned
lse [1, 2, 256, 1] float32, returned
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


@nki.jit
def strip_attention(q, k, v):
    assert q.shape == (1, 2, 256, 64)
    assert k.shape == (1, 1, 2700, 64)
    assert v.shape == (1, 1, 2700, 64)
    dst = nl.ndarray((1, 2, 256, 64), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    lse = nl.ndarray((1, 2, 256, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    kT = tile_list(6, (64, 512), nl.bfloat16, nl.sbuf)
    v_1 = tile_list(24, (128, 64), nl.bfloat16, nl.sbuf)
    for i3 in range(5):
        nisa.dma_transpose(dst=kT[i3], src=k[0, 0, nl.ds(i3 * 512, 512), :])  # kT[i3] = k^T  [64, 512]
        for i4 in range(4):  # 128 of 512 at a time
            nisa.dma_copy(
                dst=v_1[i3 * 4 + i4], src=v[0, 0, nl.ds(i3 * 512 + i4 * 128, 128), :], dge_mode=nisa.dge_mode.none
            )
    # kT[5] = k^T  [64, 140]
    load_transposed(dst=kT[5][0:64, 0:140], src=k[0, 0, 2560:2700, :], dge_mode=nisa.dge_mode.none)
    # the first 128 of 140
    nisa.dma_copy(dst=v_1[20], src=v[0, 0, 2560:2688, :], dge_mode=nisa.dge_mode.none)
    # the last 12 of 140
    nisa.dma_copy(dst=v_1[21][0:12, 0:64], src=v[0, 0, 2688:2700, :], dge_mode=nisa.dge_mode.none)
    for i3 in range(2):
        for i4 in range(2):  # 128 of 256 at a time
            qT = nl.ndarray((64, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
            nisa.dma_transpose(dst=qT, src=q[0, i3, nl.ds(i4 * 128, 128), :])  # qT = q^T  [64, 128]
            strip = nl.ndarray((128, 2700), dtype=nl.float32, buffer=nl.sbuf)
            p = nl.ndarray((128, 2700), dtype=nl.bfloat16, buffer=nl.sbuf)
            tops = nl.ndarray((128, 6), dtype=nl.float32, buffer=nl.sbuf)
            sums = nl.ndarray((128, 6), dtype=nl.float32, buffer=nl.sbuf)
            nisa.memset(dst=sums, value=0.0, engine=nisa.engine.gpsimd)
            nisa.memset(dst=tops, value=-3.4028235e38, engine=nisa.engine.gpsimd)
            m = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            shift = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            l = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            o = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
            for i5 in range((i4 * 128 + 2445) // 512):
                s = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                nisa.nc_matmul(dst=s, stationary=qT, moving=kT[i5], accumulate=False)  # s = qT^T kT[i5]  [128, 512]
                # strip = s * 1.0  [128, 512]; tops[:, nl.ds(i5, 1)] = row max
                nisa.tensor_scalar_reduce(
                    dst=strip[:, nl.ds(i5 * 512, 512)],
                    data=s,
                    op0=nl.multiply,
                    operand0=1.0,
                    reduce_op=nl.maximum,
                    reduce_res=tops[:, nl.ds(i5, 1)],
                )
            for _ in range((i4 * 128 + 2445) // 512, 5):
                s_1 = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                nisa.nc_matmul(dst=s_1, stationary=qT, moving=kT[4], accumulate=False)  # s_1 = qT^T kT[4]  [128, 512]
                nisa.tensor_copy(dst=strip[:, 2048:2560], src=s_1, engine=nisa.engine.vector)
                # strip = strip, but -3.4028235e38 where the key is after the query  [128, 512]
                nisa.affine_select(
                    dst=strip[:, 2048:2560],
                    pattern=[[-1, 512]],
                    offset=i4 * 128 + 2444 - 2048,
                    channel_multiplier=1,
                    on_true_tile=strip[:, 2048:2560],
                    on_false_value=-3.4028235e38,
                    cmp_op=nl.greater_equal,
                )
                # tops[:, 4:5] = row maximum of strip  [128, 1]
                nisa.tensor_reduce(dst=tops[:, 4:5], op=nl.maximum, data=strip[:, 2048:2560], axis=1)
            s_2 = nl.ndarray((128, 140), dtype=nl.float32, buffer=nl.psum)
            # s_2 = qT^T kT[5]  [128, 140]
            nisa.nc_matmul(dst=s_2, stationary=qT, moving=kT[5][:, 0:140], accumulate=False)
            nisa.tensor_copy(dst=strip[:, 2560:2700], src=s_2, engine=nisa.engine.vector)
            # strip = strip, but -3.4028235e38 where the key is after the query  [128, 140]
            nisa.affine_select(
                dst=strip[:, 2560:2700],
                pattern=[[-1, 140]],
                offset=i4 * 128 + 2444 - 2560,
                channel_multiplier=1,
                on_true_tile=strip[:, 2560:2700],
                on_false_value=-3.4028235e38,
                cmp_op=nl.greater_equal,
            )
            # tops[:, 5:6] = row maximum of strip  [128, 1]
            nisa.tensor_reduce(dst=tops[:, 5:6], op=nl.maximum, data=strip[:, 2560:2700], axis=1)
            nisa.tensor_reduce(dst=m, op=nl.maximum, data=tops, axis=1)  # m = row maximum of tops  [128, 1]
            # shift = m * -0.125  [128, 1]
            nisa.tensor_scalar(dst=shift, data=m, op0=nl.multiply, operand0=-0.125, engine=nisa.engine.vector)
            # p = exp(0.125 * strip + shift)  [128, 2048]; sums[:, 0:1] = row sum
            nisa.activation(
                dst=p[:, 0:2048],
                op=nl.exp,
                data=strip[:, 0:2048],
                scale=0.125,
                bias=shift,
                reduce_op=nl.add,
                reduce_res=sums[:, 0:1],
                reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )
            # p = exp(0.125 * strip + shift)  [128, 512]; sums[:, 4:5] = row sum
            nisa.activation(
                dst=p[:, 2048:2560],
                op=nl.exp,
                data=strip[:, 2048:2560],
                scale=0.125,
                bias=shift,
                reduce_op=nl.add,
                reduce_res=sums[:, 4:5],
                reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )
            # p = exp(0.125 * strip + shift)  [128, 140]; sums[:, 5:6] = row sum
            nisa.activation(
                dst=p[:, 2560:2700],
                op=nl.exp,
                data=strip[:, 2560:2700],
                scale=0.125,
                bias=shift,
                reduce_op=nl.add,
                reduce_res=sums[:, 5:6],
                reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )
            nisa.tensor_reduce(dst=l, op=nl.add, data=sums, axis=1)  # l = row sum of sums  [128, 1]
            pT = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
            bank = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.psum)
            for i6 in range(4):  # 128 of 512 at a time
                # bank = p^T  [128, 128]
                nisa.nc_transpose(
                    dst=bank[:, nl.ds(i6 * 128, 128)], data=p[:, nl.ds(i6 * 128, 128)], engine=nisa.engine.tensor
                )
                nisa.tensor_copy(
                    dst=pT[:, nl.ds(i6 * 128, 128)], src=bank[:, nl.ds(i6 * 128, 128)], engine=nisa.engine.scalar
                )
            for i6 in range(4):  # 128 of 512 at a time
                # o (+)= pT^T v_1[i6]  [128, 64]
                nisa.nc_matmul(dst=o, stationary=pT[:, nl.ds(i6 * 128, 128)], moving=v_1[i6], accumulate=i6 > 0)
            pT_1 = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
            for i6 in range(4):  # 128 of 512 at a time
                # pT_1 = p^T  [128, 128]
                nisa.dma_transpose(dst=pT_1[:, nl.ds(i6 * 128, 128)], src=p[:, nl.ds(i6 * 128 + 512, 128)])
            for i6 in range(4):  # 128 of 512 at a time
                # o (+)= pT_1^T v_1[i6 + 4]  [128, 64]
                nisa.nc_matmul(dst=o, stationary=pT_1[:, nl.ds(i6 * 128, 128)], moving=v_1[i6 + 4], accumulate=True)
            pT_2 = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
            bank_1 = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.psum)
            for i6 in range(4):  # 128 of 512 at a time
                # bank_1 = p^T  [128, 128]
                nisa.nc_transpose(
                    dst=bank_1[:, nl.ds(i6 * 128, 128)],
                    data=p[:, nl.ds(i6 * 128 + 1024, 128)],
                    engine=nisa.engine.tensor,
                )
                nisa.tensor_copy(
                    dst=pT_2[:, nl.ds(i6 * 128, 128)], src=bank_1[:, nl.ds(i6 * 128, 128)], engine=nisa.engine.scalar
                )
            for i6 in range(4):  # 128 of 512 at a time
                # o (+)= pT_2^T v_1[i6 + 8]  [128, 64]
                nisa.nc_matmul(dst=o, stationary=pT_2[:, nl.ds(i6 * 128, 128)], moving=v_1[i6 + 8], accumulate=True)
            pT_3 = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
            for i6 in range(4):  # 128 of 512 at a time
                # pT_3 = p^T  [128, 128]
                nisa.dma_transpose(dst=pT_3[:, nl.ds(i6 * 128, 128)], src=p[:, nl.ds(i6 * 128 + 1536, 128)])
            for i6 in range(4):  # 128 of 512 at a time
                # o (+)= pT_3^T v_1[i6 + 12]  [128, 64]
                nisa.nc_matmul(dst=o, stationary=pT_3[:, nl.ds(i6 * 128, 128)], moving=v_1[i6 + 12], accumulate=True)
            pT_4 = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
            for i6 in range(4):  # 128 of 512 at a time
                # pT_4 = p^T  [128, 128]
                nisa.dma_transpose(dst=pT_4[:, nl.ds(i6 * 128, 128)], src=p[:, nl.ds(i6 * 128 + 2048, 128)])
            for i6 in range(4):  # 128 of 512 at a time
                # o (+)= pT_4^T v_1[i6 + 16]  [128, 64]
                nisa.nc_matmul(dst=o, stationary=pT_4[:, nl.ds(i6 * 128, 128)], moving=v_1[i6 + 16], accumulate=True)
            pT_5 = nl.ndarray((128, 256), dtype=nl.bfloat16, buffer=nl.sbuf)
            bank_2 = nl.ndarray((128, 256), dtype=nl.bfloat16, buffer=nl.psum)
            # the first 128 of 140
            # bank_2 = p^T  [128, 128]
            nisa.nc_transpose(dst=bank_2[:, 0:128], data=p[:, 2560:2688], engine=nisa.engine.tensor)
            nisa.tensor_copy(dst=pT_5[:, 0:128], src=bank_2[:, 0:128], engine=nisa.engine.scalar)
            # the last 12 of 140
            # bank_2 = p^T  [12, 128]
            nisa.nc_transpose(dst=bank_2[0:12, 128:256], data=p[:, 2688:2700], engine=nisa.engine.tensor)
            nisa.tensor_copy(dst=pT_5[0:12, 128:256], src=bank_2[0:12, 128:256], engine=nisa.engine.scalar)
            # the first 128 of 140
            # o (+)= pT_5^T v_1[20]  [128, 64]
            nisa.nc_matmul(dst=o, stationary=pT_5[:, 0:128], moving=v_1[20], accumulate=True)
            # the last 12 of 140
            # o (+)= pT_5^T v_1[21]  [128, 64]
            nisa.nc_matmul(dst=o, stationary=pT_5[0:12, 128:256], moving=v_1[21][0:12, :], accumulate=True)
            lse_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=lse_1, op=nl.log, data=l)  # lse_1 = log(l)  [128, 1]
            # lse_1 = lse_1 - shift  [128, 1]
            nisa.tensor_tensor(dst=lse_1, data1=lse_1, data2=shift, op=nl.subtract, engine=nisa.engine.vector)
            nisa.dma_copy(dst=lse[0, i3, nl.ds(i4 * 128, 128), :], src=lse_1, dge_mode=nisa.dge_mode.none)
            nisa.reciprocal(dst=l, data=l)  # l = 1 / l  [128, 1]
            y = nl.ndarray((128, 64), dtype=nl.bfloat16, buffer=nl.sbuf)
            # y = o * l  [128, 64]
            nisa.tensor_scalar(dst=y, data=o, op0=nl.multiply, operand0=l, engine=nisa.engine.vector)
            nisa.dma_copy(dst=dst[0, i3, nl.ds(i4 * 128, 128), :], src=y, dge_mode=nisa.dge_mode.none)
    return dst, lse


if __name__ == "__main__":  # with NEURON_PLATFORM_TARGET_OVERRIDE=trn2
    from ml_dtypes import bfloat16

    rng = np.random.default_rng(0)
    q = rng.standard_normal((1, 2, 256, 64)).astype(bfloat16)
    k = rng.standard_normal((1, 1, 2700, 64)).astype(bfloat16)
    v = rng.standard_normal((1, 1, 2700, 64)).astype(bfloat16)
    simulated = nki.simulate(strip_attention)  # on a NeuronCore call it itself
    got = simulated(q, k, v)
    print(got)
