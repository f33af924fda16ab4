"""Loads ops.so into PyTorch; what does not fit is an ImportError that says what to do."""

import re
from pathlib import Path

LOWEST_TORCH = (2, 10)


def load_operators():
    """Registers torch.ops.neuron_kernels.*. Errors: ImportError when PyTorch or ops.so is missing or does not fit."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "neuron_kernels needs PyTorch 2.10 or newer, which is not installed: pip install torch"
        ) from error
    found = tuple(int(n) for n in re.findall(r"\d+", torch.__version__)[:2])
    if found < LOWEST_TORCH:
        raise ImportError(
            f"neuron_kernels needs PyTorch 2.10 or newer; this is {torch.__version__}: pip install --upgrade torch"
        )
    library = Path(__file__).with_name("ops.so")
    if not library.exists():
        raise ImportError(
            f"neuron_kernels is not built: no {library}; run: pip install --no-build-isolation ./pytorch"
            " (and start Python outside that folder, where these sources hide the installed package)"
        )
    try:
        torch.ops.load_library(str(library))
    except OSError as error:
        why = error.__cause__ or error
        raise ImportError(
            f"neuron_kernels: {library} does not fit PyTorch {torch.__version__} ({why}); build it again with this "
            "PyTorch: pip install --force-reinstall --no-deps --no-build-isolation ./pytorch"
        ) from error
