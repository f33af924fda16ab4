"""Which modules patch() can run on the operators: by structure first, then by comparing results on a probe."""

import inspect

import torch
from torch import nn

from . import modules
from .add_norm import fused_forward
from .autograd import ACTIVATIONS

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_GATED_LAYERS = ("gate_proj", "up_proj", "down_proj")
_PLAIN_LAYERS = (("c_fc", "c_proj"), ("fc1", "fc2"), ("up_proj", "down_proj"), ("dense_h_to_4h", "dense_4h_to_h"))
_DENSE_NORM_LAYERS = {"dense", "dropout", "LayerNorm"}
_ACTIVATION_NAMES = ("act_fn", "act", "activation_fn", "intermediate_act_fn", "activation")


class Left(Exception):
    """A module that looks like one of ours but must stay as it is; the text says why."""


def match(module):
    """(kind, mixin, settings) for a module that can be patched, None for one of no interest; raises Left."""
    for rule in (_layer_norm, _rms_norm, _gated_mlp, _plain_mlp, _dense_norm, _feed_forward, _add_norm):
        found = rule(module)
        if found is not None:
            _require_plain(module)
            return found
    return None


def _layer_norm(module):
    if type(module) is not nn.LayerNorm:
        return None
    if len(module.normalized_shape) != 1:
        raise Left(f"normalises {len(module.normalized_shape)} dimensions, the operator one")
    _require_dtypes(module)
    return "LayerNorm", modules.LayerNorm, {}


def _rms_norm(module):
    name = type(module).__name__.lower()
    parameters = module._parameters
    if "norm" not in name or module._modules or set(parameters) != {"weight"} or parameters["weight"] is None:
        return None
    weight = parameters["weight"]
    if weight.dim() != 1 or _argument_count(module.forward) != 1:
        return None
    eps = getattr(module, "variance_epsilon", getattr(module, "eps", None))
    if eps is None and type(module) is nn.RMSNorm:
        eps = torch.finfo(torch.float32).eps
    if not isinstance(eps, float):
        return None
    _require_dtypes(module)
    found = "RMSNorm", modules.RmsNorm, {"eps": eps}
    _require_same(module, found, lambda m, x: m(x), weight.shape[0])
    return found


def _gated_mlp(module):
    layers = _linear_layers(module, _GATED_LAYERS)
    if layers is None:
        return None
    found = "gated MLP", modules.GatedMlp, {"layers": _GATED_LAYERS, "activation": _activation(module)}
    _require_dtypes(module)
    _require_same(module, found, lambda m, x: m(x), layers[0][0].shape[1])
    return found


def _plain_mlp(module):
    for names in _PLAIN_LAYERS:
        layers = _linear_layers(module, names)
        if layers is not None and _argument_count(module.forward) == 1 and _activation_module(module) is not None:
            settings = {"layers": names, "activation": _activation(module), "dropout": _dropout(module)}
            found = "plain MLP", modules.PlainMlp, settings
            _require_dtypes(module)
            _require_same(module, found, lambda m, x: m(x), layers[0][0].shape[1])
            return found
    return None


def _dense_norm(module):
    if set(module._modules) != _DENSE_NORM_LAYERS:
        return None
    dense, norm = module.dense, module.LayerNorm
    if type(dense) is not nn.Linear or not isinstance(norm, nn.LayerNorm) or _argument_count(module.forward) != 2:
        return None
    found = "dense + residual LayerNorm", modules.DenseNorm, {"dropout": _dropout(module)}
    _require_dtypes(module)
    width = dense.weight.shape[0]
    _require_same(module, found, lambda m, x: m(x[:, : dense.weight.shape[1]], x[:, -width:]), sum(dense.weight.shape))
    return found


