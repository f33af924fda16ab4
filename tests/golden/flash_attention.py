"""flash_attention for trn2, in NKI.

q [1, 4, 300, 64] float32
k [1, 2, 700, 64] float32
v [1, 2, 700, 64] float32
dst [1, 4, 300, 64] float32, returned
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


def transpose(dst, src):
    """dst [f, p] = src^T, both in SBUF: the tensor engine writes PSUM."""
    psum = nl.ndarray(dst.shape, dtype=src.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=psum, data=src, engine=nisa.engine.tensor)
    nisa.tensor_copy(dst=dst, src=psum, engine=nisa.engine.vector)


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
def flash_attention(q, k, v):
    assert q.shape == (1, 4, 300, 64)
    assert k.shape == (1, 2, 700, 64)
    assert v.shape == (1, 2, 700, 64)
    dst = nl.ndarray((1, 4, 300, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    for i1 in range(2):
        kT = tile_list(2, (64, 512), nl.float32, nl.sbuf)
        v_1 = tile_list(8, (128, 64), nl.float32, nl.sbuf)
        load_transposed(dst=kT[0], src=k[0, i1, 0:512, :])  # kT[0] = k^T  [64, 512]
        for i5 in range(4):  # 128 of 512 at a time
            nisa.dma_copy(dst=v_1[i5], src=v[0, i1, nl.ds(i5 * 128, 128), :])
        load_transposed(dst=kT[1][0:64, 0:188], src=k[0, i1, 512:700, :])  # kT[1] = k^T  [64, 188]
        # the first 128 of 188
        nisa.dma_copy(dst=v_1[4], src=v[0, i1, 512:640, :])
        # the last 60 of 188
        nisa.dma_copy(dst=v_1[5][0:60, 0:64], src=v[0, i1, 640:700, :])
        for i4 in range(2):
            for i5 in range(2):  # 128 of 300 at a time
                qT = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.sbuf)
                load_transposed(dst=qT, src=q[0, i1 * 2 + i4, nl.ds(i5 * 128, 128), :])  # qT = q^T  [64, 128]
                acc = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
                m = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                l = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                nisa.memset(dst=acc, value=0.0, engine=nisa.engine.gpsimd)
                nisa.memset(dst=m, value=-1e30, engine=nisa.engine.gpsimd)
                nisa.memset(dst=l, value=0.0, engine=nisa.engine.gpsimd)
                for _ in range((i5 * 128 + 401) // 512):
                    s = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
                    nisa.nc_matmul(dst=s, stationary=qT, moving=kT[0], accumulate=False)  # s = qT^T kT[0]  [128, 512]
                    m_new = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                    shift = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                    alpha = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                    p_sum = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                    nisa.tensor_reduce(dst=m_new, op=nl.maximum, data=s, axis=1)  # m_new = row maximum of s  [128, 1]
                    # m_new = max(m_new, m)  [128, 1]
                    nisa.tensor_tensor(dst=m_new, data1=m_new, data2=m, op=nl.maximum, engine=nisa.engine.vector)
                    # shift = m_new * -0.125  [128, 1]
                    nisa.tensor_scalar(
                        dst=shift, data=m_new, op0=nl.multiply, operand0=-0.125, engine=nisa.engine.vector
                    )
                    # alpha = exp(0.125 * m + shift)  [128, 1]
                    nisa.activation(dst=alpha, op=nl.exp, data=m, scale=0.125, bias=shift)
                    p = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
                    # p = exp(0.125 * s + shift)  [128, 512]; p_sum = row sum
                    nisa.activation(
                        dst=p,
                        op=nl.exp,
                        data=s,
                        scale=0.125,
                        bias=shift,
                        reduce_op=nl.add,
                        reduce_res=p_sum,
                        reduce_cmd=nisa.reduce_cmd.reset_reduce,
                    )
                    # l = (l * alpha) + p_sum  [128, 1]
                    nisa.scalar_tensor_tensor(
                        dst=l, data=l, op0=nl.multiply, operand0=alpha, op1=nl.add, operand1=p_sum
                    )
                    pv = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
                    for i7 in range(4):  # 128 of 512 at a time
                        pT = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
                        transpose(dst=pT, src=p[:, nl.ds(i7 * 128, 128)])  # pT = p^T  [128, 128]
                        # pv (+)= pT^T v_1[i7]  [128, 64]
                        nisa.nc_matmul(
                            dst=pv, stationary=pT, moving=v_1[i7][nl.ds(i7 * 128 % 128, 128), :], accumulate=i7 > 0
                        )
                    # acc = (acc * alpha) + pv  [128, 64]
                    nisa.scalar_tensor_tensor(
                        dst=acc, data=acc, op0=nl.multiply, operand0=alpha, op1=nl.add, operand1=pv
                    )
                    nisa.tensor_copy(dst=m, src=m_new, engine=nisa.engine.vector)
                for _ in range((i5 * 128 + 401) // 512, 1):
                    for i7 in range(4):
                        s_1 = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
                        # s_1 = qT^T kT[0]  [128, 128]
                        nisa.nc_matmul(dst=s_1, stationary=qT, moving=kT[0][:, nl.ds(i7 * 128, 128)], accumulate=False)
                        s_masked = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
                        nisa.tensor_copy(dst=s_masked, src=s_1, engine=nisa.engine.vector)
                        # s_masked = s_1, but -3.4028235e38 where the key is after the query  [128, 128]
                        nisa.affine_select(
                            dst=s_masked,
                            pattern=[[-1, 128]],
                            offset=i5 * 128 + 400 - i7 * 128,
                            channel_multiplier=1,
                            on_true_tile=s_masked,
                            on_false_value=-3.4028235e38,
                            cmp_op=nl.greater_equal,
                        )
                        m_new_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                        shift_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                        alpha_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                        p_sum_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                        # m_new_1 = row maximum of s_masked  [128, 1]
                        nisa.tensor_reduce(dst=m_new_1, op=nl.maximum, data=s_masked, axis=1)
                        # m_new_1 = max(m_new_1, m)  [128, 1]
                        nisa.tensor_tensor(
                            dst=m_new_1, data1=m_new_1, data2=m, op=nl.maximum, engine=nisa.engine.vector
                        )
                        # shift_1 = m_new_1 * -0.125  [128, 1]
                        nisa.tensor_scalar(
                            dst=shift_1, data=m_new_1, op0=nl.multiply, operand0=-0.125, engine=nisa.engine.vector
                        )
                        # alpha_1 = exp(0.125 * m + shift_1)  [128, 1]
                        nisa.activation(dst=alpha_1, op=nl.exp, data=m, scale=0.125, bias=shift_1)
                        p_1 = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
                        # p_1 = exp(0.125 * s_masked + shift_1)  [128, 128]; p_sum_1 = row sum
                        nisa.activation(
                            dst=p_1,
                            op=nl.exp,
                            data=s_masked,
                            scale=0.125,
                            bias=shift_1,
                            reduce_op=nl.add,
                            reduce_res=p_sum_1,
                            reduce_cmd=nisa.reduce_cmd.reset_reduce,
                        )
                        # l = (l * alpha_1) + p_sum_1  [128, 1]
                        nisa.scalar_tensor_tensor(
                            dst=l, data=l, op0=nl.multiply, operand0=alpha_1, op1=nl.add, operand1=p_sum_1
                        )
                        pv_1 = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
                        pT_1 = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
                        transpose(dst=pT_1, src=p_1)  # pT_1 = p_1^T  [128, 128]
                        # pv_1 = pT_1^T v_1[i7]  [128, 64]
                        nisa.nc_matmul(
                            dst=pv_1, stationary=pT_1, moving=v_1[i7][nl.ds(i7 * 128 % 128, 128), :], accumulate=False
                        )
                        # acc = (acc * alpha_1) + pv_1  [128, 64]
                        nisa.scalar_tensor_tensor(
                            dst=acc, data=acc, op0=nl.multiply, operand0=alpha_1, op1=nl.add, operand1=pv_1
                        )
                        nisa.tensor_copy(dst=m, src=m_new_1, engine=nisa.engine.vector)
                s_2 = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
                # s_2 = qT^T kT[1]  [128, 128]
                nisa.nc_matmul(dst=s_2, stationary=qT, moving=kT[1][:, 0:128], accumulate=False)
                s_masked_1 = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_copy(dst=s_masked_1, src=s_2, engine=nisa.engine.vector)
                # s_masked_1 = s_2, but -3.4028235e38 where the key is after the query  [128, 128]
                nisa.affine_select(
                    dst=s_masked_1,
                    pattern=[[-1, 128]],
                    offset=i5 * 128 + 400 - 512,
                    channel_multiplier=1,
                    on_true_tile=s_masked_1,
                    on_false_value=-3.4028235e38,
                    cmp_op=nl.greater_equal,
                )
                m_new_2 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                shift_2 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                alpha_2 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                p_sum_2 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                # m_new_2 = row maximum of s_masked_1  [128, 1]
                nisa.tensor_reduce(dst=m_new_2, op=nl.maximum, data=s_masked_1, axis=1)
                # m_new_2 = max(m_new_2, m)  [128, 1]
                nisa.tensor_tensor(dst=m_new_2, data1=m_new_2, data2=m, op=nl.maximum, engine=nisa.engine.vector)
                # shift_2 = m_new_2 * -0.125  [128, 1]
                nisa.tensor_scalar(
                    dst=shift_2, data=m_new_2, op0=nl.multiply, operand0=-0.125, engine=nisa.engine.vector
                )
                # alpha_2 = exp(0.125 * m + shift_2)  [128, 1]
                nisa.activation(dst=alpha_2, op=nl.exp, data=m, scale=0.125, bias=shift_2)
                p_2 = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
                # p_2 = exp(0.125 * s_masked_1 + shift_2)  [128, 128]; p_sum_2 = row sum
                nisa.activation(
                    dst=p_2,
                    op=nl.exp,
                    data=s_masked_1,
                    scale=0.125,
                    bias=shift_2,
                    reduce_op=nl.add,
                    reduce_res=p_sum_2,
                    reduce_cmd=nisa.reduce_cmd.reset_reduce,
                )
                # l = (l * alpha_2) + p_sum_2  [128, 1]
                nisa.scalar_tensor_tensor(
                    dst=l, data=l, op0=nl.multiply, operand0=alpha_2, op1=nl.add, operand1=p_sum_2
                )
                pv_2 = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
                pT_2 = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
                transpose(dst=pT_2, src=p_2)  # pT_2 = p_2^T  [128, 128]
                # pv_2 = pT_2^T v_1[4]  [128, 64]
                nisa.nc_matmul(dst=pv_2, stationary=pT_2, moving=v_1[4], accumulate=False)
                # acc = (acc * alpha_2) + pv_2  [128, 64]
                nisa.scalar_tensor_tensor(
                    dst=acc, data=acc, op0=nl.multiply, operand0=alpha_2, op1=nl.add, operand1=pv_2
                )
                nisa.tensor_copy(dst=m, src=m_new_2, engine=nisa.engine.vector)
                for _ in range(1, min(max(i5 * 128 - 112, 0), 1) + 1):
                    s_3 = nl.ndarray((128, 60), dtype=nl.float32, buffer=nl.psum)
                    # s_3 = qT^T kT[1]  [128, 60]
                    nisa.nc_matmul(dst=s_3, stationary=qT, moving=kT[1][:, 128:188], accumulate=False)
                    s_masked_2 = nl.ndarray((128, 60), dtype=nl.float32, buffer=nl.sbuf)
                    nisa.tensor_copy(dst=s_masked_2, src=s_3, engine=nisa.engine.vector)
                    # s_masked_2 = s_3, but -3.4028235e38 where the key is after the query  [128, 60]
                    nisa.affine_select(
                        dst=s_masked_2,
                        pattern=[[-1, 60]],
                        offset=i5 * 128 + 400 - 640,
                        channel_multiplier=1,
                        on_true_tile=s_masked_2,
                        on_false_value=-3.4028235e38,
                        cmp_op=nl.greater_equal,
                    )
                    m_new_3 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                    shift_3 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                    alpha_3 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                    p_sum_3 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
                    # m_new_3 = row maximum of s_masked_2  [128, 1]
                    nisa.tensor_reduce(dst=m_new_3, op=nl.maximum, data=s_masked_2, axis=1)
                    # m_new_3 = max(m_new_3, m)  [128, 1]
                    nisa.tensor_tensor(dst=m_new_3, data1=m_new_3, data2=m, op=nl.maximum, engine=nisa.engine.vector)
                    # shift_3 = m_new_3 * -0.125  [128, 1]
                    nisa.tensor_scalar(
                        dst=shift_3, data=m_new_3, op0=nl.multiply, operand0=-0.125, engine=nisa.engine.vector
                    )
                    # alpha_3 = exp(0.125 * m + shift_3)  [128, 1]
                    nisa.activation(dst=alpha_3, op=nl.exp, data=m, scale=0.125, bias=shift_3)
                    p_3 = nl.ndarray((128, 60), dtype=nl.float32, buffer=nl.sbuf)
                    # p_3 = exp(0.125 * s_masked_2 + shift_3)  [128, 60]; p_sum_3 = row sum
                    nisa.activation(
                        dst=p_3,
                        op=nl.exp,
                        data=s_masked_2,
                        scale=0.125,
                        bias=shift_3,
                        reduce_op=nl.add,
                        reduce_res=p_sum_3,
                        reduce_cmd=nisa.reduce_cmd.reset_reduce,
                    )
                    # l = (l * alpha_3) + p_sum_3  [128, 1]
                    nisa.scalar_tensor_tensor(
                        dst=l, data=l, op0=nl.multiply, operand0=alpha_3, op1=nl.add, operand1=p_sum_3
                    )
                    pv_3 = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.psum)
                    pT_3 = nl.ndarray((60, 128), dtype=nl.float32, buffer=nl.sbuf)
                    transpose(dst=pT_3, src=p_3)  # pT_3 = p_3^T  [60, 128]
                    # pv_3 = pT_3^T v_1[5]  [128, 64]
                    nisa.nc_matmul(dst=pv_3, stationary=pT_3, moving=v_1[5][0:60, :], accumulate=False)
                    # acc = (acc * alpha_3) + pv_3  [128, 64]
                    nisa.scalar_tensor_tensor(
                        dst=acc, data=acc, op0=nl.multiply, operand0=alpha_3, op1=nl.add, operand1=pv_3
                    )
                    nisa.tensor_copy(dst=m, src=m_new_3, engine=nisa.engine.vector)
                # l = max(l, 1e-30)  [128, 1]
                nisa.tensor_scalar(dst=l, data=l, op0=nl.maximum, operand0=1e-30, engine=nisa.engine.vector)
                nisa.reciprocal(dst=l, data=l)  # l = 1 / l  [128, 1]
                o = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
                # o = acc * l  [128, 64]
                nisa.tensor_scalar(dst=o, data=acc, op0=nl.multiply, operand0=l, engine=nisa.engine.vector)
                nisa.dma_copy(dst=dst[0, i1 * 2 + i4, nl.ds(i5 * 128, 128), :], src=o)
            # the last 44 of 300
            qT_1 = nl.ndarray((64, 44), dtype=nl.float32, buffer=nl.sbuf)
            load_transposed(dst=qT_1, src=q[0, i1 * 2 + i4, 256:300, :])  # qT_1 = q^T  [64, 44]
            acc_1 = nl.ndarray((44, 64), dtype=nl.float32, buffer=nl.sbuf)
            m_1 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            l_1 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.memset(dst=acc_1, value=0.0, engine=nisa.engine.gpsimd)
            nisa.memset(dst=m_1, value=-1e30, engine=nisa.engine.gpsimd)
            nisa.memset(dst=l_1, value=0.0, engine=nisa.engine.gpsimd)
            s_4 = nl.ndarray((44, 512), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=s_4, stationary=qT_1, moving=kT[0], accumulate=False)  # s_4 = qT_1^T kT[0]  [44, 512]
            m_new_4 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            shift_4 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            alpha_4 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            p_sum_4 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=m_new_4, op=nl.maximum, data=s_4, axis=1)  # m_new_4 = row maximum of s_4  [44, 1]
            # m_new_4 = max(m_new_4, m_1)  [44, 1]
            nisa.tensor_tensor(dst=m_new_4, data1=m_new_4, data2=m_1, op=nl.maximum, engine=nisa.engine.vector)
            # shift_4 = m_new_4 * -0.125  [44, 1]
            nisa.tensor_scalar(dst=shift_4, data=m_new_4, op0=nl.multiply, operand0=-0.125, engine=nisa.engine.vector)
            # alpha_4 = exp(0.125 * m_1 + shift_4)  [44, 1]
            nisa.activation(dst=alpha_4, op=nl.exp, data=m_1, scale=0.125, bias=shift_4)
            p_4 = nl.ndarray((44, 512), dtype=nl.float32, buffer=nl.sbuf)
            # p_4 = exp(0.125 * s_4 + shift_4)  [44, 512]; p_sum_4 = row sum
            nisa.activation(
                dst=p_4,
                op=nl.exp,
                data=s_4,
                scale=0.125,
                bias=shift_4,
                reduce_op=nl.add,
                reduce_res=p_sum_4,
                reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )
            # l_1 = (l_1 * alpha_4) + p_sum_4  [44, 1]
            nisa.scalar_tensor_tensor(
                dst=l_1, data=l_1, op0=nl.multiply, operand0=alpha_4, op1=nl.add, operand1=p_sum_4
            )
            pv_4 = nl.ndarray((44, 64), dtype=nl.float32, buffer=nl.psum)
            for i7 in range(4):  # 128 of 512 at a time
                pT_4 = nl.ndarray((128, 44), dtype=nl.float32, buffer=nl.sbuf)
                transpose(dst=pT_4, src=p_4[:, nl.ds(i7 * 128, 128)])  # pT_4 = p_4^T  [128, 44]
                # pv_4 (+)= pT_4^T v_1[i7]  [44, 64]
                nisa.nc_matmul(
                    dst=pv_4, stationary=pT_4, moving=v_1[i7][nl.ds(i7 * 128 % 128, 128), :], accumulate=i7 > 0
                )
            # acc_1 = (acc_1 * alpha_4) + pv_4  [44, 64]
            nisa.scalar_tensor_tensor(
                dst=acc_1, data=acc_1, op0=nl.multiply, operand0=alpha_4, op1=nl.add, operand1=pv_4
            )
            nisa.tensor_copy(dst=m_1, src=m_new_4, engine=nisa.engine.vector)
            s_5 = nl.ndarray((44, 128), dtype=nl.float32, buffer=nl.psum)
            # s_5 = qT_1^T kT[1]  [44, 128]
            nisa.nc_matmul(dst=s_5, stationary=qT_1, moving=kT[1][:, 0:128], accumulate=False)
            s_masked_3 = nl.ndarray((44, 128), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=s_masked_3, src=s_5, engine=nisa.engine.vector)
            # s_masked_3 = s_5, but -3.4028235e38 where the key is after the query  [44, 128]
            nisa.affine_select(
                dst=s_masked_3,
                pattern=[[-1, 128]],
                offset=144,
                channel_multiplier=1,
                on_true_tile=s_masked_3,
                on_false_value=-3.4028235e38,
                cmp_op=nl.greater_equal,
            )
            m_new_5 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            shift_5 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            alpha_5 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            p_sum_5 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            # m_new_5 = row maximum of s_masked_3  [44, 1]
            nisa.tensor_reduce(dst=m_new_5, op=nl.maximum, data=s_masked_3, axis=1)
            # m_new_5 = max(m_new_5, m_1)  [44, 1]
            nisa.tensor_tensor(dst=m_new_5, data1=m_new_5, data2=m_1, op=nl.maximum, engine=nisa.engine.vector)
            # shift_5 = m_new_5 * -0.125  [44, 1]
            nisa.tensor_scalar(dst=shift_5, data=m_new_5, op0=nl.multiply, operand0=-0.125, engine=nisa.engine.vector)
            # alpha_5 = exp(0.125 * m_1 + shift_5)  [44, 1]
            nisa.activation(dst=alpha_5, op=nl.exp, data=m_1, scale=0.125, bias=shift_5)
            p_5 = nl.ndarray((44, 128), dtype=nl.float32, buffer=nl.sbuf)
            # p_5 = exp(0.125 * s_masked_3 + shift_5)  [44, 128]; p_sum_5 = row sum
            nisa.activation(
                dst=p_5,
                op=nl.exp,
                data=s_masked_3,
                scale=0.125,
                bias=shift_5,
                reduce_op=nl.add,
                reduce_res=p_sum_5,
                reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )
            # l_1 = (l_1 * alpha_5) + p_sum_5  [44, 1]
            nisa.scalar_tensor_tensor(
                dst=l_1, data=l_1, op0=nl.multiply, operand0=alpha_5, op1=nl.add, operand1=p_sum_5
            )
            pv_5 = nl.ndarray((44, 64), dtype=nl.float32, buffer=nl.psum)
            pT_5 = nl.ndarray((128, 44), dtype=nl.float32, buffer=nl.sbuf)
            transpose(dst=pT_5, src=p_5)  # pT_5 = p_5^T  [128, 44]
            nisa.nc_matmul(dst=pv_5, stationary=pT_5, moving=v_1[4], accumulate=False)  # pv_5 = pT_5^T v_1[4]  [44, 64]
            # acc_1 = (acc_1 * alpha_5) + pv_5  [44, 64]
            nisa.scalar_tensor_tensor(
                dst=acc_1, data=acc_1, op0=nl.multiply, operand0=alpha_5, op1=nl.add, operand1=pv_5
            )
            nisa.tensor_copy(dst=m_1, src=m_new_5, engine=nisa.engine.vector)
            s_6 = nl.ndarray((44, 60), dtype=nl.float32, buffer=nl.psum)
            # s_6 = qT_1^T kT[1]  [44, 60]
            nisa.nc_matmul(dst=s_6, stationary=qT_1, moving=kT[1][:, 128:188], accumulate=False)
            s_masked_4 = nl.ndarray((44, 60), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_copy(dst=s_masked_4, src=s_6, engine=nisa.engine.vector)
            # s_masked_4 = s_6, but -3.4028235e38 where the key is after the query  [44, 60]
            nisa.affine_select(
                dst=s_masked_4,
                pattern=[[-1, 60]],
                offset=16,
                channel_multiplier=1,
                on_true_tile=s_masked_4,
                on_false_value=-3.4028235e38,
                cmp_op=nl.greater_equal,
            )
            m_new_6 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            shift_6 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            alpha_6 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            p_sum_6 = nl.ndarray((44, 1), dtype=nl.float32, buffer=nl.sbuf)
            # m_new_6 = row maximum of s_masked_4  [44, 1]
            nisa.tensor_reduce(dst=m_new_6, op=nl.maximum, data=s_masked_4, axis=1)
            # m_new_6 = max(m_new_6, m_1)  [44, 1]
            nisa.tensor_tensor(dst=m_new_6, data1=m_new_6, data2=m_1, op=nl.maximum, engine=nisa.engine.vector)
            # shift_6 = m_new_6 * -0.125  [44, 1]
            nisa.tensor_scalar(dst=shift_6, data=m_new_6, op0=nl.multiply, operand0=-0.125, engine=nisa.engine.vector)
            # alpha_6 = exp(0.125 * m_1 + shift_6)  [44, 1]
            nisa.activation(dst=alpha_6, op=nl.exp, data=m_1, scale=0.125, bias=shift_6)
            p_6 = nl.ndarray((44, 60), dtype=nl.float32, buffer=nl.sbuf)
            # p_6 = exp(0.125 * s_masked_4 + shift_6)  [44, 60]; p_sum_6 = row sum
            nisa.activation(
                dst=p_6,
                op=nl.exp,
                data=s_masked_4,
                scale=0.125,
                bias=shift_6,
                reduce_op=nl.add,
                reduce_res=p_sum_6,
                reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )
            # l_1 = (l_1 * alpha_6) + p_sum_6  [44, 1]
            nisa.scalar_tensor_tensor(
                dst=l_1, data=l_1, op0=nl.multiply, operand0=alpha_6, op1=nl.add, operand1=p_sum_6
            )
            pv_6 = nl.ndarray((44, 64), dtype=nl.float32, buffer=nl.psum)
            pT_6 = nl.ndarray((60, 44), dtype=nl.float32, buffer=nl.sbuf)
            transpose(dst=pT_6, src=p_6)  # pT_6 = p_6^T  [60, 44]
            # pv_6 = pT_6^T v_1[5]  [44, 64]
            nisa.nc_matmul(dst=pv_6, stationary=pT_6, moving=v_1[5][0:60, :], accumulate=False)
            # acc_1 = (acc_1 * alpha_6) + pv_6  [44, 64]
            nisa.scalar_tensor_tensor(
                dst=acc_1, data=acc_1, op0=nl.multiply, operand0=alpha_6, op1=nl.add, operand1=pv_6
            )
            nisa.tensor_copy(dst=m_1, src=m_new_6, engine=nisa.engine.vector)
            # l_1 = max(l_1, 1e-30)  [44, 1]
            nisa.tensor_scalar(dst=l_1, data=l_1, op0=nl.maximum, operand0=1e-30, engine=nisa.engine.vector)
            nisa.reciprocal(dst=l_1, data=l_1)  # l_1 = 1 / l_1  [44, 1]
            o_1 = nl.ndarray((44, 64), dtype=nl.float32, buffer=nl.sbuf)
            # o_1 = acc_1 * l_1  [44, 64]
            nisa.tensor_scalar(dst=o_1, data=acc_1, op0=nl.multiply, operand0=l_1, engine=nisa.engine.vector)
            nisa.dma_copy(dst=dst[0, i1 * 2 + i4, 256:300, :], src=o_1)
    return dst


def reference(q, k, v):
    q = np.asarray(q, np.float64)
    k = np.asarray(k, np.float64)
    v = np.asarray(v, np.float64)
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    s = 0.125 * (q @ k.swapaxes(2, 3))
    q_len, kv_len = s.shape[2:]
    hidden = np.arange(kv_len) > np.arange(q_len)[:, None] + kv_len - q_len
    s = np.where(hidden, -np.inf, s)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return (p @ v) / p.sum(axis=-1, keepdims=True)


if __name__ == "__main__":  # with NEURON_PLATFORM_TARGET_OVERRIDE=trn2
    rng = np.random.default_rng(0)
    q = rng.standard_normal((1, 4, 300, 64)).astype(np.float32)
    k = rng.standard_normal((1, 2, 700, 64)).astype(np.float32)
    v = rng.standard_normal((1, 2, 700, 64)).astype(np.float32)
    simulated = nki.simulate(flash_attention)  # on a NeuronCore call it itself
    want = reference(q, k, v)
    got = simulated(q, k, v)
    worst = np.abs(np.asarray(got, np.float32) - want).max()
    print(f"largest difference {worst:.1e} of {np.abs(want).max():.1e}")
