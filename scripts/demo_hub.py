"""The demo's way to its operators: the bundled package, pushed to a registry on this machine, pulled back by version,
and imported from the pulled snapshot under the name of its build, as Hugging Face's get_kernel does it.
"""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "build" / "hub" / "cli" / "kernels"
BUILT = ROOT / "build" / "demo"
OWNER = "demo"
VARIANTS = ("header", "torch")  # the third of kernel.toml, the C library, is not run here


def by_registry(folder, progress):
    """(the package that came back, figures). Registry and cache are in `folder`, which must stay while it is used."""
    package = tomllib.loads((ROOT / "kernel.toml").read_text())["package"]
    name, version = f"{OWNER}/{package['name']}", package["version"]
    admin = ("serve", "--root", folder / "registry")
    kernels(environment(folder), *admin, "user", "add", OWNER)
    env = environment(folder, HF_TOKEN=kernels(environment(folder), *admin, "token", "add", OWNER).strip())
    figures = {"name": name, "version": version}
    with timed(figures, "build_s"):
        build(env, progress)
    with serving(env, admin) as env["HF_ENDPOINT"]:
        progress(f"pushing {name} {version} to a registry on this machine", None)
        with timed(figures, "push_s"):
            pushed = json.loads(kernels(env, "push", ROOT, "--built", "--into", BUILT, "--to", name, "--json"))
        progress("pulling it back by version", None)
        figures["asked_for"] = f"{name}@{version.rpartition('.')[0]}"
        with timed(figures, "pull_ms", 1000):
            # Named, because a PyTorch that was built for GPUs asks for their variants also where there is no GPU.
            here = ("--python", sys.executable, "--backend", "cpu")
            pulled = json.loads(kernels(env, "pull", figures["asked_for"], *here, "--json"))
    progress(None, None)
    figures["files_pushed"] = len(pushed["sent"])
    figures |= {key: pulled[key] for key in ("revision", "commit", "variant", "bytes")}
    return import_package(Path(pulled["folder"])), figures


def describe(figures):
    return (
        f"registry  built {figures['name']} {figures['version']} in {figures['build_s']:.1f} s, "
        f"pushed {figures['files_pushed']} files in {figures['push_s']:.2f} s\n"
        f"          pulled {figures['asked_for']} back in {figures['pull_ms']:.0f} ms: {figures['variant']}, "
        f"{figures['bytes'] / 1e6:.1f} MB, commit {figures['commit'][:10]}"
    )


def environment(folder, **extra):
    """Without the settings of the user's own hub: endpoint, token, cache, offline mode, proxies."""
    foreign = ("HF_", "HUGGING", "KERNELS_", "TRANSFORMERS_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(foreign) and not k.lower().endswith("_proxy")}
    return {**kept, "HF_HOME": str(folder / "home"), "PYTHON": sys.executable, **extra}


def kernels(env, *command):
    done = subprocess.run([KERNELS, *map(str, command)], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"demo: kernels {' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def build(env, progress):
    command = [KERNELS, "build", ROOT, "--into", BUILT, *(f"--variant={variant}" for variant in VARIANTS)]
    said = []
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            said.append(line)
            progress(f"building the package: {line.strip()}", None)
    if process.returncode != 0:
        sys.exit("demo: kernels build\n" + "".join(said))


@contextlib.contextmanager
def serving(env, admin):
    """The address of the registry, which runs until the end, however that comes."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # else nobody would stop it
    log = tempfile.TemporaryFile("w+")
    command = [KERNELS, *admin, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        address = process.stdout.readline().strip()
        if not address.startswith("http"):
            log.seek(0)
            sys.exit(f"demo: the registry does not start\n{log.read()}")
        yield address
    finally:
        signal.signal(signal.SIGTERM, before)
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()


@contextlib.contextmanager
def timed(figures, key, per_second=1):
    begin = time.perf_counter()
    yield
    figures[key] = round((time.perf_counter() - begin) * per_second, 3)


def import_package(folder):
    name = json.loads((folder / "metadata.json").read_text())["id"]
    spec = importlib.util.spec_from_file_location(name, folder / "__init__.py")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
