"""The operators as patched modules call them: without the detour through Python where no gradient is wanted.

PyTorch calls the Python part of an operator's derivative at each call, even under no_grad (about 7 us). Without
gradients these calls start below it (about 1 us).
"""

import functools

import torch
from torch._C import _AutoDispatchBelowAutograd

from ._ops import ops

_is_compiling = torch.compiler.is_compiling
_is_grad_enabled = torch.is_grad_enabled


def _direct(operator):
    @functools.wraps(operator)
    def call(*args):
        if _is_grad_enabled() or _is_compiling():
            return operator(*args)
        with _AutoDispatchBelowAutograd():
            return operator(*args)

    return call


add_rms_norm = _direct(ops.add_rms_norm.default)
flash_attention = _direct(ops.flash_attention.default)
fused_mlp = _direct(ops.fused_mlp.default)
layer_norm = _direct(ops.layer_norm.default)
rms_norm = _direct(ops.rms_norm.default)
