"""The operators of this build: torch.ops.neuron_kernels, or those of a build that `kernels build` made."""

import torch

from ._build import NAMESPACE

ops = getattr(torch.ops, NAMESPACE)
