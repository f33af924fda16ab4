"""A language model and a sentence encoder on neuron_kernels, against stock PyTorch: same results? how fast?

The operators are the bundled package, pushed to a local registry and pulled back from it (demo_hub.py). Run by `make
demo`. Exit code 1 when results differ. The figures go to build/demo.json.
"""

import copy
import itertools
import json
import os
import platform
import statistics
import sys
import tempfile
import textwrap
import time
import warnings
from pathlib import Path

import demo_hub

os.environ["HF_HUB_OFFLINE"] = "1"  # the weights are in installed packages; nothing is downloaded
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
warnings.filterwarnings("ignore")
ROOT = Path(__file__).resolve().parent.parent

NEW_TOKENS = 128
PREFILLS = (1, 128, 512, 1024)
DECODE_TOKENS = 32
ROUNDS = 5
LEAST_ROUNDS = 3
TIME_LIMIT_S = 150  # of the speed table; a slow machine does fewer rounds
EMBEDDING_TOLERANCE = 1e-5  # of embeddings of length 1


def main():
    say("neuron_kernels: a real language model on kernels written for AWS Trainium, on this CPU\n")
    with tempfile.TemporaryDirectory(prefix="neuron-kernels-demo-") as folder:
        return run(Path(folder))


def run(folder):
    started = time.perf_counter()
    progress("loading PyTorch and Transformers", None)
    import demo_models
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_grad_enabled(False)
    neuron_kernels, hub = demo_hub.by_registry(folder, progress)
    machine = {
        "cpu": cpu_model(),
        "threads": torch.get_num_threads(),
        "instruction_set": neuron_kernels.instruction_set(),
        "os": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "neuron_kernels": neuron_kernels.__version__,
    }
    model, tokenizer = demo_models.load_smollm2(progress)
    encoder, encoder_tokenizer = demo_models.load_minilm(progress)
    progress("patching", None)
    patched, patched_encoder = with_same_weights(model), with_same_weights(encoder)
    report = neuron_kernels.patch(patched)
    encoder_report = neuron_kernels.patch(patched_encoder)
    progress(None, None)
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)}"
    say(f"machine   {machine['cpu']}, {threads}, kernels for {machine['instruction_set']}")
    say("software  " + ", ".join(f"{name} {machine[name]}" for name in ("torch", "transformers", "neuron_kernels")))
    say(demo_hub.describe(hub))
    say("models    SmolLM2-135M-Instruct and MiniLM-L6-v2 in float32; stock PyTorch with its own attention (sdpa)")
    say(f"patched   {summary(report)}\n")

    text, tokens_ok = same_text(model, patched, tokenizer)
    speed = text_speed(model, patched, text.pop("prompt_ids"))
    embeddings, embeddings_ok = sentence_embeddings(encoder, patched_encoder, encoder_tokenizer)
    seconds = time.perf_counter() - started
    figures = {
        "machine": machine,
        "hub": hub,
        "patched": {"SmolLM2": describe(report), "MiniLM": describe(encoder_report)},
        "text": text,
        "speed": speed,
        "embeddings": embeddings,
        "seconds": round(seconds, 1),
    }
    path = ROOT / "build" / "demo.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")
    verdict = "same tokens" if tokens_ok else "DIFFERENT TOKENS"
    verdict += ", same embeddings" if embeddings_ok else ", EMBEDDINGS OUT OF TOLERANCE"
    say(f"{verdict}; {seconds:.0f} s; all figures in {path.relative_to(ROOT)}")
    return 0 if tokens_ok and embeddings_ok else 1


