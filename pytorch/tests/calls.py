"""One good call of each operator, for the tests that hold for all of them."""

import neuron_kernels  # noqa: F401  (registers the operators)
import torch
from references import normal

ops = torch.ops.neuron_kernels


def calls(batch=2, dtype=torch.float32):
    """name -> (operator, arguments); the positions of tensors are those of differentiable arguments."""

    def n(*sizes, seed, scale=1.0):
        return normal(*sizes, seed=seed, dtype=dtype, scale=scale)

    x, residual = n(batch, 6, 24, seed=1), n(batch, 6, 24, seed=2)
    weight, bias = n(24, seed=3) * 0.3 + 1, n(24, seed=4)
    up, gate, down = n(40, 24, seed=5, scale=0.3), n(40, 24, seed=6, scale=0.3), n(24, 40, seed=7, scale=0.3)
    inner = n(40, seed=8)
    q, k, v = n(batch, 4, 6, 8, seed=9), n(batch, 2, 9, 8, seed=10), n(batch, 2, 9, 8, seed=11)
    found = {
        "matmul": (ops.matmul, (x, up.t())),
        "matmul_batched": (ops.matmul, (x, residual.transpose(1, 2))),
        "layer_norm": (ops.layer_norm, (x, weight, bias, 1e-5)),
        "layer_norm_residual": (ops.layer_norm, (x, weight, bias, 1e-5, residual)),
        "layer_norm_bare": (ops.layer_norm, (x,)),
        "rms_norm": (ops.rms_norm, (x, weight, 1e-6)),
        "add_rms_norm": (ops.add_rms_norm, (x, residual, weight, 1e-6)),
        "flash_attention": (ops.flash_attention, (q, k, v, None, True)),
        "flash_attention_bias": (ops.flash_attention, (q, k, v, n(1, 4, 6, 9, seed=12), False, 0.3)),
        "flash_attention_lse": (ops.flash_attention_lse, (q, k, v, None, True)),
    }
    for activation in ("identity", "relu", "silu", "gelu", "gelu_tanh", "sigmoid", "tanh"):
        epilogue = (x, up.t(), inner, activation, n(batch, 6, 40, seed=13), 0.5)
        found[f"matmul_{activation}"] = (ops.matmul, epilogue)
        found[f"mlp_{activation}"] = (ops.fused_mlp, (x, up, down, None, inner, bias, None, activation))
        found[f"gated_mlp_{activation}"] = (ops.fused_mlp, (x, up, down, gate, inner, bias, inner, activation))
    return found


NAMES = list(calls())


def tensors(result):
    return [result] if isinstance(result, torch.Tensor) else list(result)
