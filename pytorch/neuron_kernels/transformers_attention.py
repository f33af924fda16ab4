"""Transformers' attention interface on flash_attention, under the name of this build ("neuron_kernels").

What the operator lacks (dropout, softcap, attention sinks ..) goes to Transformers' own functions, and is counted.
"""

import sys
from collections import Counter

import torch

from . import direct
from ._build import NAMESPACE

NAME = NAMESPACE  # two builds in one process do not share it

# Calls that went to Transformers' own attention, by reason. Not counted inside torch.compile.
fallbacks = Counter()

_LARGEST_HEAD = 256
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def register():
    """Makes NAME an attention implementation that any Transformers model can be set to."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, attention_mask)


def attention_mask(*args, dtype=torch.float32, **kwargs):
    """Transformers' SDPA mask as an additive bias (0 or -inf), made once per forward and not once per layer."""
    from transformers.masking_utils import sdpa_mask

    mask = sdpa_mask(*args, dtype=dtype, **kwargs)
    return None if mask is None else _additive(mask, dtype)


def _additive(mask, dtype):
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(mask.logical_not(), float("-inf"))


def _why_not(query, key, value, dropout, kwargs):
    """Reason why flash_attention cannot do this call, or None."""
    if dropout:
        return "dropout"
    if kwargs.get("softcap") is not None:
        return "softcap"
    if kwargs.get("s_aux") is not None:
        return "attention sinks"
    if kwargs.get("position_bias") is not None:
        return "position bias"
    if query.dtype not in _DTYPES or key.dtype is not query.dtype or value.dtype is not query.dtype:
        return f"dtypes {query.dtype}, {key.dtype}, {value.dtype}"
    if query.device.type != "cpu":
        return f"device {query.device.type}"
    if query.shape[-1] > _LARGEST_HEAD or value.shape[-1] > _LARGEST_HEAD:
        return f"head size above {_LARGEST_HEAD}"
    if query.shape[0] != key.shape[0]:
        return "batch of queries differs from batch of keys"
    return None


def _fall_back(reason, module, query, key, value, attention_mask, **kwargs):
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if not torch.compiler.is_compiling():
        fallbacks[reason] += 1
    if reason not in ("softcap", "attention sinks"):  # which SDPA lacks, too
        return sdpa_attention_forward(module, query, key, value, attention_mask, **kwargs)
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None:
        raise NotImplementedError(
            f"neuron_kernels: attention with {reason} is not supported, and {type(module).__module__} has no "
            "eager_attention_forward to use instead; call neuron_kernels.unpatch(model)"
        )
    lowest = torch.finfo(query.dtype).min  # finite: eager softmax makes a row of -inf NaN
    if attention_mask is not None:
        attention_mask = attention_mask.clamp(min=lowest)
    elif _is_causal(module, query, kwargs["is_causal"]):  # left to the operator, but eager attention needs it
        attention_mask = query.new_full((query.shape[2], key.shape[2]), lowest).triu(1)
    return eager(module, query, key, value, attention_mask, **kwargs)


def _is_causal(module, query, is_causal):
    """Whether a call without a mask means that queries see no later key."""
    return bool(query.shape[2] > 1 and (is_causal if is_causal is not None else getattr(module, "is_causal", True)))


def attention_forward(
    module, query, key, value, attention_mask, dropout=0.0, scaling=None, is_causal=None, **kwargs
):  # fmt: skip
    """softmax(scaling q k^T + mask) v for q [batch, heads, q_len, d]; gives [batch, q_len, heads, d] and no weights."""
    if attention_mask is not None:
        attention_mask = _additive(attention_mask, query.dtype)
    reason = _why_not(query, key, value, dropout, kwargs)
    if reason is not None:
        return _fall_back(
            reason, module, query, key, value, attention_mask,
            dropout=dropout, scaling=scaling, is_causal=is_causal, **kwargs,
        )  # fmt: skip
    q_len = query.shape[2]
    causal = attention_mask is None and _is_causal(module, query, is_causal)
    if causal and key.shape[2] > q_len:
        # No mask and more keys than queries: the prefill of a static cache, whose further keys are empty.
        key, value = key[:, :, :q_len], value[:, :, :q_len]
    out = direct.flash_attention(query, key, value, attention_mask, causal, scaling)
    return out.transpose(1, 2), None  # contiguous: the operator lays its result out like this
