"""attention_merge for trn2, in NKI.

partial [3, 2, 130, 8] float32
partial_lse [3, 2, 130, 1] float32
dst [1, 2, 130, 8] float32, returned
"""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def attention_merge(partial, partial_lse):
    assert partial.shape == (3, 2, 130, 8)
    assert partial_lse.shape == (3, 2, 130, 1)
    dst = nl.ndarray((1, 2, 130, 8), dtype=nl.float32, buffer=nl.shared_hbm)
    for i1 in range(2):
        # the first 128 of 130
        m = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        l = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        acc = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=m, value=-3.4028235e38, engine=nisa.engine.gpsimd)
        nisa.memset(dst=l, value=0.0, engine=nisa.engine.gpsimd)
        nisa.memset(dst=acc, value=0.0, engine=nisa.engine.gpsimd)
        for i3 in range(3):
            lse_s = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=lse_s, src=partial_lse[i3, i1, 0:128, :])
            # m = max(m, lse_s)  [128, 1]
            nisa.tensor_tensor(dst=m, data1=m, data2=lse_s, op=nl.maximum, engine=nisa.engine.vector)
        for i3 in range(3):
            weight = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            lse_s_1 = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=lse_s_1, src=partial_lse[i3, i1, 0:128, :])
            # weight = lse_s_1 - m  [128, 1]
            nisa.tensor_tensor(dst=weight, data1=lse_s_1, data2=m, op=nl.subtract, engine=nisa.engine.vector)
            nisa.activation(dst=weight, op=nl.exp, data=weight)  # weight = exp(weight)  [128, 1]
            # l = l + weight  [128, 1]
            nisa.tensor_tensor(dst=l, data1=l, data2=weight, op=nl.add, engine=nisa.engine.vector)
            partial_1 = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=partial_1, src=partial[i3, i1, 0:128, :])
            # acc = (partial_1 * weight) + acc  [128, 8]
            nisa.scalar_tensor_tensor(
                dst=acc, data=partial_1, op0=nl.multiply, operand0=weight, op1=nl.add, operand1=acc
            )
        # l = max(l, 1e-30)  [128, 1]
        nisa.tensor_scalar(dst=l, data=l, op0=nl.maximum, operand0=1e-30, engine=nisa.engine.vector)
        nisa.reciprocal(dst=l, data=l)  # l = 1 / l  [128, 1]
        # acc = acc * l  [128, 8]
        nisa.tensor_scalar(dst=acc, data=acc, op0=nl.multiply, operand0=l, engine=nisa.engine.vector)
        nisa.dma_copy(dst=dst[0, i1, 0:128, :], src=acc)
        # the last 2 of 130
        m_1 = nl.ndarray((2, 1), dtype=nl.float32, buffer=nl.sbuf)
        l_1 = nl.ndarray((2, 1), dtype=nl.float32, buffer=nl.sbuf)
        acc_1 = nl.ndarray((2, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=m_1, value=-3.4028235e38, engine=nisa.engine.gpsimd)
        nisa.memset(dst=l_1, value=0.0, engine=nisa.engine.gpsimd)
        nisa.memset(dst=acc_1, value=0.0, engine=nisa.engine.gpsimd)
        for i3 in range(3):
            lse_s_2 = nl.ndarray((2, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=lse_s_2, src=partial_lse[i3, i1, 128:130, :])
            # m_1 = max(m_1, lse_s_2)  [2, 1]
            nisa.tensor_tensor(dst=m_1, data1=m_1, data2=lse_s_2, op=nl.maximum, engine=nisa.engine.vector)
        for i3 in range(3):
            weight_1 = nl.ndarray((2, 1), dtype=nl.float32, buffer=nl.sbuf)
            lse_s_3 = nl.ndarray((2, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=lse_s_3, src=partial_lse[i3, i1, 128:130, :])
            # weight_1 = lse_s_3 - m_1  [2, 1]
            nisa.tensor_tensor(dst=weight_1, data1=lse_s_3, data2=m_1, op=nl.subtract, engine=nisa.engine.vector)
            nisa.activation(dst=weight_1, op=nl.exp, data=weight_1)  # weight_1 = exp(weight_1)  [2, 1]
            # l_1 = l_1 + weight_1  [2, 1]
            nisa.tensor_tensor(dst=l_1, data1=l_1, data2=weight_1, op=nl.add, engine=nisa.engine.vector)
            partial_2 = nl.ndarray((2, 8), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=partial_2, src=partial[i3, i1, 128:130, :])
            # acc_1 = (partial_2 * weight_1) + acc_1  [2, 8]
            nisa.scalar_tensor_tensor(
                dst=acc_1, data=partial_2, op0=nl.multiply, operand0=weight_1, op1=nl.add, operand1=acc_1
            )
        # l_1 = max(l_1, 1e-30)  [2, 1]
        nisa.tensor_scalar(dst=l_1, data=l_1, op0=nl.maximum, operand0=1e-30, engine=nisa.engine.vector)
        nisa.reciprocal(dst=l_1, data=l_1)  # l_1 = 1 / l_1  [2, 1]
        # acc_1 = acc_1 * l_1  [2, 8]
        nisa.tensor_scalar(dst=acc_1, data=acc_1, op0=nl.multiply, operand0=l_1, engine=nisa.engine.vector)
        nisa.dma_copy(dst=dst[0, i1, 128:130, :], src=acc_1)
    return dst


if __name__ == "__main__":  # with NEURON_PLATFORM_TARGET_OVERRIDE=trn2
    rng = np.random.default_rng(0)
    partial = rng.standard_normal((3, 2, 130, 8)).astype(np.float32)
    partial_lse = rng.standard_normal((3, 2, 130, 1)).astype(np.float32)
    simulated = nki.simulate(attention_merge)  # on a NeuronCore call it itself
    got = simulated(partial, partial_lse)
    print(got)
