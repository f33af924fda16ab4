"""What is pushed is used by others as it is: Hugging Face's get_kernel, CMake, and any program that loads C."""

import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import textwrap

import pytest
from pushing import Hub
from registry import KERNELS, ROOT

PLATFORM = f"{platform.machine()}-linux"
CXX = "ccache g++" if shutil.which("ccache") else "g++"
C_PROGRAM = """
#include "neuron_kernels.h"
int main(void) { return neuron_kernels_version()[0] != '0'; }
"""
BUILD_ENV = {
    "PYTHON": sys.executable,
    "CXX": CXX,
    **{name: os.environ[name] for name in ("CCACHE_DIR",) if name in os.environ},
}


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    """A hub with the bundled package, pushed as trusted/neuron-kernels from a copy of its sources."""
    folder = tmp_path_factory.mktemp("use")
    bundled = Hub(folder)
    bundled.package = folder / "package"
    ignored = shutil.ignore_patterns("build", "*.so", "*.egg-info", "__pycache__")
    for name in ("include", "c", "pytorch"):
        shutil.copytree(ROOT / name, bundled.package / name, ignore=ignored)
    for name in ("kernel.toml", "LICENSE"):
        shutil.copy(ROOT / name, bundled.package)
    bundled.pushed = bundled.json("push", bundled.package, "--to", "trusted/neuron-kernels", env=BUILD_ENV)
    yield bundled
    bundled.stub.stop()


def run_python(bundled, code, **env):
    environment = {**bundled.env, "HF_HOME": str(bundled.folder / "hf"), "HF_HUB_DISABLE_PROGRESS_BARS": "1", **env}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_get_kernel_loads_the_bundled_package(bundled):
    code = """
        import torch
        from kernels import get_kernel
        kernel = get_kernel("trusted/neuron-kernels", version=0)
        x, w = torch.randn(4, 64), torch.randn(64)
        torch.testing.assert_close(kernel.ops.rms_norm(x, w, 1e-6), torch.nn.functional.rms_norm(x, (64,), w, 1e-6))
        a, b = torch.randn(8, 16, requires_grad=True), torch.randn(16, 4)
        kernel.ops.matmul(a, b).sum().backward()
        torch.testing.assert_close(a.grad, b.sum(1).expand(8, 16))
        print(kernel.__name__, kernel.__version__)
    """
    name, version = run_python(bundled, code).split()
    assert name.startswith("_neuron_kernels_cpu_") and version == "0.1.0"


def test_a_second_build_gives_the_same_bytes(bundled):
    again = bundled.json("push", bundled.package, "--to", "trusted/neuron-kernels", env=BUILD_ENV)
    assert not again["changed"] and again["commit"] == bundled.pushed["commit"]


def constant_package(folder, name, version, value):
    """A PyTorch operator answer() that returns `value`."""
    (folder / "csrc").mkdir(parents=True)
    (folder / "python").mkdir()
    (folder / "kernel.toml").write_text(
        f'schema = 1\n[package]\nname = "{name}"\nversion = "{version}"\nlicense = "MIT"\n'
        '[variants.torch]\npackage = "python"\nsources = ["csrc/*.cpp"]\n'
    )
    (folder / "csrc" / "answer.cpp").write_text(f"""
        #include <torch/csrc/stable/library.h>
        #define OPS(ns, m) STABLE_TORCH_LIBRARY(ns, m)
        #define OPS_IMPL(ns, key, m) STABLE_TORCH_LIBRARY_IMPL(ns, key, m)
        int64_t answer() {{ return {value}; }}
        OPS(NEURON_KERNELS_OPS_NAMESPACE, m) {{ m.def("answer() -> int"); }}
        OPS_IMPL(NEURON_KERNELS_OPS_NAMESPACE, CompositeExplicitAutograd, m) {{ m.impl("answer", TORCH_BOX(&answer)); }}
    """)
    (folder / "python" / "__init__.py").write_text(
        "import torch\nfrom pathlib import Path\nfrom ._build import NAMESPACE\n"
        'torch.ops.load_library(str(Path(__file__).with_name("ops.so")))\n'
        "answer = getattr(torch.ops, NAMESPACE).answer\n"
    )


def test_versions_and_namesakes_live_in_one_process(bundled, tmp_path):
    """S-MOD-01"""
    packages = (("one", "trusted/relu", "relu", "1.0.0", 1), ("two", "trusted/relu", "relu", "2.0.0", 2))
    packages += (("three", "trusted/other", "relu", "1.0.0", 3),)
    for folder, repository, name, version, value in packages:
        constant_package(tmp_path / folder, name, version, value)
        bundled.run("push", tmp_path / folder, "--to", repository, env=BUILD_ENV)
    code = """
        from kernels import get_kernel
        one, two = (get_kernel("trusted/relu", version=v) for v in (1, 2))
        three = get_kernel("trusted/other", version=1)
        print(one.answer(), two.answer(), three.answer(), one.answer())
    """
    assert run_python(bundled, code).split() == ["1", "2", "3", "1"]