def _feed_forward(module):
    children = module._modules
    if not {"intermediate", "output"} <= set(children) or not hasattr(type(module), "feed_forward_chunk"):
        return None
    first, second = children["intermediate"], children["output"]
    if type(getattr(first, "dense", None)) is not nn.Linear or set(second._modules) != {
        "dense",
        "dropout",
        "LayerNorm",
    }:
        return None
    settings = {"activation": _activation(first), "dropout": _dropout(second)}
    found = "feed-forward", modules.FeedForward, settings
    _require_dtypes(first)
    _require_plain(first)
    _require_plain(second)
    _require_same(module, found, lambda m, x: m.feed_forward_chunk(x), first.dense.weight.shape[1])
    return found


def _add_norm(module):
    if "norm" not in " ".join(module._modules) or not any("attn" in n or "attention" in n for n in module._modules):
        return None
    if fused_forward(type(module)) is None:
        return None
    return "residual add + RMSNorm", modules.AddNorm, {}


def _linear_layers(module, names):
    """Weights and biases of the layers with these names, if they are all that the module computes with."""
    children = module._modules
    if not set(names) <= set(children):
        return None
    layers = [modules.weight_and_bias(children[name]) for name in names]
    if any(layer is None for layer in layers):
        kinds = sorted({type(children[name]).__name__ for name in names})
        raise Left(f"its layers are {', '.join(kinds)}; the operator takes Linear and Conv1D")
    others = [m for n, m in children.items() if n not in names and next(m.parameters(), None) is not None]
    return None if others else layers


def _activation_module(module):
    for name in _ACTIVATION_NAMES:
        function = getattr(module, name, None)
        if callable(function):
            return function
    return None


def _activation(module):
    """Name of the operator's activation that computes the same as the module's."""
    function = _activation_module(module)
    if function is None:
        raise Left(f"no activation under the names {', '.join(_ACTIVATION_NAMES)}")
    x = torch.linspace(-6, 6, 241)
    with torch.no_grad():
        got = function(x)
        for name, known in ACTIVATIONS.items():
            if got.shape == x.shape and torch.allclose(got, known(x), rtol=0, atol=2e-6):
                return name
    raise Left(
        f"activation {getattr(function, '__name__', type(function).__name__)}; allowed are {', '.join(ACTIVATIONS)}"
    )


def _dropout(module):
    return max((m.p for m in module._modules.values() if isinstance(m, nn.Dropout)), default=0.0)


def _argument_count(function):
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return sum(p.kind in kinds for p in parameters) if all(p.kind in kinds for p in parameters) else -1


def _require_dtypes(module):
    for parameter in module.parameters():
        if parameter.device.type != "cpu":
            raise Left(f"on device {parameter.device.type}; the operators run on cpu")
        if parameter.dtype not in DTYPES:
            raise Left(f"dtype {parameter.dtype}; allowed are {', '.join(map(str, DTYPES))}")
    if len({parameter.dtype for parameter in module.parameters()}) > 1:
        raise Left("parameters of several dtypes")


def _require_plain(module):
    if "forward" in module.__dict__:
        raise Left("its forward was replaced on the instance")
    if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks:
        raise Left("has hooks")


def _require_same(module, found, call, width):
    """The module's own result and the operator's on three rows, one of them tiny so that eps counts."""
    _, mixin, settings = found
    _require_plain(module)
    dtype = next(module.parameters()).dtype
    x = torch.randn(3, width, generator=torch.Generator().manual_seed(0))
    x[1] *= 1e-3
    x = x.to(dtype)
    training = module.training
    with torch.no_grad():
        module.eval()
        want = call(module, x).float()
        modules.put_on(module, mixin, settings)
        try:
            got = call(module, x).float()
        finally:
            modules.take_off(module)
            module.train(training)
    bound = (1e-4 if dtype == torch.float32 else 4e-2) * want.abs().amax(-1, keepdim=True).clamp_min(1e-30)
    if got.shape != want.shape or not bool(((got - want).abs() <= bound).all()):
        worst = (got - want).abs().max().item() if got.shape == want.shape else float("nan")
        raise Left(f"computes something else than the operator (difference {worst:.2g} on a probe)")
