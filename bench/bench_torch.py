"""Our kernels against PyTorch eager, in turns and on the same memory, with one thread and then with all.

usage: bench_torch.py [--library LIBBENCH_CAPI.SO] [--out JSON] [--filter REGEX] [--threads N,N]

Contestants: neuron_kernels (the C++ call, as in the other programs), torch (eager, as a model's code calls it) and,
where the Python package is installed, torch_op (torch.ops.neuron_kernels). Cases, data and checks are those of the
C++ programs (capi.cpp). Writes JSON of Google Benchmark's form.
"""

import argparse
import ctypes
import json
import math
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

ROOT = Path(__file__).resolve().parent.parent
SAMPLE_SECONDS = 3e-4  # as in measure.hpp
Call = Callable[[], Tensor | None]


class Library:
    """capi.cpp"""

    def __init__(self, path: str) -> None:
        self.c = ctypes.CDLL(path)
        for name, result, arguments in [
            ("describe", ctypes.c_char_p, []),
            ("rounds", ctypes.c_int, [ctypes.c_int, ctypes.c_int]),
            ("open", ctypes.c_void_p, [ctypes.c_int]),
            ("close", None, [ctypes.c_void_p]),
            ("tensors", ctypes.c_char_p, [ctypes.c_void_p]),
            ("start", ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]),
            ("call", None, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]),
            ("check", ctypes.c_char_p, [ctypes.c_void_p]),
            ("fma_peak", ctypes.c_double, [ctypes.c_int]),
            ("bind_thread", None, [ctypes.c_int]),
        ]:
            function = getattr(self.c, "bench_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.description = json.loads(self.describe())

    def views(self, opened: int) -> dict[str, Tensor]:
        """The case's memory as PyTorch tensors."""
        views = {}
        for t in json.loads(self.tensors(opened)):
            dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[t["type"]]
            memory = (ctypes.c_char * (math.prod(t["shape"]) * dtype.itemsize)).from_address(t["data"])
            views[t["name"]] = torch.frombuffer(memory, dtype=dtype).view(t["shape"])
        return views


def torch_eager(op: str, t: dict[str, Tensor], causal: bool) -> Call:
    """What a model's code would call; results that have an out= form are written into dst."""
    if op == "matmul":
        return lambda: torch.mm(t["a"], t["b"], out=t["dst"])
    if op == "linear":
        return lambda: F.linear(t["a"], t["b"])
    if op in ("attention", "decode"):
        gqa = t["q"].shape[1] != t["k"].shape[1]
        return lambda: F.scaled_dot_product_attention(t["q"], t["k"], t["v"], is_causal=causal, enable_gqa=gqa)
    if op == "mlp_silu":
        return lambda: F.linear(F.silu(F.linear(t["x"], t["gate"])) * F.linear(t["x"], t["up"]), t["down"])
    if op == "mlp_gelu":
        return lambda: F.linear(F.gelu(F.linear(t["x"], t["up"])), t["down"])
    n = (t["src"].shape[-1],)
    if op == "layernorm":
        return lambda: F.layer_norm(t["src"], n, t["weight"], t["bias"], 1e-5)
    assert op == "rmsnorm", op
    return lambda: F.rms_norm(t["src"], n, t["weight"], 1e-6)


def torch_op(op: str, t: dict[str, Tensor], causal: bool) -> Call:
    ops = torch.ops.neuron_kernels
    if op == "matmul":
        return lambda: ops.matmul_into(t["dst"], t["a"], t["b"])
    if op == "linear":
        return lambda: ops.matmul(t["a"], t["b"].t())
    if op in ("attention", "decode"):
        return lambda: ops.flash_attention(t["q"], t["k"], t["v"], causal=causal)
    if op == "mlp_silu":
        return lambda: ops.fused_mlp(t["x"], t["up"], t["down"], t["gate"])
    if op == "mlp_gelu":
        return lambda: ops.fused_mlp(t["x"], t["up"], t["down"], activation="gelu")
    if op == "layernorm":
        return lambda: ops.layer_norm(t["src"], t["weight"], t["bias"], 1e-5)
    assert op == "rmsnorm", op
    return lambda: ops.rms_norm(t["src"], t["weight"], 1e-6)


def repeat(call: Call) -> Callable[[int], None]:
    def run(times: int) -> None:
        for _ in range(times):
            call()

    return run


def seconds_of(run: Callable[[int], None], calls: int, threads: int) -> float:
    """As Stopwatch in measure.hpp."""
    wall, cpu = time.perf_counter(), time.process_time()
    run(calls)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return (min(wall, cpu) if threads == 1 else wall) / calls


def end_openmp_threads() -> None:
    """As in openmp.hpp, for the OpenMP library that PyTorch has loaded."""
    if not hasattr(end_openmp_threads, "pause"):
        loaded = {line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line or "libiomp" in line}
        end_openmp_threads.pause = [ctypes.CDLL(path).omp_pause_resource_all for path in sorted(loaded)]
    for pause in end_openmp_threads.pause:
        pause(1)  # omp_pause_soft


def checked(library: Library, opened: int, dst: Tensor, call: Call) -> str:
    dst.fill_(math.nan)
    result = call()
    if result is not None and result.data_ptr() != dst.data_ptr():
        dst.copy_(result.view(dst.shape))
    return library.check(opened).decode()


def measure(library: Library, index: int, threads: int, has_package: bool) -> dict:
    """{"seconds": {contestant: [seconds]}, "fma_peak": [FLOP/s], "errors": {contestant: text}}"""
    case = library.description["cases"][index]
    library.bind_thread(threads == 1)
    torch.set_num_threads(threads)
    opened = library.open(index)
    tensors = library.views(opened)
    op, causal = case["name"].split("/")[0], case["name"].endswith("/causal")

    runs, errors = {}, {}
    for i, name in enumerate(case["contestants"]):
        errors[name] = library.start(opened, i, threads).decode()
        runs[name] = lambda times, i=i: library.call(opened, i, times)
    for name, call in [("torch", torch_eager), ("torch_op", torch_op)]:
        if name == "torch_op" and not has_package:
            continue
        errors[name] = checked(library, opened, tensors["dst"], call(op, tensors, causal))
        runs[name] = repeat(call(op, tensors, causal))
    errors = {name: text for name, text in errors.items() if text}
    runs = {name: run for name, run in runs.items() if name not in errors}

    calls = {}
    for name, run in runs.items():
        once = min(seconds_of(run, 1, threads) for _ in range(3))
        calls[name] = max(1, math.ceil(SAMPLE_SECONDS / max(once, 1e-8)))
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    peaks = []
    names = list(runs)
    for round_ in range(library.rounds(index, threads)):
        for turn in range(len(names)):
            name = names[(turn + round_) % len(names)]
            runs[name](1)
            seconds[name].append(seconds_of(runs[name], calls[name], threads))
            if threads > 1:
                end_openmp_threads()
        peaks.append(library.fma_peak(threads))
    library.close(opened)
    library.bind_thread(0)
    return {"seconds": seconds, "fma_peak": peaks, "errors": errors}


def entries(case: dict, threads: int, measured: dict) -> list[dict]:
    """A median and a best for each contestant, as google.cpp and Google Benchmark write them."""
    result = []
    ours = measured["seconds"].get("neuron_kernels")
    flops = case["flops"]
    for name, text in measured["errors"].items():
        run = f"{case['name']}/threads:{threads}/{name}"
        result.append({"name": run, "run_name": run, "error_occurred": True, "error_message": text})
    for name, seconds in measured["seconds"].items():
        run = f"{case['name']}/threads:{threads}/{name}"
        rows = [
            {
                "real_time": s * 1e6,
                "gflops": flops / s * 1e-9,
                "gbytes_per_second": case["bytes"] / s * 1e-9,
                **({"time_over_ours": s / ours[i]} if ours else {}),
                **(
                    {"fma_peak_gflops": peak * 1e-9, "percent_of_fma_peak": 100 * case["flops"] / s / peak}
                    if peak
                    else {}
                ),
            }
            for i, (s, peak) in enumerate(zip(seconds, measured["fma_peak"], strict=True))
        ]
        for aggregate, function in [("median", statistics.median), ("best", min)]:
            values = {key: function(row[key] for row in rows) for key in rows[0]}
            result.append(
                {
                    "name": f"{run}_{aggregate}",
                    "run_name": run,
                    "run_type": "aggregate",
                    "aggregate_name": aggregate,
                    "repetitions": len(rows),
                    "time_unit": "us",
                    **values,
                }
            )
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default=str(ROOT / "build/bench-release/bench/libbench_capi.so"))
    parser.add_argument("--out", default=str(ROOT / "build/bench/torch.json"))
    parser.add_argument("--filter", default="", help="cases whose name this regular expression is found in")
    parser.add_argument("--threads", help="default: 1, then all processors")
    arguments = parser.parse_args()

    torch.set_grad_enabled(False)
    try:
        import neuron_kernels  # noqa: F401  (registers torch.ops.neuron_kernels)

        has_package = True
    except ImportError:
        has_package = False
    library = Library(arguments.library)
    processors = len(os.sched_getaffinity(0))
    counts = [int(n) for n in arguments.threads.split(",")] if arguments.threads else sorted({1, processors})

    benchmarks: list[dict] = []
    wrong = False
    for threads in counts:
        for index, case in enumerate(library.description["cases"]):
            if not re.search(arguments.filter, f"{case['name']}/threads:{threads}"):
                continue
            measured = measure(library, index, threads, has_package)
            benchmarks += entries(case, threads, measured)
            parts = [f"{name} {statistics.median(s) * 1e6:.1f} us" for name, s in measured["seconds"].items()]
            print(f"{case['name']}/threads:{threads}: " + ", ".join(parts), flush=True)
            for name, text in measured["errors"].items():
                wrong = True
                print(f"{case['name']}/threads:{threads}/{name}: wrong: {text}", file=sys.stderr, flush=True)

    context = dict(library.description["machine"])
    context["peer_neuron_kernels"] = library.description["peer"]
    capability = torch.backends.cpu.get_cpu_capability()
    context["peer_torch"] = f"torch {torch.__version__} eager, {capability}, MKL {torch.backends.mkl.is_available()}"
    Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)
    Path(arguments.out).write_text(json.dumps({"context": context, "benchmarks": benchmarks}, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
