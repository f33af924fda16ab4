"""The forwards that patch() gives to modules of a model.

Each is a mixin in front of the module's own class: module, parameters, hooks and state_dict keys stay the same objects,
isinstance still holds, and unpatch() gives the class back.
"""

import functools

from torch import nn

from . import direct


class Patched:
    """Base of the mixins. settings: what the mixin found out when it was put on."""

    def extra_repr(self):
        own = super().extra_repr()
        return f"{own}, on neuron_kernels" if own else "on neuron_kernels"

    def __reduce_ex__(self, protocol):  # the class is made at run time, so it is pickled as what it is made of
        return _unpickled, (type(self).neuron_kernels_mixin, type(self).neuron_kernels_original), self.__dict__

    @classmethod
    def members(cls, original):
        """Further members of the patched class of `original`."""
        return {}


def _unpickled(mixin, original):
    patched = patched_class(mixin, original)
    return patched.__new__(patched)


@functools.cache
def patched_class(mixin, original):
    """`original` with the mixin's methods in front. Its name stays: Transformers looks modules up by it."""
    members = {
        "__module__": original.__module__,
        "__qualname__": original.__qualname__,
        "__doc__": original.__doc__,
        "neuron_kernels_mixin": mixin,
        "neuron_kernels_original": original,
        **mixin.members(original),
    }
    return type(original.__name__, (mixin, original), members)


def put_on(module, mixin, settings):
    """module gets the mixin's behaviour."""
    module.neuron_kernels_settings = settings
    module.__class__ = patched_class(mixin, type(module))


def take_off(module):
    """module behaves as before put_on."""
    module.__class__ = type(module).neuron_kernels_original
    del module.neuron_kernels_settings


class RmsNorm(Patched):
    def forward(self, hidden_states):
        return direct.rms_norm(hidden_states, self._parameters["weight"], self.neuron_kernels_settings["eps"])


class LayerNorm(Patched):
    def forward(self, hidden_states):
        return direct.layer_norm(hidden_states, self.weight, self.bias, self.eps)


def weight_and_bias(layer):
    """Weight [size, inputs] and bias of a Linear or of GPT-2's Conv1D; None for any other module, e.g. an adapter."""
    parameters = layer._parameters
    if type(layer) is nn.Linear:
        return parameters["weight"], parameters["bias"]
    if type(layer).__name__ == "Conv1D" and type(layer).__module__ == "transformers.pytorch_utils":
        return parameters["weight"].t(), parameters["bias"]
    return None


class GatedMlp(Patched):
    def forward(self, hidden_states):
        modules, settings = self._modules, self.neuron_kernels_settings
        gate, up, down = (weight_and_bias(modules[name]) for name in settings["layers"])
        if gate is None or up is None or down is None:  # an adapter was put on after patch()
            return super().forward(hidden_states)
        return direct.fused_mlp(hidden_states, up[0], down[0], gate[0], up[1], down[1], gate[1], settings["activation"])


class PlainMlp(Patched):
    def forward(self, hidden_states):
        modules, settings = self._modules, self.neuron_kernels_settings
        up, down = (weight_and_bias(modules[name]) for name in settings["layers"])
        if up is None or down is None or (self.training and settings["dropout"]):
            return super().forward(hidden_states)
        return direct.fused_mlp(hidden_states, up[0], down[0], None, up[1], down[1], None, settings["activation"])


class DenseNorm(Patched):
    """BERT's dense, dropout, LayerNorm of the sum with the residual."""

    def forward(self, hidden_states, input_tensor):
        if self.training and self.neuron_kernels_settings["dropout"]:
            return super().forward(hidden_states, input_tensor)
        norm = self.LayerNorm
        return direct.layer_norm(self.dense(hidden_states), norm.weight, norm.bias, norm.eps, input_tensor)


class FeedForward(Patched):
    """BERT's feed_forward_chunk: intermediate and output of one layer as one MLP."""

    def feed_forward_chunk(self, attention_output):
        settings = self.neuron_kernels_settings
        up, down = weight_and_bias(self.intermediate.dense), weight_and_bias(self.output.dense)
        if up is None or down is None or (self.training and settings["dropout"]):
            return super().feed_forward_chunk(attention_output)
        mlp = direct.fused_mlp(attention_output, up[0], down[0], None, up[1], down[1], None, settings["activation"])
        norm = self.output.LayerNorm
        return direct.layer_norm(mlp, norm.weight, norm.bias, norm.eps, attention_output)


class AddNorm(Patched):
    """A decoder layer whose `h = residual + h; residual = h; h = self.norm(h)` is one operator."""

    @classmethod
    def members(cls, original):
        from .add_norm import fused_forward

        return {"forward": fused_forward(original)}

    @staticmethod
    def neuron_kernels_add_norm(hidden_states, residual, norm):
        """norm(residual + hidden_states), residual + hidden_states"""
        if (
            isinstance(norm, RmsNorm)
            and hidden_states.dtype == residual.dtype
            and hidden_states.shape == residual.shape
            and not (norm._forward_hooks or norm._forward_pre_hooks)
        ):
            eps = norm.neuron_kernels_settings["eps"]
            return direct.add_rms_norm(hidden_states, residual, norm._parameters["weight"], eps)
        total = residual + hidden_states
        return norm(total), total
