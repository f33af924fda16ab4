"""kernels check, profile, emit, include and new: the built command, for the library's kernels and a package's."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT = [ROOT / "build" / tree / "cli" / "kernels" for tree in ("release", "hub")]
KERNELS = Path(os.environ.get("KERNELS_BIN") or next((path for path in BUILT if path.exists()), BUILT[0]))
STAND_IN = [str(ROOT / "tests/nki/stand_in"), str(ROOT / "tests/nki/stand_in_ml_dtypes")]

SMALL = {
    "matmul": "m=200,n=600,k=300",
    "layernorm": "rows=200,n=300",
    "rmsnorm": "rows=200,n=300",
    "fused_mlp": "tokens=100,hidden=200,inner=300",
    "flash_attention": "q_len=200,kv_len=600,heads=2,kv_heads=1,causal",
    "flash_attention_strip": "q_len=256,kv_len=512,causal",
    "flash_attention_shared_shift": "q_len=600,kv_len=700",
}


def run(*arguments, cwd=None, status=0, **environment):
    done = subprocess.run(
        [KERNELS, *arguments], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def profile(*arguments, **options):
    return json.loads(run("profile", *arguments, "--json", **options).stdout)


def emitted_difference(source, cwd):
    """Runs emitted source on the NumPy stand-in; what it says of the largest difference to its reference."""
    ast.parse(source)
    (cwd / "emitted.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "emitted.py"],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(STAND_IN)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    worst, largest = re.fullmatch(r"largest difference (\S+) of (\S+)\n", done.stdout).groups()
    return float(worst) / float(largest)


@pytest.fixture
def package(tmp_path):
    """my-scale, as `kernels new` makes it."""
    run("new", "my-scale", cwd=tmp_path)
    return tmp_path / "my-scale"


@pytest.mark.parametrize("kernel", SMALL)
def test_profile_of_each_kernel_on_each_chip(kernel):
    reports = profile(kernel, "--chip", "all", "--shape", SMALL[kernel])
    assert [report["chip"] for report in reports] == ["trn1", "trn2", "trn3"]
    for report in reports:
        assert report["kernel"] == kernel and report["dtype"] == "bf16"
        assert report["latency_ns"] > 0 and report["hbm_bytes_read"] > 0 and report["critical_path"]
        assert 0 < report["sbuf_bytes_per_partition"] <= 208 * 1024


def test_profile_in_words_and_with_defaults():
    out = run("profile", "matmul").stdout
    assert out.startswith("matmul bf16, m=4096, n=8192, k=8192, batch=1, nominal parameters\nlatency ")
    assert "tensor-bound: " in out
    cautious = profile("matmul", "--parameters", "pessimistic")["latency_ns"]
    plain = profile("matmul", "--no-schedule")["latency_ns"]
    assert profile("matmul")["latency_ns"] < min(cautious, plain)
    assert profile("matmul", "--cores", "2")["latency_ns"] < profile("matmul")["latency_ns"]


def test_useful_flops_leave_out_what_a_causal_mask_hides():
    n, d = 1024, 128
    report = profile("flash_attention", "--shape", f"q_len={n},d={d},causal")
    assert report["useful_flops"] == 4 * d * n * (n + 1) / 2 < report["flops"]


def test_check_finds_nothing_wrong_with_the_library():
    programs = json.loads(run("check", "--json").stdout)
    assert [(p["kernel"], p["chip"]) for p in programs] == [(k, c) for k in SMALL for c in ("trn1", "trn2", "trn3")]
    findings = [finding for program in programs for finding in program["findings"]]
    assert findings and {finding["severity"] for finding in findings} == {"warning"}
    assert all(f["file"].endswith(".hpp") and f["line"] > 0 and f["rule"] and f["text"] for f in findings)


def test_trace_and_pictures_are_what_they_are_called(tmp_path):
    trace, pictures = tmp_path / "trace.json", tmp_path / "pictures"
    run("profile", "rmsnorm", "--shape", "rows=512,n=512", "--trace", trace, "--svg", pictures)
    events = json.loads(trace.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert any(event["ph"] == "X" and event["dur"] > 0 for event in events)
    assert {path.name for path in pictures.iterdir()} == {
        f"rmsnorm-trn2-{what}.svg" for what in ("roofline", "timeline")
    }
    for path in pictures.iterdir():
        assert xml.etree.ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_a_program_goes_out_and_comes_in(tmp_path):
    file = tmp_path / "program.json"
    first = profile("flash_attention", "--shape", SMALL["flash_attention"], "--program-out", file)
    document = json.loads(file.read_text())
    assert document["schema"] == 1 and document["chip"] == "trn2"
    again = profile("--program", file)
    assert again["latency_ns"] == first["latency_ns"] and again["kernel"] == "kernel"
    ast.parse(run("emit", "--program", file).stdout)


def test_a_program_that_is_none_is_refused_in_one_sentence(tmp_path):
    file = tmp_path / "program.json"
    run("profile", "rmsnorm", "--shape", SMALL["rmsnorm"], "--program-out", file)
    good = json.loads(file.read_text())
    changes = {
        "chip": ("trn9", 'chip "trn9"; allowed are'),
        "schema": (2, "schema is 2; this version reads 1"),
        "tiles": ([], "allowed are positions in tiles, of which there are 0"),
        "ops": ([{"op": "end"}], "ops[0] ends a loop, but none is open"),
    }
    for field, (value, text) in changes.items():
        file.write_text(json.dumps({**good, field: value}))
        for command in ("check", "profile", "emit"):
            error = run(command, "--program", file, status=1).stderr
            assert text in error and error.startswith(f"error: {file}: program: ")
    for text in ("", "{", "[" * 100000, "\x00", json.dumps(good)[:-9]):
        file.write_text(text)
        assert len(run("profile", "--program", file, status=1).stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("profile",), 2, "no kernel is named; there are matmul, "),
        (("profile", "nothing"), 2, "kernel 'nothing' is unknown; there are matmul, "),
        (("check", "nothing"), 2, "kernel 'nothing' is unknown"),
        (("check", "matmul", "--chip", "trn9"), 2, "chip 'trn9'; allowed are"),
        (("emit", "nothing"), 2, "kernel 'nothing' is unknown"),
        (("profile", "matmul", "--chip", "trn9"), 2, "chip 'trn9'; allowed are trn1, trn2, trn3 and all"),
        (("profile", "matmul", "--dtype", "f8"), 2, "dtype 'f8' for matmul; allowed are bf16, f16, f32"),
        (("profile", "matmul", "--shape", "q=1"), 2, "shape 'q' is unknown; this kernel has m=4096, n=8192"),
        (("profile", "matmul", "--shape", "m=0"), 2, "shape m is '0'; allowed are whole numbers from 1"),
        (("profile", "matmul", "--shape", "m=1e3"), 2, "shape m is '1e3'"),
        (("profile", "matmul", "--shape", "m"), 2, "shape m is ''"),
        (("profile", "flash_attention", "--shape", "causal=1"), 2, "shape causal has the value '1'"),
        (("profile", "flash_attention", "--shape", "heads=3,kv_heads=2"), 2, "heads must be a multiple of kv_heads"),
        (("profile", "flash_attention", "--shape", "q_len=9,kv_len=8,causal"), 2, "at least as many keys as queries"),
        (("profile", "flash_attention", "--shape", "d=129"), 2, "allowed are whole numbers from 1 to 128"),
        (("profile", "flash_attention_strip", "--shape", "q_len=32768"), 1, "bytes per partition are needed at once"),
        (("profile", "matmul", "--shape", "m=9999999,n=9999999"), 1, "ops to execute; allowed are 1e9"),
        (("profile", "matmul", "--parameters", "bold"), 2, "--parameters"),
        (("profile", "matmul", "--chip", "all", "--trace", "t"), 2, "--trace and --program-out are of one chip"),
        (("emit", "matmul", "--chip", "all"), 2, "source is written for one"),
        (("profile", "--program", "none.json"), 4, "none.json"),
        (("profile", "matmul", "--program", "none.json"), 2, "leave out KERNEL"),
        (("profile", "matmul", "--package", "nowhere"), 4, "nowhere"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, status, text, tmp_path):
    done = run(*arguments, cwd=tmp_path, status=status)
    assert done.stdout == "" and text in done.stderr.splitlines()[0]


@pytest.mark.parametrize("kernel", [kernel for kernel in SMALL if kernel != "flash_attention_shared_shift"])
@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
def test_emitted_source_computes_what_its_reference_says(kernel, chip, tmp_path):
    out = run("emit", kernel, "--chip", chip, "--shape", SMALL[kernel], "--dtype", "f32").stdout
    assert f"def {kernel}(" in out
    assert emitted_difference(out, tmp_path) < 1e-5


def test_help_list_and_completion():
    for command in ("check", "profile", "emit", "include"):
        assert f"  kernels {command}" in run(command, "--help").stdout or command == "include"
        assert f"  {command}" in run("--help").stdout
    assert "--shape" in run("completion", "bash").stdout
    names = [kernel["name"] for kernel in json.loads(run("profile", "--list", "--json").stdout)]
    assert names == list(SMALL)
    assert "  q_len=4096         queries\n" in run("profile", "--list").stdout


def test_a_new_package_builds_profiles_emits_and_tests_within_a_minute(package, tmp_path):
    start = time.monotonic()
    build = package / "build"
    environment = {"PATH": f"{KERNELS.parent}{os.pathsep}{os.environ['PATH']}"}
    for command in (["cmake", "-S", package, "-B", build], ["cmake", "--build", build], ["ctest", "--test-dir", build]):
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    assert run("check", cwd=package).stderr.endswith("0 errors, 0 warnings in 3 programs\n")
    assert profile("scale", cwd=package)["latency_ns"] > 0
    source = run("emit", "scale", "--shape", "rows=300,n=2100", "--dtype", "f32", cwd=package).stdout
    assert emitted_difference(source, tmp_path) == 0
    assert time.monotonic() - start < 60
    listed = json.loads(run("profile", "--list", "--json", cwd=package).stdout)
    assert [kernel["name"] for kernel in listed] == ["scale", *SMALL]


def test_a_package_is_compiled_when_what_it_reads_has_changed(package):
    note = "compiling the program of kernel scale\n"
    first = run("profile", "scale", "--package", package)
    assert first.stderr == note and run("profile", "scale", cwd=package).stderr == ""
    kernel = package / "include/my_scale/scale_kernel.hpp"
    kernel.write_text(kernel.read_text().replace("cols(cols.begin, cols.size)", "cols(cols.begin, cols.size)", 1))
    assert run("profile", "scale", cwd=package).stderr == ""  # the same text
    kernel.write_text(kernel.read_text().replace("nc.tiles(src.dim(1), 2048)", "nc.tiles(src.dim(1), 256)"))
    second = run("profile", "scale", cwd=package)
    assert second.stderr == note and second.stdout != first.stdout
    assert len(list((package / "build/kernels-programs").glob("scale-*"))) == 1


def test_what_is_wrong_with_a_package_is_said_in_one_sentence(package):
    def refused(status, text):
        done = run("profile", "scale", "--quiet", cwd=package, status=status)
        assert done.stdout == "" and text in done.stderr.splitlines()[0]

    manifest, program = package / "kernel.toml", package / "include/my_scale/scale_program.hpp"
    good_manifest, good_program = manifest.read_text(), program.read_text()
    program.write_text(good_program.replace("scale_kernel(nc, dst, src, 0.5f);", "scale_kernel(nc, dst, src);"))
    refused(1, "cannot compile the program of kernel scale: ")
    program.write_text(good_program.replace("{rows, n}), dst = ", "{rows, n + 1}), dst = "))
    refused(1, "scale_kernel.hpp:20 cols: 1 from 4096 of dst")
    for statement, text in (
        ('throw std::runtime_error("no such thing");', "no such thing"),
        ("std::abort();", "the program of kernel scale ended with status "),
        ('std::puts("hello");', "wrote something else to stdout"),
    ):
        program.write_text(good_program.replace("scale_kernel(", f"{statement}\n  scale_kernel("))
        refused(1, text)
    manifest.write_text(good_manifest.replace("my_scale::scale_program", "scale program"))
    refused(2, "program is 'scale program'")
    manifest.write_text(re.sub("program.*\n", "", good_manifest))
    refused(2, "kernel 'scale' is unknown")


def test_the_example_is_a_kernel_outside_the_tree(tmp_path):
    package = tmp_path / "row_softmax"
    shutil.copytree(ROOT / "examples/row_softmax", package, ignore=shutil.ignore_patterns("build"))
    assert profile("softmax", "--package", package, "--shape", "rows=300,n=700")["latency_ns"] > 0
    for chip in ("trn1", "trn2", "trn3"):
        shape = ("--chip", chip, "--shape", "rows=200,n=300", "--dtype", "f32")
        assert emitted_difference(run("emit", "softmax", "--package", package, *shape).stdout, tmp_path) < 1e-5
    assert run("check", "softmax", "--package", package).stdout.count(", error: ") == 0
    wide = run("check", "softmax", "--package", package, "--chip", "trn2", "--shape", "n=60000", status=1)
    assert "softmax_kernel.hpp:" in wide.stdout and "allowed are 212728" in wide.stdout
    error = run("profile", "softmax", "--package", package, "--shape", "n=60000", status=1).stderr
    assert "SBUF: 480064 bytes per partition are needed at once; trn2 has 212728" in error
