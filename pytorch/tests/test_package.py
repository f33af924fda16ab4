"""The installed package: its wheel's tag, and what import says where it does not fit."""

import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import neuron_kernels
import pytest
import torch
from neuron_kernels import _library


def test_wheel_has_no_python_abi():
    wheel = distribution("neuron-kernels").read_text("WHEEL")
    assert re.search(r"^Tag: py3-none-(linux|manylinux\w*)_\w+$", wheel, re.MULTILINE), wheel
    assert "Root-Is-Purelib: false" in wheel


def test_version_is_that_of_the_repository():
    root = Path(__file__).resolve().parents[2]
    version = re.search(r'^version = "(.+)"', (root / "kernel.toml").read_text(), re.MULTILINE)[1]
    assert neuron_kernels.__version__ == version


def test_library_uses_the_stable_abi_only():
    """No C++ symbol of libtorch is needed: those change with each of its versions."""
    library = Path(neuron_kernels.__file__).with_name("ops.so")
    names = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True).stdout
    assert "aoti_torch_empty_strided" in names
    assert not re.search(r"_ZNK?(2at|3c10|5torch)", names), names
    assert "Py" not in names


def test_instruction_set_is_named():
    assert neuron_kernels.instruction_set() in ("portable", "avx2", "avx512")
    command = [sys.executable, "-c", "import neuron_kernels; print(neuron_kernels.instruction_set())"]
    lower = subprocess.run(command, env={"NEURON_KERNELS_ISA": "portable"}, capture_output=True, text=True)
    assert lower.stdout.strip() == "portable", lower.stderr


def test_old_torch_is_a_sentence(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    with pytest.raises(
        ImportError, match=r"needs PyTorch 2\.10 or newer; this is 2\.9\.1\+cpu: pip install --upgrade torch"
    ):
        _library.load_operators()


def test_missing_library_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(_library, "__file__", str(tmp_path / "_library.py"))
    with pytest.raises(
        ImportError, match=r"is not built: no .*ops\.so; run: pip install --no-build-isolation \./pytorch"
    ):
        _library.load_operators()


def test_library_that_does_not_fit_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(_library, "__file__", str(tmp_path / "_library.py"))
    source = tmp_path / "other.cpp"
    source.write_text(
        'extern "C" void torch_function_of_the_future(); static int x = (torch_function_of_the_future(), 0);'
    )
    command = ["g++", "-shared", "-fPIC", "-Wl,-z,now", str(source), "-o", str(tmp_path / "ops.so")]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(ImportError, match=r"does not fit PyTorch .*torch_function_of_the_future.*build it again"):
        _library.load_operators()
