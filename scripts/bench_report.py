"""Writes the results of `make bench` into docs/benchmarks.md and prints which goals are met.

usage: bench_report.py [--results FOLDER] [--docs FILE] [--check]

Reads matmul.json, attention.json, mlp.json, norms.json (Google Benchmark) and torch.json (bench/bench_torch.py) from
FOLDER, build/bench by default. --check: exit 1 if a goal is missed.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ["matmul", "attention", "mlp", "norms", "torch"]
BEGIN, END = "<!-- results: begin, written by scripts/bench_report.py -->", "<!-- results: end -->"
OURS = "neuron_kernels"
PEERS = {  # contestant: column
    "neuron_kernels_packed": "ours, packed weight",
    "openblas": "OpenBLAS",
    "eigen": "Eigen",
    "eigen_unfused": "Eigen, unfused",
    "onednn": "oneDNN",
    "onednn_packed": "oneDNN, packed weight",
    "onednn_unfused": "oneDNN, unfused",
    "torch": "PyTorch",
    "torch_op": "our PyTorch op",
}
TITLES = {
    "matmul": "Matrix product (m x n x k)",
    "linear": "Linear layer (tokens x to x from), weight as in torch.nn.Linear",
    "attention": "Attention (batch x heads x length x head size; heads:kv_heads)",
    "decode": "Attention of one query against a cache",
    "mlp_silu": "Gated MLP, SiLU (tokens x hidden x inner)",
    "mlp_gelu": "Plain MLP, GELU (tokens x hidden x inner)",
    "layernorm": "Layer normalisation (rows x width)",
    "rmsnorm": "RMS normalisation (rows x width)",
}
MEMORY_BOUND = {"decode", "layernorm", "rmsnorm"}  # given in GB/s


@dataclass
class Row:
    """One case with one number of threads."""

    case: str
    threads: int
    ours: dict[str, dict] = field(default_factory=dict)  # program: {aggregate: values}
    ratios: dict[str, float] = field(default_factory=dict)  # contestant: its time over ours, median over rounds
    wrong: dict[str, str] = field(default_factory=dict)  # contestant: what was wrong

    @property
    def op(self) -> str:
        return self.case.split("/")[0]

    def best_run(self) -> dict[str, dict]:
        """Our times: of the C++ programs, or of torch.json where those were not run."""
        return next(iter(self.ours.values()), {})


def read(folder: Path) -> tuple[dict[tuple[str, int], Row], dict[str, str]]:
    rows: dict[tuple[str, int], Row] = {}
    context: dict[str, str] = {}
    for program in PROGRAMS:
        path = folder / f"{program}.json"
        if not path.exists():
            print(f"bench_report: no {path}; its columns or tables are missing (run `make bench`)", file=sys.stderr)
            continue
        try:
            data = json.loads(path.read_text())
        except json.JSONDecodeError as error:
            print(f"bench_report: {path} is not whole ({error}); run its program again", file=sys.stderr)
            continue
        context |= {k: v for k, v in data["context"].items() if isinstance(v, str)}
        for b in data["benchmarks"]:
            match = re.match(r"(.+)/threads:(\d+)/(\w+)", b["run_name"])
            assert match, b["run_name"]
            case, threads, contestant = match[1], int(match[2]), match[3]
            row = rows.setdefault((case, threads), Row(case, threads))
            if b.get("error_occurred"):
                row.wrong[contestant] = b["error_message"]
            elif contestant == OURS:
                row.ours.setdefault(program, {})[b["aggregate_name"]] = b
            elif b["aggregate_name"] == "median" and "time_over_ours" in b:
                row.ratios[contestant] = b["time_over_ours"]
    return rows, context


def time_cell(us: float) -> str:
    return f"{us:,.0f}" if us >= 100 else f"{us:.3g}"


def ratio_cell(row: Row, contestant: str) -> str:
    if contestant in row.wrong:
        return "wrong"
    ratio = row.ratios.get(contestant)
    if ratio is None:
        return ""
    return f"**{ratio:.2f}**" if ratio < 1 else f"{ratio:.2f}"


def table(rows: list[Row]) -> list[str]:
    op = rows[0].op
    rate = ("GB/s", "gbytes_per_second") if op in MEMORY_BOUND else ("GFLOP/s", "gflops")
    columns = [c for c in PEERS if any(c in row.ratios or c in row.wrong for row in rows)]
    head = ["case", "median us", "best us", rate[0]] + ([] if op in MEMORY_BOUND else ["% of peak"])
    lines = [
        f"| {' | '.join(head + [PEERS[c] for c in columns])} |",
        "|---" + "|---:" * (len(head) + len(columns) - 1) + "|",
    ]
    for row in rows:
        run = row.best_run()
        name = row.case.removeprefix(op + "/").replace("/", " ")
        cells = [name, "wrong", "", ""]
        if run:
            median, best = run["median"], run["best"]
            cells = [name, time_cell(median["real_time"]), time_cell(best["real_time"]), f"{median[rate[1]]:.1f}"]
            if op not in MEMORY_BOUND:
                cells.append(f"{median['percent_of_fma_peak']:.0f}" if "percent_of_fma_peak" in median else "")
        lines.append(f"| {' | '.join(cells + [ratio_cell(row, c) for c in columns])} |")
    return lines


def results(rows: dict[tuple[str, int], Row], context: dict[str, str]) -> str:
    peaks = {}
    for row in rows.values():
        peak = row.best_run().get("median", {}).get("fma_peak_gflops")
        if peak:
            peaks.setdefault(row.threads, []).append(peak)
    lines = [
        f"Machine: {context.get('cpu')}, {context.get('processors')} processors; instruction set {context.get('isa')}; "
        f"{context.get('compiler')}.",
        "Measured FMA peak: "
        + ", ".join(f"{sorted(p)[len(p) // 2]:.0f} GFLOP/s with {n} thread{'s' * (n > 1)}" for n, p in peaks.items())
        + " (median over all cases).",
        "Contestants: " + "; ".join(v for k, v in sorted(context.items()) if k.startswith("peer_")) + ".",
    ]
    for threads in sorted({row.threads for row in rows.values()}):
        lines += ["", f"### {threads} thread{'s' * (threads > 1)}"]
        for op, title in TITLES.items():
            some = [row for row in rows.values() if row.threads == threads and row.op == op]
            if some:
                lines += ["", f"**{title}**", "", *table(some)]
    return "\n".join(lines)


@dataclass
class Goal:
    """f32 with one thread: in every matching case a figure of at least `least`."""

    text: str
    cases: str  # regular expression
    least: float
    percent_of_peak: bool = False

    def figure(self, row: Row) -> float | None:
        if self.percent_of_peak:
            return row.best_run().get("median", {}).get("percent_of_fma_peak")
        return row.ratios.get("torch")


GOALS = [
    Goal("matmul 1024^3, % of the FMA peak", r"matmul/f32/1024x1024x1024", 85, percent_of_peak=True),
    Goal("flash attention 1x8x2048x64, x PyTorch", r"attention/f32/1x8x2048x64(/causal)?", 1.2),
    Goal("fused MLP from 128 tokens on, x PyTorch", r"mlp_\w+/f32/(128|512)x.*", 1.0),
    Goal("layernorm, rows of 768 and more, x PyTorch", r"layernorm/f32/.*", 1.3),
    Goal("rmsnorm, rows of 768 and more, x PyTorch", r"rmsnorm/f32/.*", 1.3),
]


def print_goals(rows: dict[tuple[str, int], Row]) -> bool:
    """Whether all are met."""
    all_met = True
    print(f"\n{'goal (f32, one thread)':<46}{'least':>7}{'reached':>9}  worst case")
    for goal in GOALS:
        figures = [
            (figure, row.case)
            for row in rows.values()
            if row.threads == 1 and re.fullmatch(goal.cases, row.case) and (figure := goal.figure(row)) is not None
        ]
        worst, case = min(figures, default=(0.0, "not measured"))
        all_met &= worst >= goal.least
        outcome = "met" if worst >= goal.least else "MISSED"
        print(f"{goal.text:<46}{goal.least:>7.4g}{worst:>9.2f}  {case}: {outcome}")
        below = [f"{name} {figure:.2f}" for figure, name in sorted(figures) if figure < goal.least and name != case]
        if below:
            print(f"{'':<64}also below: {', '.join(below)}")
    return all_met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "build/bench")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs/benchmarks.md")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()

    rows, context = read(arguments.results)
    if not rows:
        print(f"bench_report: no results in {arguments.results}; run `make bench`", file=sys.stderr)
        return 2
    text = arguments.docs.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        print(f"bench_report: {arguments.docs} must have the lines '{BEGIN}' and '{END}' once each", file=sys.stderr)
        return 2
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    arguments.docs.write_text(f"{before}{BEGIN}\n\n{results(rows, context)}\n\n{END}{after}")
    print(f"wrote {arguments.docs}")

    for row in rows.values():
        for contestant, error in row.wrong.items():
            print(f"wrong answer: {row.case}/threads:{row.threads}/{contestant}: {error}")
    met = print_goals(rows)
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
