"""Emitted sources: their calls, their numbers on the stand-in against the exact ones and against replay, and
their text against tests/golden."""

import re
import runpy

import check_calls
import pytest
from cases import ROOT, Case, largest_excess

KERNELS = (
    "matmul",
    "layernorm",
    "rmsnorm",
    "fused_mlp",
    "mlp_sum",
    "flash_attention",
    "shared_shift_attention",
    "strip_attention",
    "attention_merge",
    "chip_ops",
)
CHIPS = ("trn1", "trn2", "trn3")
GOLDEN = (*(k for k in KERNELS if k not in ("mlp_sum", "chip_ops")), "matmul_scheduled")


def of(all_cases, kernel, chip):
    found = [c for c in all_cases.values() if c.kernel == kernel and c.chip == chip and c.outputs]
    assert found, f"no case of {kernel} on {chip}"
    return found


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_calls(all_cases, kernel, chip):
    for case in of(all_cases, kernel, chip):
        assert check_calls.problems(case.source) == [], case.name


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_numbers(all_cases, kernel, chip):
    for case in of(all_cases, kernel, chip):
        got = case.run()
        assert len(got) == len(case.outputs), case.name
        for i, (g, want) in enumerate(zip(got, case.outputs, strict=True)):
            assert g.shape == want.exact.shape
            off = largest_excess(g, want.exact, want.error)
            assert off <= 1, f"{case.name}: output {i} is {off} x the bound from the exact value"
            off = largest_excess(g, want.replay, 2 * want.error)
            assert off <= 1, f"{case.name}: output {i} is {off} x the bound from replay"


@pytest.mark.parametrize("kernel", GOLDEN)
def test_golden(all_cases, kernel, request):
    path = ROOT / "tests/golden" / f"{kernel}.py"
    source = all_cases[f"golden-{kernel}"].source
    if request.config.getoption("--update-golden"):
        path.write_text(source)
    assert path.read_text() == source, f"{path} differs: look at it with pytest tests/nki --update-golden and git diff"
    assert check_calls.problems(source) == []


@pytest.mark.parametrize("kernel", GOLDEN)
def test_golden_runs(kernel, monkeypatch, capsys):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    runpy.run_path(str(ROOT / "tests/golden" / f"{kernel}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed
    for worst, largest in re.findall(r"largest difference (\S+) of (\S+)", printed):
        assert float(worst) <= 0.02 * float(largest)


def test_that_the_comparison_sees_mistakes(all_cases):
    """Sources with one thing changed that a careless emitter would get wrong."""
    changes = [
        ("matmul-trn2-f32-133x517x130", "accumulate=True", "accumulate=False"),
        ("flash_attention-trn2-f32-1x2x1x256x512x64x64-causal", "pattern=[[-1,", "pattern=[[1,"),
        ("flash_attention-trn2-f32-1x2x1x256x512x64x64-causal", "bias=shift", "bias=alpha"),
        ("layernorm-trn2-f32-3x1030-full", "operand0=stats[:, 0:1]", "operand0=stats[:, 1:2]"),
        ("rmsnorm-trn2-bf16-133x67-full", "op=nl.square", "op=nl.copy"),
        ("fused_mlp-trn2-bf16-37x130x300x67-gated", "op=nl.silu", "op=nl.gelu"),
        ("chip_ops-trn2-f32", "channel_multiplier=-1", "channel_multiplier=1"),
        ("matmul-trn2-bf16-133x517x130-scheduled", "stride=", "stride=32 + 0 * "),
        ("flash_attention-trn2-bf16-1x2x1x256x512x64x64-causal-scheduled", "address=(0, ", "address=(0, 64 + 0 * "),
        ("chip_ops-trn2-f32", ".permute((0, 2, 1))", ".permute((0, 1, 2))"),
    ]
    for name, right, wrong in changes:
        case = all_cases[name]
        assert right in case.source, (name, right)
        changed = Case.__new__(Case)
        changed.__dict__.update(case.__dict__)
        changed.source = case.source.replace(right, wrong)
        try:
            got = changed.run()
        except AssertionError:
            continue
        worst = max(largest_excess(g, w.exact, w.error) for g, w in zip(got, case.outputs, strict=True))
        assert worst > 1, f"{name}: {wrong} instead of {right} was not noticed"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("nisa.nc_matmul(dst=x, stationary=x)", "nisa.nc_matmul lacks moving"),
        ("nisa.memset(x, 0.0, value=1.0)", "nisa.memset gets value twice"),
        ("nisa.tensor_copy(dst=x, source=x)", "nisa.tensor_copy has no parameter source"),
        ("nisa.tensor_copy(x, x, None, None, None)", "nisa.tensor_copy is called with 5 positional arguments"),
        ("nisa.tensor_copy(**x)", "nisa.tensor_copy is called with * or **"),
        ("nisa.load(dst=x)", "nisa.load is not documented"),
        ("nl.matmul(x, x)", "nl.matmul is called"),
        ("nisa.memset(dst=x, value=nl.infinity)", "nl.infinity is not documented"),
        ("nisa.memset(dst=x, value=0.0, engine=nisa.engine.pool)", "nisa.engine.pool is not documented"),
        ("x.permute((1, 0), 2)", ".permute is called with 2 positional arguments"),
        ("y = [i for i in range(2)]", "kernel uses ListComp"),
        ("open(x)", "kernel calls open"),
        ("helper(x, x)", "helper is called with 2 positional arguments"),
        ("helper()", "helper lacks x"),
    ],
)
def test_check_calls(line, problem):
    source = f"def helper(x):\n    pass\n\n\ndef kernel(x):\n    {line}\n"
    assert any(p.startswith(problem) for p in check_calls.problems(source)), check_calls.problems(source)


def test_check_calls_accepts_what_is_right():
    call = "nisa.tensor_copy(x[:, i : i + 1], src=x, engine=nisa.engine.vector)"
    assert check_calls.problems(f"def kernel(x):\n    for i in range(2):\n        {call}\n") == []