def test_get_kernel_loads_what_a_package_depends_on(bundled, tmp_path):
    constant_package(tmp_path / "base", "base", "1.4.0", 40)
    bundled.run("push", tmp_path / "base", "--to", "trusted/base", env=BUILD_ENV)
    constant_package(tmp_path / "top", "top", "0.1.0", 2)
    needs = '[dependencies]\n"trusted/base" = "^1.2"\n"trusted/many" = ">=1, <3"\n'
    for path, text in (
        ("kernel.toml", needs),
        ("python/__init__.py", 'from kernels import get_kernel_dep\nbase = get_kernel_dep("trusted/base")\n'),
    ):
        with (tmp_path / "top" / path).open("a") as file:
            file.write(text)
    bundled.run("push", tmp_path / "top", "--to", "trusted/top", env=BUILD_ENV)
    (written,) = (tmp_path / "top" / "build" / "kernel-package" / "build").glob("*/metadata.json")
    metadata = json.loads(written.read_text())
    assert metadata["kernel-depends"] == [{"repo-id": "trusted/base", "version": 1}]
    assert metadata["dependencies"] == {"trusted/base": "^1.2", "trusted/many": ">=1, <3"}
    code = """
        from kernels import get_kernel
        top = get_kernel("trusted/top", version=0)
        print(top.answer() + top.base.answer())
    """
    assert run_python(bundled, code).split() == ["42"]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * 4),
        ("stride", ctypes.c_int64 * 4),
    ]


def tensor(values, rows, cols):
    memory = (ctypes.c_float * (rows * cols))(*values)
    return memory, Tensor(ctypes.addressof(memory), 0, 2, (rows, cols), (cols, 1))


def test_the_c_library_needs_nothing_but_libc_and_chooses_its_instruction_set(bundled, tmp_path):
    bundled.run("pull", "trusted/neuron-kernels@^0.1", "--variant", f"neuron-c-{PLATFORM}", "--dir", tmp_path / "out")
    library_path = next((tmp_path / "out").rglob("libneuron_kernels.so"))
    needed = subprocess.run(["objdump", "-p", library_path], capture_output=True, text=True, check=True).stdout
    assert not [line for line in needed.splitlines() if "NEEDED" in line and "stdc++" in line]
    library = ctypes.CDLL(str(library_path))
    library.neuron_kernels_error.restype = ctypes.c_char_p
    library.neuron_kernels_version.restype = ctypes.c_char_p
    assert library.neuron_kernels_version() == b"0.1.0"
    a_memory, a = tensor([1, 2, 3, 4, 5, 6], 2, 3)
    b_memory, b = tensor([1, 0, 0, 1, 1, 1], 3, 2)
    dst_memory, dst = tensor([0] * 4, 2, 2)
    assert library.neuron_kernels_matmul(ctypes.byref(dst), ctypes.byref(a), ctypes.byref(b), None) == 0
    assert list(dst_memory) == [4, 5, 10, 11]
    assert library.neuron_kernels_matmul(ctypes.byref(dst), ctypes.byref(a), ctypes.byref(a), None) == 1
    assert b"expected 3 rows" in library.neuron_kernels_error()
    dst.dtype = 9
    assert library.neuron_kernels_rmsnorm(ctypes.byref(dst), ctypes.byref(dst), None) == 1
    assert b"dtype 9; allowed are 0 (f32)" in library.neuron_kernels_error()
    code = f"import ctypes; l = ctypes.CDLL({str(library_path)!r}); f = l.neuron_kernels_instruction_set; "
    code += "f.restype = ctypes.c_char_p; print(f())"
    portable = run_python(bundled, code, NEURON_KERNELS_ISA="portable")
    assert portable == "b'portable'\n"
    assert run_python(bundled, code, NEURON_KERNELS_ISA="sse9") == "None\n"


