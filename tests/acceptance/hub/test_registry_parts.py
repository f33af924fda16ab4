"""LFS uploads in parts by the real client: whole, and killed midway."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from registry import KERNELS, Registry

PART = 5 << 20
SIZE = 40 * PART + 12345


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry(KERNELS, tmp_path / "root", "--part-mib", "5") as registry:
        yield registry


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large.bin"
    path.write_bytes(os.urandom(SIZE))
    return path


def digest(content: bytes) -> str:
    """Compared in place of content, which pytest would print."""
    return hashlib.sha256(content).hexdigest()


def upload(registry: Registry, repository: str, file: Path) -> "subprocess.Popen[str]":
    """By huggingface_hub with Xet off, under way."""
    script = (
        "from huggingface_hub import HfApi\n"
        f"HfApi().upload_file(path_or_fileobj='{file}', path_in_repo='large.bin', repo_id='{repository}', "
        "repo_type='kernel')"
    )
    env = {
        "PATH": os.environ["PATH"],
        "HF_HOME": str(file.parent / "home"),
        "HF_ENDPOINT": registry.endpoint,
        "HF_TOKEN": registry.writer,
        "HF_HUB_DISABLE_XET": "1",
    }
    return subprocess.Popen([sys.executable, "-c", script], env=env, stderr=subprocess.PIPE, text=True)


def finish(process: "subprocess.Popen[str]") -> None:
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said


def parts(registry: Registry) -> list[Path]:
    return list((registry.root / "tmp").glob("parts-*/*"))


def stored(registry: Registry, repository: str) -> str:
    return digest(registry.get(f"/kernels/{repository}/resolve/main/large.bin"))


def test_an_upload_in_parts(registry: Registry, large: Path) -> None:
    repository, wanted = registry.create("parts"), digest(large.read_bytes())
    before = registry.requests()
    finish(upload(registry, repository, large))
    assert registry.requests() - before > SIZE // PART  # it did come in parts
    assert stored(registry, repository) == wanted
    assert not parts(registry)


def test_an_upload_killed_midway_and_made_again(registry: Registry, large: Path) -> None:
    repository, wanted = registry.create("killed"), digest(large.read_bytes())
    for count in (1, 10, 25):
        process = upload(registry, repository, large)
        begin, old = time.monotonic(), len(parts(registry))
        while len(parts(registry)) < old + count:
            assert process.poll() is None, "the upload ended before it was killed"
            assert time.monotonic() - begin < 60
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert registry.call("GET", f"/kernels/{repository}/resolve/main/large.bin")[0] == 404
    finish(upload(registry, repository, large))
    assert stored(registry, repository) == wanted


def test_a_part_that_is_too_large_is_refused(registry: Registry) -> None:
    repository = registry.create("greedy")
    oid = "a" * 64
    body = f'{{"operation": "upload", "transfers": ["multipart"], "objects": [{{"oid": "{oid}", "size": {SIZE}}}]}}'
    answer = registry.call("POST", f"/kernels/{repository}.git/info/lfs/objects/batch", body.encode())
    first = json.loads(answer[2])["objects"][0]["actions"]["upload"]["header"]["1"]
    assert registry.call("PUT", first.removeprefix(registry.endpoint), bytes(PART + 1))[0] == 413
    assert registry.call("PUT", first.removeprefix(registry.endpoint), bytes(PART))[0] == 200
