"""Older releases of huggingface_hub, each in a virtual environment of its own, push to our registry and pull from it.

The environments are made with pip when they are needed first, and stay in build/clients.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest
from pulling import Client, content, snapshot_files
from registry import KERNELS, ROOT, Registry

HERE = pathlib.Path(__file__).resolve().parent
RELEASES = ("0.23.5", "0.30.2", "0.34.6", "0.36.0", "1.25.0")
FILES = {
    "README.md": b"---\nlicense: mit\n---\n# Weights\n",
    "config.json": b'{"layers": 2}\n',
    "empty.bin": b"",
    "folder/with space/100%#1.txt": "caf\u00e9\n".encode(),
    "large.safetensors": content(3_000_000, "old clients"),  # above the registry's limit for git: an LFS object
    "build/torch-universal/__init__.py": b"VALUE = 1\n",
}


def environment_of(release):
    """The Python of a virtual environment with that release."""
    folder = ROOT / "build" / "clients" / release
    python, done = folder / "bin" / "python", folder / "installed"
    needs = (HERE / "old_clients.txt").read_text()
    if not done.exists() or done.read_text() != needs:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = [python, "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        install += [f"huggingface_hub=={release}", "-c", HERE / "old_clients.txt"]
        installed = subprocess.run(install, capture_output=True, text=True, timeout=600)
        assert installed.returncode == 0, installed.stderr
        done.write_text(needs)
    return python


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    with Registry(KERNELS, tmp_path_factory.mktemp("registry") / "root") as running:
        yield running


class OldClient:
    """One release against the registry, with a home of its own for each command."""

    def __init__(self, release, registry, folder):
        self.python, self.registry, self.folder, self.runs = environment_of(release), registry, folder, 0
        command = "hf" if int(release.split(".")[0]) >= 1 else "huggingface-cli"
        self.cli = self.python.with_name(command)

    def __call__(self, *command):
        self.runs += 1
        home = self.folder / f"home-{self.runs}"
        client = Client(home, self.registry.endpoint)
        env = client.environment(HF_TOKEN=self.registry.writer, HF_HUB_DISABLE_PROGRESS_BARS="1")
        env.pop("PYTHONPATH", None)
        done = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout


def write(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.mark.parametrize("kind", ["model", "dataset"])
@pytest.mark.parametrize("release", RELEASES)
def test_an_older_client_pushes_and_pulls(registry, tmp_path, release, kind):
    client = OldClient(release, registry, tmp_path)
    repo, folder = f"alice/old-{release}", write(tmp_path / "folder", FILES)
    client(client.python, HERE / "old_client.py", "push", repo, kind, folder)
    client(client.python, HERE / "old_client.py", "pull", repo, kind, folder)
    tree = json.loads(registry.get(f"/api/{kind}s/{repo}/tree/main?recursive=true"))
    assert [entry["path"] for entry in tree if "lfs" in entry] == ["large.safetensors"]
    ours = Client(tmp_path / "ours", registry.endpoint)
    held = snapshot_files(ours("pull", repo, "--type", kind, "--all", "--dir", tmp_path / "out").path)
    held.pop(".gitattributes", None)
    assert held == FILES


@pytest.mark.parametrize("release", RELEASES)
def test_the_command_of_an_older_client(registry, tmp_path, release):
    client = OldClient(release, registry, tmp_path)
    repo, folder = f"alice/command-{release}", write(tmp_path / "folder", FILES)
    client(client.cli, "upload", repo, folder, ".")
    client(client.cli, "upload", repo, folder / "config.json", "again/config.json", "--revision", "other")
    client(client.cli, "download", repo, "--local-dir", tmp_path / "out", "--exclude", ".*")
    held = {name: data for name, data in snapshot_files(tmp_path / "out").items() if not name.startswith(".")}
    assert held == FILES


def test_what_we_push_an_older_client_pulls(registry, tmp_path):
    """Of the old ones only 1.25 knows kernels: it makes and reads such repositories, and refuses to upload to them."""
    client = OldClient("1.25.0", registry, tmp_path)
    client(client.python, "-c", "import huggingface_hub as h; h.create_repo('alice/scale', repo_type='kernel')")
    ours = Client(tmp_path / "ours", registry.endpoint)
    ours("new", "my-scale", cwd=tmp_path)
    package = tmp_path / "my-scale"
    (package / "include" / "table.bin").write_bytes(FILES["large.safetensors"])
    pushed = ours("push", package, "--to", "alice/scale", env={"HF_TOKEN": registry.writer})
    assert pushed.code == 0, pushed.err
    code = "import huggingface_hub as h; print(h.snapshot_download('alice/scale', repo_type='kernel', revision='v0'))"
    snapshot = pathlib.Path(client(client.python, "-c", code).strip())
    assert snapshot_files(snapshot) == snapshot_files(ours("pull", "alice/scale@v0", "--all").path)
    assert (snapshot / "build/neuron-header/include/table.bin").read_bytes() == FILES["large.safetensors"]