def test_e27_compiled_variants_run_on_an_older_glibc(bundled):
    """Of which the oldest that they need must be older than that of this machine, which built them."""
    own = tuple(map(int, os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")))
    libraries = sorted((bundled.package / "build" / "kernel-package" / "build").rglob("*.so"))
    assert [library.name for library in libraries] == ["libneuron_kernels.so", "ops.so"]
    for library in libraries:
        symbols = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
        needed = {tuple(map(int, version.split("."))) for version in re.findall(r"\(GLIBC_([\d.]+)\)", symbols)}
        assert needed and max(needed) < own, f"{library.name} needs glibc {max(needed)}, this machine has {own}"


def test_the_header_of_the_c_library_is_c(bundled, tmp_path):
    program = tmp_path / "main.c"
    program.write_text(C_PROGRAM)
    bundled.run("pull", "trusted/neuron-kernels@0", "--variant", f"neuron-c-{PLATFORM}", "--dir", tmp_path / "out")
    folder = next((tmp_path / "out").rglob("neuron_kernels.h")).parent.parent
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{folder / 'include'}", program]
    command += [f"-L{folder / 'lib'}", "-lneuron_kernels", f"-Wl,-rpath,{folder / 'lib'}", "-o", tmp_path / "main"]
    subprocess.run(command, check=True)
    subprocess.run([tmp_path / "main"], check=True)


def configure(bundled, build, *options, source=ROOT / "examples" / "consumer"):
    command = ["cmake", "-S", source, "-B", build, f"-DNEURON_KERNELS_COMMAND={KERNELS}", *options]
    return subprocess.run(command, env={**bundled.env}, capture_output=True, text=True)


def test_cmake_pulls_headers_and_builds_a_consumer(bundled, tmp_path):
    build = tmp_path / "build"
    done = configure(bundled, build, "-DKERNELS_PACKAGE=trusted/neuron-kernels")
    assert done.returncode == 0, done.stderr
    assert bundled.pushed["commit"] in done.stdout
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    printed = subprocess.run([build / "consumer"], check=True, capture_output=True, text=True).stdout
    assert printed.split() == ["1.20", "1.60", "0.00", "0.00"]
    bundled.stub.clear()
    offline = {**bundled.env, "HF_HUB_OFFLINE": "1"}
    subprocess.run(["cmake", build], env=offline, check=True, capture_output=True)
    assert [r for r in bundled.stub.log() if "/_stub/" not in r["path"]] == []
    wrong = configure(bundled, tmp_path / "wrong", "-DKERNELS_PACKAGE=trusted/neuron-kernels", "-DKERNELS_RANGE=^7")
    assert wrong.returncode != 0 and "0.1.0" in wrong.stderr


def test_cmake_links_the_c_library_too(bundled, tmp_path):
    (tmp_path / "main.c").write_text(C_PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES C)\n"
        f'include("{ROOT}/cmake/neuron_kernels_pull.cmake")\n'
        'neuron_kernels_pull(trusted/neuron-kernels ">=0.1 <1" VARIANT c)\n'
        "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE neuron_kernels::neuron_kernels)\n"
    )
    done = configure(bundled, tmp_path / "build", source=tmp_path)
    assert done.returncode == 0, done.stderr
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)
    subprocess.run([tmp_path / "build" / "main"], check=True)


def test_find_package_finds_a_pulled_package(bundled, tmp_path):
    answer = bundled.json("pull", "trusted/neuron-kernels@^0.1", "--variant", "neuron-header")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES CXX)\n"
        "find_package(neuron_kernels 0.1 CONFIG REQUIRED)\nmessage(STATUS found-${neuron_kernels_VERSION})\n"
        "find_package(neuron_kernels 0.2 CONFIG QUIET)\nmessage(STATUS second-${neuron_kernels_FOUND})\n"
    )
    done = configure(bundled, tmp_path / "build", f"-Dneuron_kernels_DIR={answer['folder']}", source=tmp_path)
    assert "found-0.1.0" in done.stdout and "second-0" in done.stdout, done.stderr


def test_metadata_is_read_by_hugging_face(bundled):
    folder = bundled.package / "build" / "kernel-package" / "build"
    code = f"""
        import json, pathlib
        from kernels._rust import Digest, Metadata
        for path in sorted(pathlib.Path({str(folder)!r}).glob("*/metadata.json")):
            metadata = Metadata.read_from_file(path)
            metadata.digest.validate(Digest.hash_variant(metadata.digest.algorithm, path.parent))
            print(json.dumps([path.parent.name, str(metadata.name), metadata.version]))
    """
    rows = [json.loads(line) for line in run_python(bundled, code).splitlines()]
    assert [row[0] for row in rows] == [
        f"neuron-c-{PLATFORM}",
        "neuron-header",
        f"torch-stable-abi210-cpu-{PLATFORM}",
    ]
    assert all(row[2] == 0 for row in rows)


def test_builds_explain_what_they_miss(bundled, tmp_path):
    missing = bundled.run(
        "build", bundled.package, "--variant", "torch", "--into", tmp_path, env={"PYTHON": "/bin/false"}, status=1
    )
    assert "no PyTorch" in missing.stderr and "set PYTHON" in missing.stderr
    missing = bundled.run(
        "build", bundled.package, "--variant", "c", "--into", tmp_path, env={"CXX": "no-such-g++"}, status=1
    )
    assert "cannot start the compiler 'no-such-g++'" in missing.stderr
    broken = tmp_path / "broken"
    constant_package(broken, "broken", "1.0.0", "nonsense")
    failed = bundled.run("build", broken, env=BUILD_ENV, status=1)
    assert "csrc/answer.cpp" in failed.stderr and "nonsense" in failed.stderr
    assert not (broken / "build" / "kernel-package" / "build").exists()
