"""A NumPy stand-in for AWS's package of this name: executes kernels and asserts the limits of the chip.

Not AWS's simulator, and no timing. Fresh tiles are NaN; sums and functions are f32. The chip is that of
NEURON_PLATFORM_TARGET_OVERRIDE (trn1, trn2 or trn3).
"""

import numpy as np

from nki import language as nl

__all__ = ["jit", "simulate", "tensor"]


def jit(kernel):
    return kernel


def tensor(array, dtype=nl.float32):
    """An argument in HBM: the numbers of `array`, which are rounded to dtype."""
    t = nl.NkiTensor(array.shape, dtype, nl.shared_hbm)
    t.write(np.asarray(array, np.float32), by="caller")
    return t


def simulate(kernel):
    """Calls the kernel with arrays or tensors; returns what it returns as f32 arrays."""

    def call(*arguments):
        hbm = [a if isinstance(a, nl.NkiTensor) else tensor(a, nl.dtype_of_array(a)) for a in arguments]
        results = kernel(*hbm)
        if isinstance(results, tuple):
            return tuple(r.data.copy() for r in results)
        return results.data.copy()

    return call
