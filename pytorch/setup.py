"""Builds neuron_kernels/ops.so with the machine's C++ compiler against libtorch's stable ABI.

The library links neither Python nor anything of one PyTorch version, so the wheel is tagged py3-none-<platform>.
PyTorch is found in the running environment without being imported: with pip's build isolation, too.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools < 70.1
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
LOWEST_TORCH = (2, 10)
SOURCES = sorted(str(p.relative_to(HERE)) for p in (HERE / "csrc").glob("*.cpp"))


def repository_root():
    """Folder that holds include/ and kernel.toml: this one in a source distribution, else the repository."""
    for folder in (HERE, HERE.parent):
        if (folder / "include" / "neuron_kernels").is_dir():
            return folder
    raise SystemExit(f"neuron_kernels: no include/neuron_kernels in {HERE} or {HERE.parent}; build from the repository")


def package_version():
    found = re.search(r'^version\s*=\s*"([^"]+)"', (repository_root() / "kernel.toml").read_text(), re.MULTILINE)
    if not found:
        raise SystemExit(f"neuron_kernels: {repository_root() / 'kernel.toml'} names no version")
    return found[1]


def torch_folder():
    """Where PyTorch is installed. pip's isolated builds hide the environment's packages, so its folders are tried."""
    spec = importlib.util.find_spec("torch")
    candidates = [Path(spec.origin).parent] if spec and spec.origin else []
    candidates += [Path(sysconfig.get_path(kind)) / "torch" for kind in ("platlib", "purelib")]
    for folder in candidates:
        if (folder / "include" / "torch" / "csrc" / "stable" / "library.h").is_file():
            version = re.search(r"__version__ = '(\d+)\.(\d+)", (folder / "version.py").read_text())
            if tuple(map(int, version.groups())) >= LOWEST_TORCH:
                return folder
            raise SystemExit(
                f"neuron_kernels: PyTorch in {folder} is {'.'.join(version.groups())}; needed is 2.10 or newer"
            )
    tried = ", ".join(dict.fromkeys(map(str, candidates)))
    raise SystemExit(
        f"neuron_kernels: PyTorch 2.10 or newer is needed to build and was not found in {tried}; install torch first, "
        "then run: pip install --no-build-isolation ./pytorch"
    )


class BuildOps(build_ext):
    """Compiles each source with $CXX (g++ unless set), then links ops.so beside the package's modules."""

    def get_ext_filename(self, fullname):
        return fullname.replace(".", os.sep) + ".so"

    def build_extension(self, ext):
        torch = torch_folder()
        compiler = os.environ.get("CXX", "g++").split()
        if shutil.which(compiler[0]) is None:
            raise SystemExit(f"neuron_kernels: no C++ compiler '{compiler[0]}'; install g++ 12 or set CXX")
        flags = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-DTORCH_TARGET_VERSION=0x020a000000000000"]
        flags += [f"-I{repository_root() / 'include'}", "-isystem", str(torch / "include")]
        flags += os.environ.get("CXXFLAGS", "").split()
        objects_folder = Path(self.build_temp)
        objects_folder.mkdir(parents=True, exist_ok=True)

        def compile_one(source):
            target = objects_folder / (Path(source).stem + ".o")
            if subprocess.run([*compiler, *flags, "-c", str(HERE / source), "-o", str(target)]).returncode != 0:
                raise SystemExit(f"neuron_kernels: {' '.join(compiler)} cannot compile {source}; see above")
            return str(target)

        # Two at a time at most: one of these files takes up to a gibibyte.
        with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
            objects = list(pool.map(compile_one, ext.sources))
        library = Path(self.get_ext_fullpath(ext.name))
        library.parent.mkdir(parents=True, exist_ok=True)
        # "now": a PyTorch that lacks a function fails while loading, with a sentence, and not later in a call.
        link = ["-shared", "-Wl,-z,now", f"-L{torch / 'lib'}", "-ltorch_cpu", "-lc10"]
        subprocess.run([*compiler, *objects, *link, "-o", str(library)], check=True)


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def run(self):
        for left_over in (HERE / "build").glob("lib*"):  # else modules that were renamed would be packed once more
            shutil.rmtree(left_over)
        super().run()

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Sdist(sdist):
    """Takes along the headers and kernel.toml, so that the archive builds by itself."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        root = repository_root()
        shutil.copytree(root / "include", Path(base_dir) / "include", dirs_exist_ok=True)
        shutil.copytree(HERE / "csrc", Path(base_dir) / "csrc", dirs_exist_ok=True)
        shutil.copy2(root / "kernel.toml", base_dir)


setup(
    version=package_version(),
    ext_modules=[Extension("neuron_kernels.ops", SOURCES)],
    cmdclass={"build_ext": BuildOps, "bdist_wheel": Wheel, "sdist": Sdist},
)
