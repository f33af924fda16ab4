"""patch() and unpatch() on small Transformers models made here."""

import copy
import io

import neuron_kernels
import pytest
import torch
from neuron_kernels import modules, transformers_attention
from torch import nn

transformers = pytest.importorskip("transformers")
ids = torch.randint(0, 100, (2, 9), generator=torch.Generator().manual_seed(1))


def _llama(**kw):
    sizes = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, vocab_size=100)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**{**sizes, "num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": 2, **kw})
    )


def _qwen():
    sizes = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, vocab_size=100)
    config = transformers.Qwen3Config(num_key_value_heads=2, head_dim=16, bos_token_id=1, eos_token_id=2, **sizes)
    return transformers.Qwen3ForCausalLM(config)


def _gpt2():
    config = transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=100, bos_token_id=1, eos_token_id=2)
    return transformers.GPT2LMHeadModel(config)


def _bert(**kw):
    sizes = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, vocab_size=100)
    return transformers.BertModel(transformers.BertConfig(**sizes, **kw))


MODELS = {"llama": _llama, "qwen3": _qwen, "gpt2": _gpt2, "bert": _bert}
GENERATIVE = ("llama", "qwen3", "gpt2")
REPLACED = {
    "llama": {"RMSNorm": 5, "gated MLP": 2, "residual add + RMSNorm": 2},
    "qwen3": {"RMSNorm": 9, "gated MLP": 2, "residual add + RMSNorm": 2},
    "gpt2": {"LayerNorm": 5, "plain MLP": 2},
    "bert": {"LayerNorm": 5, "feed-forward": 2, "dense + residual LayerNorm": 4},
}


def _make(name, dtype=torch.float32, **kw):
    torch.manual_seed(0)
    model = MODELS[name](**kw).to(dtype).eval()
    with torch.no_grad():  # norms start as ones and biases as zeros, which would hide that they are used
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    transformers_attention.fallbacks.clear()
    return model


def _states(model, **inputs):
    with torch.no_grad():
        out = model(ids, **inputs)
    return out.logits if "logits" in out else out.last_hidden_state


def _tokens(model, **kw):
    return model.generate(ids, max_new_tokens=12, do_sample=False, pad_token_id=0, **kw)


each_model = pytest.mark.parametrize("name", MODELS)


@each_model
def test_same_results_and_unpatch_is_exact(name):
    model = _make(name)
    want, keys, identities = _states(model), list(model.state_dict()), [id(p) for p in model.parameters()]
    report = neuron_kernels.patch(model)
    assert dict(report.replaced) == REPLACED[name] and not report.left, str(report)
    assert report.attention == "flash_attention (was sdpa)"
    got = _states(model)
    assert (got - want).abs().max() <= 1e-5 * want.abs().max()
    assert not torch.equal(got, want), "the operators round differently somewhere; equal bits mean they did not run"
    assert list(model.state_dict()) == keys and [id(p) for p in model.parameters()] == identities
    assert not transformers_attention.fallbacks
    neuron_kernels.unpatch(model)
    assert torch.equal(_states(model), want)
    assert model.config._attn_implementation == "sdpa"
    assert all(not isinstance(m, modules.Patched) for m in model.modules())


@pytest.mark.parametrize("name", GENERATIVE)
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_same_greedy_tokens(name, cache):
    model = _make(name)
    kw = {"cache_implementation": "static", "disable_compile": True} if cache == "static" else {}
    want = _tokens(model, **kw)
    neuron_kernels.patch(model)
    assert torch.equal(_tokens(model, **kw), want)


@each_model
def test_padding(name):
    """Padded positions differ from stock only where they see nothing at all; all others are equal."""
    model = _make(name)
    mask = torch.ones_like(ids)
    mask[0, :4] = 0  # padded on the left
    want = _states(model, attention_mask=mask)
    neuron_kernels.patch(model)
    got = _states(model, attention_mask=mask)
    real = mask.bool()
    assert (got - want)[real].abs().max() <= 1e-5 * want.abs().max()
    assert bool(got.isfinite().all())
    assert not transformers_attention.fallbacks


@pytest.mark.parametrize("name", GENERATIVE)
def test_same_greedy_tokens_with_padding(name):
    model = _make(name)
    mask = torch.ones_like(ids)
    mask[0, :4] = 0
    want = _tokens(model, attention_mask=mask)
    neuron_kernels.patch(model)
    assert torch.equal(_tokens(model, attention_mask=mask), want)


@each_model
def test_bf16(name):
    model = _make(name, torch.bfloat16)
    want = _states(model)
    assert not neuron_kernels.patch(model).left
    assert (_states(model) - want).abs().max() <= 0.06 * want.abs().max()


@each_model
def test_gradients(name):
    model = _make(name)

    def gradients():
        model.zero_grad()
        out = model(ids)
        (out.logits if "logits" in out else out.last_hidden_state).square().mean().backward()
        return {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}

    want = gradients()
    neuron_kernels.patch(model)
    got = gradients()
    assert got.keys() == want.keys()
    scale = max(g.abs().max() for g in want.values())
    for n in want:
        assert (got[n] - want[n]).abs().max() <= 1e-4 * scale, n


