"""patch(model) and unpatch(model): a Transformers model on neuron_kernels' operators, and back."""

from collections import Counter
from dataclasses import dataclass, field

from torch import nn

from . import matching, modules, transformers_attention

_RECORD = "_neuron_kernels_patch"


@dataclass
class PatchReport:
    """What patch() did. str(report) is a table."""

    attention: str = "unchanged"
    replaced: dict[str, int] = field(default_factory=Counter)  # kind -> number of modules
    left: dict[str, str] = field(default_factory=dict)  # module name -> why it stays as it was
    fallbacks: Counter = field(default_factory=lambda: transformers_attention.fallbacks, repr=False)  # calls so far

    def __str__(self):
        lines = [f"attention: {self.attention}"]
        lines += [f"{count:4d} x {kind}" for kind, count in sorted(self.replaced.items())]
        reasons = Counter(self.left.values())
        lines += [f"{count:4d} left: {why}" for why, count in sorted(reasons.items())]
        lines += [f"{count:4d} attention calls fell back: {why}" for why, count in sorted(self.fallbacks.items())]
        return "\n".join(lines)


@dataclass
class _Record:
    report: PatchReport
    attention: list  # (config, its attention implementation before)


def patch(model):
    """Runs the model's attention, norms and MLPs on neuron_kernels' operators; returns a PatchReport.

    The modules stay the same objects: parameters, state_dict keys and hooks do not change. A model that is patched
    already stays as it is. Hooks on layers inside a patched MLP do not run.
    errors: TypeError for what is not a torch.nn.Module
    """
    _require_module(model, "patch")
    if _RECORD in model.__dict__:
        return model.__dict__[_RECORD].report
    report = PatchReport()
    record = _Record(report, _patch_attention(model, report))
    for name, module in list(model.named_modules()):
        if isinstance(module, modules.Patched):
            continue
        try:
            found = matching.match(module)
        except matching.Left as why:
            report.left[name] = f"{type(module).__name__}: {why}"
            continue
        if found is not None:
            kind, mixin, settings = found
            modules.put_on(module, mixin, settings)
            report.replaced[kind] += 1
    model.__dict__[_RECORD] = record  # not an attribute that nn.Module would look at
    return report


def unpatch(model):
    """Undoes patch(): the model computes bit for bit what it did before. A model that is not patched stays as it is.

    errors: TypeError for what is not a torch.nn.Module
    """
    _require_module(model, "unpatch")
    for module in list(model.modules()):
        if isinstance(module, modules.Patched):
            modules.take_off(module)
        record = module.__dict__.pop(_RECORD, None)
        if record is not None:
            for config, implementation in record.attention:
                config._attn_implementation_internal = implementation


def _require_module(model, call):
    if not isinstance(model, nn.Module):
        raise TypeError(f"{call}: argument model: {type(model).__name__}; needed is a torch.nn.Module")


def _patch_attention(model, report):
    """Sets the attention implementation; returns the configs with what they had before."""
    try:
        from transformers import PreTrainedModel
    except ImportError:
        report.attention = "unchanged: transformers is not installed"
        return []
    if not isinstance(model, PreTrainedModel):
        report.attention = f"unchanged: {type(model).__name__} is not a Transformers model"
        return []
    if not model._can_set_attn_implementation():
        report.attention = f"unchanged: {type(model).__name__} does not use Transformers' attention interface"
        return []
    transformers_attention.register()
    before = [(config, config._attn_implementation) for config in _configs(model)]
    model.set_attn_implementation(transformers_attention.NAME)
    changed = [(config, old) for config, old in before if config._attn_implementation != old]
    was = ", ".join(sorted({str(old) for _, old in changed}))
    report.attention = f"flash_attention (was {was})" if changed else "unchanged: the model refused the implementation"
    return changed


def _configs(model):
    """The configs of the model and of all its parts, each once."""
    found = {}
    queue = [m.config for m in model.modules() if hasattr(m, "config") and hasattr(m.config, "_attn_implementation")]
    while queue:
        config = queue.pop()
        if id(config) not in found:
            found[id(config)] = config
            parts = (getattr(config, key, None) for key in getattr(config, "sub_configs", {}))
            queue += [part for part in parts if part is not None]
    return list(found.values())
