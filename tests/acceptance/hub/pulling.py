"""What tests of `kernels pull` share: the program with a home of its own, and what it left."""

import json
import os
import pathlib
import random
import subprocess
import sys

from registry import KERNELS

CODE = {"usage": 2, "auth": 3, "not_found": 4, "network": 5, "integrity": 6, "incompatible": 7, "storage": 9}


def content(size, seed):
    return random.Random(seed).randbytes(size)


def downloads(hub):
    """Requests for file content, as (path, bytes that were announced)."""
    return [
        (entry["path"], int(entry["resp"].get("Content-Length", 0)))
        for entry in hub.log()
        if "/resolve/" in entry["path"] and entry["method"] == "GET"
    ]


def snapshot_files(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def python_can(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0


class Run:
    """What a run of the program left: exit code, stdout, stderr."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def path(self):
        assert self.code == 0, self.err
        return pathlib.Path(self.out.strip())

    @property
    def json(self):
        assert self.code == 0, self.err
        return json.loads(self.out)


class Client:
    """`kernels` with HF_HOME in `home` and the endpoint of a stub."""

    def __init__(self, home, url):
        self.home, self.url = home, url
        self.cache = home / "hub"

    def environment(self, **extra):
        keep = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("HF_", "KERNELS_", "HUGGING", "DO_NOT")) and not k.lower().endswith("_proxy")
        }
        keep.pop("VIRTUAL_ENV", None)
        return {**keep, "HF_HOME": str(self.home), "HF_ENDPOINT": self.url, **extra}

    def __call__(self, *arguments, env=None, stdin=None, timeout=60, **options):
        command = [KERNELS, *map(str, arguments)]
        done = subprocess.run(
            command,
            env=self.environment(**(env or {})),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            **options,
        )
        return Run(done)

    def start(self, *arguments, env=None):
        return subprocess.Popen(
            [KERNELS, *map(str, arguments)],
            env=self.environment(**(env or {})),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def repo(self, name, kind="kernel"):
        return self.cache / f"{kind}s--{name.replace('/', '--')}"

    def blobs(self, name):
        folder = self.repo(name) / "blobs"
        return sorted(p.name for p in folder.iterdir()) if folder.exists() else []