@each_model
def test_copies_and_files(name):
    model = _make(name)
    want = _states(model)
    neuron_kernels.patch(model)
    got = _states(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert torch.equal(_states(other), got)
        neuron_kernels.unpatch(other)
        assert torch.equal(_states(other), want)
    assert torch.equal(_states(model), got)


def test_patch_twice_and_unpatch_twice():
    model = _make("llama")
    want = _states(model)
    report = neuron_kernels.patch(model)
    assert neuron_kernels.patch(model) is report
    neuron_kernels.unpatch(model)
    neuron_kernels.unpatch(model)
    assert torch.equal(_states(model), want)
    assert neuron_kernels.patch(model).replaced == report.replaced


def test_part_then_whole():
    model = _make("llama")
    want = _states(model)
    neuron_kernels.patch(model.model.layers[0])
    report = neuron_kernels.patch(model)
    assert report.replaced == {"RMSNorm": 3, "gated MLP": 1, "residual add + RMSNorm": 1}
    neuron_kernels.unpatch(model)
    assert torch.equal(_states(model), want)


def test_weights_loaded_after_patch():
    model, other = _make("llama"), _make("llama")
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.1)
    neuron_kernels.patch(model)
    model.load_state_dict(other.state_dict(), assign=True)
    assert (_states(model) - _states(other)).abs().max() <= 1e-5 * _states(other).abs().max()
    neuron_kernels.unpatch(model)
    assert torch.equal(_states(model), _states(other))


def test_compiled_whole():
    model = _make("llama")
    want = _states(model)
    neuron_kernels.patch(model)
    torch._dynamo.reset()
    with torch.no_grad():
        got = torch.compile(model, fullgraph=True, backend="aot_eager")(ids, use_cache=False).logits
    assert (got - want).abs().max() <= 1e-5 * want.abs().max()


def test_dropout_in_training_falls_back_and_is_counted():
    model = _make("llama", attention_dropout=0.5)
    report = neuron_kernels.patch(model)
    model.train()
    torch.manual_seed(3)
    got = model(ids).logits
    assert report.fallbacks == {"dropout": 2} and "2 attention calls fell back: dropout" in str(report)
    neuron_kernels.unpatch(model)
    torch.manual_seed(3)
    torch.testing.assert_close(got, model(ids).logits, rtol=1e-4, atol=1e-5)


def test_hidden_dropout_in_training_is_kept():
    model = _make("bert", hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.0).train()
    torch.manual_seed(3)
    want = model(ids).last_hidden_state
    neuron_kernels.patch(model)
    torch.manual_seed(3)
    torch.testing.assert_close(model(ids).last_hidden_state, want, rtol=1e-4, atol=1e-5)


def test_softcap_goes_to_eager_attention():
    torch.manual_seed(0)
    config = transformers.Gemma2Config(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, vocab_size=100, sliding_window=4, attn_logit_softcapping=5.0, attn_implementation="eager",
    )  # fmt: skip
    model = transformers.Gemma2ForCausalLM(config).eval()
    transformers_attention.fallbacks.clear()
    want = _states(model)
    report = neuron_kernels.patch(model)
    got = _states(model)
    assert (got - want).abs().max() <= 1e-5 * want.abs().max()
    assert transformers_attention.fallbacks == {"softcap": 2}
    assert report.replaced["gated MLP"] == 2
    # Gemma scales by 1 + weight, which the operator does not: the norms stay
    assert sum("computes something else" in why for why in report.left.values()) == 9
    neuron_kernels.unpatch(model)
    assert torch.equal(_states(model), want) and model.config._attn_implementation == "eager"


def test_sliding_window_is_in_the_mask():
    torch.manual_seed(0)
    config = transformers.MistralConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=100, sliding_window=4,
    )  # fmt: skip
    model = transformers.MistralForCausalLM(config).eval()
    want = _states(model)
    neuron_kernels.patch(model)
    assert (_states(model) - want).abs().max() <= 1e-5 * want.abs().max()


class Adapter(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


def test_what_does_not_fit_is_left_with_a_reason():
    model = _make("llama")
    layers = model.model.layers
    layers[0].mlp.act_fn = nn.ELU()
    layers[1].mlp.up_proj = Adapter(64, 96, bias=False)
    model.model.norm.register_forward_hook(lambda *_: None)
    layers[1].input_layernorm.to(torch.float64)
    report = neuron_kernels.patch(model)
    assert "ELU; allowed are identity, relu, silu" in report.left["model.layers.0.mlp"]
    assert "Adapter" in report.left["model.layers.1.mlp"]
    assert "hooks" in report.left["model.norm"]
    assert "float64" in report.left["model.layers.1.input_layernorm"]
    assert report.replaced == {"RMSNorm": 3, "residual add + RMSNorm": 2}
    assert "left" in str(report)


def test_adapter_put_on_after_patch_is_used():
    model = _make("llama")
    adapter = Adapter(64, 96, bias=False)
    neuron_kernels.patch(model)
    model.model.layers[0].mlp.up_proj = adapter
    got = _states(model)
    neuron_kernels.unpatch(model)
    assert (got - _states(model)).abs().max() <= 1e-5 * got.abs().max()


def test_hook_put_on_after_patch_runs():
    model = _make("llama")
    neuron_kernels.patch(model)
    seen = []
    model.model.layers[0].post_attention_layernorm.register_forward_hook(lambda *_: seen.append("norm"))
    model.model.layers[0].mlp.register_forward_hook(lambda *_: seen.append("mlp"))
    _states(model)
    assert seen == ["norm", "mlp"]


def test_plain_torch_model():
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.RMSNorm(8)).eval()
    x = torch.randn(3, 8)
    want = model(x)
    report = neuron_kernels.patch(model)
    assert report.replaced == {"LayerNorm": 1, "RMSNorm": 1}
    assert report.attention == "unchanged: Sequential is not a Transformers model"
    torch.testing.assert_close(model(x), want, rtol=1e-5, atol=1e-6)
    neuron_kernels.unpatch(model)
    assert torch.equal(model(x), want)


@pytest.mark.parametrize("call", [neuron_kernels.patch, neuron_kernels.unpatch])
def test_not_a_model(call):
    with pytest.raises(TypeError, match="argument model: str; needed is a torch.nn.Module"):
        call("gpt2")