def same_text(model, patched, tokenizer):
    """Greedy text from both, and how far their logits are apart on it."""
    import torch

    question = (ROOT / "scripts" / "demo_prompt.txt").read_text().strip()
    chat = [{"role": "user", "content": question}]
    prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    ids = prompt["input_ids"]
    results = []
    for who, m in (("stock PyTorch", model), ("neuron_kernels", patched)):
        tokens = []
        for i, token in enumerate(itertools.islice(greedy(m, ids), NEW_TOKENS)):
            progress(f"generating {NEW_TOKENS} tokens with {who}", i / NEW_TOKENS)
            tokens.append(token)
        results.append(tokens)
    stock, ours = results
    progress("comparing logits", None)
    forced = torch.cat([ids, torch.tensor([stock[:-1]])], 1)  # both models read the same text
    a, b = model(forced).logits[0], patched(forced).logits[0]
    difference = (a - b).abs().max().item()
    best_two = a[ids.shape[1] - 1 :].topk(2).values
    lead = (best_two[:, 0] - best_two[:, 1]).min().item()
    progress(None, None)
    say(f"> {question}\n")
    say(indent(tokenizer.decode(ours, skip_special_tokens=True).strip()) + " ...\n")
    say("(A model this small makes things up. What counts is whether both say the same.)\n")
    equal = sum(x == y for x, y in zip(stock, ours, strict=True))
    if stock == ours:
        say(f"same tokens as stock PyTorch: {equal} of {NEW_TOKENS}")
    else:
        at = next(i for i, (x, y) in enumerate(zip(stock, ours, strict=True)) if x != y)
        say(f"DIFFERENT from token {at} on: stock {tokenizer.decode(stock[at])!r}, ours {tokenizer.decode(ours[at])!r}")
    say(f"largest difference of logits over {forced.shape[1]} positions: {difference:.1e}")
    say(
        f"(smallest lead of a chosen token over the next best: {lead:.1e}; largest logit: {a.abs().max().item():.0f})\n"
    )
    figures = {
        "prompt": question,
        "prompt_ids": ids,
        "tokens": NEW_TOKENS,
        "tokens_equal": equal,
        "text": tokenizer.decode(ours, skip_special_tokens=True),
        "largest_logit_difference": difference,
        "positions": forced.shape[1],
        "smallest_lead": lead,
    }
    return figures, stock == ours


def greedy(model, ids):
    """Yields the best next token, for ever."""
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    while True:
        logits = model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1).logits
        ids = logits[:, -1:].argmax(-1)
        yield ids.item()


def text_speed(model, patched, prompt_ids):
    """Tokens per second of both, in turns, medians."""
    tasks = {f"prefill {n}": (n, lambda m, n=n: prefill_seconds(m, prompt_ids, n)) for n in PREFILLS}
    tasks["decode"] = (DECODE_TOKENS, lambda m: decode_seconds(m, prompt_ids))
    times = in_turns({name: task for name, (_, task) in tasks.items()}, model, patched)
    say(f"{'tokens per second':24}{'stock PyTorch':>16}{'neuron_kernels':>16}{'ratio':>8}")
    figures = {}
    for name, (count, _) in tasks.items():
        stock, ours = (count / statistics.median(t) for t in times[name])
        label = f"prefill, {count} token{'s' * (count > 1)}" if name != "decode" else "decode"
        say(f"{label:24}{stock:16.1f}{ours:16.1f}{ours / stock:8.2f}")
        figures[name] = {"stock": stock, "neuron_kernels": ours, "ratio": ours / stock, "rounds": len(times[name][0])}
    say(f"(median of {len(times['decode'][0])} rounds, in turns; decode: {DECODE_TOKENS} tokens after the prompt)\n")
    return figures


