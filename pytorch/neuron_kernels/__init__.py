"""PyTorch operators on the neuron_kernels C++ kernels, and patch() for Transformers models.

torch.ops.neuron_kernels.{matmul, matmul_into, layer_norm, rms_norm, add_rms_norm, fused_mlp,
                          flash_attention, flash_attention_lse}
neuron_kernels.patch(model), neuron_kernels.unpatch(model)

A build from the hub has a namespace of its own, torch.ops.<id>; `ops` is the namespace of this module, whatever its
name.
"""

from importlib.metadata import PackageNotFoundError, version

from ._build import VERSION as _VERSION
from ._library import load_operators

load_operators()

from . import autograd, fake  # noqa: E402, F401  (they register what needs the operators to exist)
from ._ops import ops  # noqa: E402
from .patching import PatchReport, patch, unpatch  # noqa: E402

try:
    __version__ = _VERSION or version("neuron-kernels")
except PackageNotFoundError:  # imported from a checkout that is not installed
    __version__ = "unknown"


def instruction_set():
    """Name of the instruction set that the kernels run on here, as in the variable NEURON_KERNELS_ISA."""
    return ops.instruction_set()


__all__ = ["PatchReport", "instruction_set", "ops", "patch", "unpatch"]