def prefill_seconds(model, prompt_ids, count):
    repeats = -(-count // prompt_ids.shape[1])
    ids = prompt_ids.repeat(1, repeats)[:, :count]
    start = time.perf_counter()
    next(greedy(model, ids))
    return time.perf_counter() - start


def decode_seconds(model, prompt_ids):
    tokens = greedy(model, prompt_ids)
    next(tokens)  # the prefill
    start = time.perf_counter()
    for _ in range(DECODE_TOKENS):
        next(tokens)
    return time.perf_counter() - start


def in_turns(tasks, model, patched):
    """name -> (seconds of stock, seconds of ours), one each per round after a warm-up."""
    times = {name: ([], []) for name in tasks}
    started = time.perf_counter()
    for round_ in range(-1, ROUNDS):
        if round_ >= LEAST_ROUNDS and time.perf_counter() - started > TIME_LIMIT_S:
            break
        for i, (name, task) in enumerate(tasks.items()):
            progress(f"measuring: {name}", (round_ + 1 + i / len(tasks)) / (ROUNDS + 1))
            pair = [(0, model), (1, patched)]
            for which, m in pair if round_ % 2 else pair[::-1]:
                seconds = task(m)
                if round_ >= 0:
                    times[name][which].append(seconds)
    progress(None, None)
    return times


def sentence_embeddings(encoder, patched, tokenizer):
    import torch

    sentences = (ROOT / "scripts" / "demo_sentences.txt").read_text().strip().splitlines()
    batch = tokenizer(sentences, padding=True, return_tensors="pt")

    def embed(m, inputs):
        states = m(**inputs).last_hidden_state
        mask = inputs["attention_mask"].unsqueeze(-1)
        return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)

    difference = (embed(encoder, batch) - embed(patched, batch)).abs().max().item()
    ok = difference <= EMBEDDING_TOLERANCE
    single = [tokenizer(s, return_tensors="pt") for s in sentences]

    def seconds(task):
        start = time.perf_counter()
        task()
        return time.perf_counter() - start

    times = in_turns(
        {
            "sentences one by one": lambda m: seconds(lambda: [embed(m, s) for s in single]),
            f"sentences, batch of {len(sentences)}": lambda m: seconds(lambda: embed(m, batch)),
        },
        encoder,
        patched,
    )
    say(f"{'sentences per second':24}{'stock PyTorch':>16}{'neuron_kernels':>16}{'ratio':>8}")
    figures = {"largest_difference": difference, "tolerance": EMBEDDING_TOLERANCE, "sentences": len(sentences)}
    for name, pair in times.items():
        stock, ours = (len(sentences) / statistics.median(t) for t in pair)
        say(f"{name.removeprefix('sentences').lstrip(', '):24}{stock:16.1f}{ours:16.1f}{ours / stock:8.2f}")
        figures[name] = {"stock": stock, "neuron_kernels": ours, "ratio": ours / stock}
    word = "equal" if ok else "DIFFERENT"
    say(f"embeddings {word}: largest difference {difference:.1e}, tolerance {EMBEDDING_TOLERANCE:.0e}\n")
    return figures, ok


def with_same_weights(model):
    """A second model on the same tensors: no copy in memory, and no unlike place in it."""
    return copy.deepcopy(model, {id(t): t for t in itertools.chain(model.parameters(), model.buffers())})


def summary(report):
    kinds = [f"{count} {kind}" for kind, count in sorted(report.replaced.items())]
    return ", ".join([f"attention -> {report.attention}", *kinds]) + (
        f"; {len(report.left)} left" if report.left else ""
    )


def describe(report):
    return {"attention": report.attention, "replaced": dict(report.replaced), "left": report.left}


def cpu_model():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def indent(text):
    paragraphs = (textwrap.fill(p, 100, initial_indent="  ", subsequent_indent="  ") for p in text.splitlines())
    return "\n".join(paragraphs)


def say(text):
    print(text, flush=True)


def progress(text, fraction):
    """Shows what is going on: one line that changes on a terminal, else a line for each text. None clears it."""
    if sys.stderr.isatty():
        shown = "" if text is None else text + ("" if fraction is None else f" {100 * fraction:3.0f} %")
        print(f"\r\033[K{shown}", end="", file=sys.stderr, flush=True)
    elif text is not None and text not in progress.seen:
        print(f"[{text}]", file=sys.stderr, flush=True)
    progress.seen.add(text)


progress.seen = set()

if __name__ == "__main__":
    sys.exit(main())
