"""The registry on a folder that it cannot write in: it serves what there is, and refuses changes by 507."""

import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pulling import Client, content, snapshot_files
from registry import KERNELS, Registry
from stub import variant

FILES = variant("torch-universal", {"__init__.py": b"VALUE = 1\n", "big.bin": content(2_000_000, "big")})
NOBODY = 65534
REFUSAL = "This registry is read-only at present: it can be read from, and nothing can be changed."


@contextmanager
def read_only(root: Path) -> Iterator[None]:
    """Lays a read-only mount of `root` over it."""
    done = subprocess.run(["mount", "--bind", str(root), str(root)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs the right to mount: {done.stderr}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(root)], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(root)], check=True)


def publish(registry: Registry) -> str:
    repository = registry.create("kept")
    assert registry.commit(repository, FILES)[0] == 200
    assert registry.call("POST", f"/api/kernels/{repository}/branch/v1", b"{}")[0] == 200
    return repository


def check_reads(registry: Registry, repository: str, folder: Path) -> None:
    run = Client(folder / "home", registry.endpoint)("pull", f"{repository}@1")
    assert snapshot_files(run.path) == FILES
    clone = folder / "clone"
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_LFS_SKIP_SMUDGE": "1"}
    url = f"{registry.endpoint}/kernels/{repository}"
    subprocess.run(["git", "clone", "-q", url, str(clone)], env=env, check=True, timeout=60)
    assert (clone / "build/torch-universal/__init__.py").read_bytes() == b"VALUE = 1\n"
    assert registry.call("GET", "/api/whoami-v2")[0] == 200


def check_refusals(registry: Registry, repository: str) -> None:
    api, batch = f"/api/kernels/{repository}", {"operation": "upload", "objects": [{"oid": "a" * 64, "size": 5}]}
    changes = [
        ("POST", "/api/repos/create", {"name": "new", "type": "kernel"}),
        ("DELETE", "/api/repos/delete", {"name": "kept", "type": "kernel"}),
        ("POST", "/api/repos/move", {"fromRepo": repository, "toRepo": "alice/moved", "type": "kernel"}),
        ("PUT", f"{api}/settings", {"private": True}),
        ("POST", f"{api}/branch/v2", {}),
        ("DELETE", f"{api}/branch/v1", {}),
        ("POST", f"{api}/tag/main", {"tag": "t"}),
        ("POST", f"{api}/preupload/main", {"files": []}),
        ("POST", f"/kernels/{repository}.git/info/lfs/objects/batch", batch),
        ("GET", f"{api}/xet-write-token/main", {}),
    ]
    for method, path, body in changes:
        status, header, answer = registry.call(method, path, json.dumps(body).encode())
        assert (status, json.loads(answer)) == (507, {"error": REFUSAL}), f"{method} {path}"
        assert header["X-Error-Message"] == REFUSAL
    assert registry.commit(repository, {"a.txt": b"a"})[0] == 507


def test_a_registry_started_on_a_read_only_file_system(tmp_path: Path) -> None:
    with Registry(KERNELS, tmp_path / "root") as registry:
        repository = publish(registry)
        registry.stop()
        with read_only(registry.root):
            registry.start()
            check_reads(registry, repository, tmp_path)
            check_refusals(registry, repository)
            assert registry.stop() == 0


def test_a_file_system_that_becomes_read_only_and_writable_again(tmp_path: Path) -> None:
    with Registry(KERNELS, tmp_path / "root") as registry:
        repository = publish(registry)
        data = b"later"
        wanted = {"operation": "upload", "objects": [{"oid": hashlib.sha256(data).hexdigest(), "size": len(data)}]}
        batch = f"/kernels/{repository}.git/info/lfs/objects/batch"
        answer = json.loads(registry.call("POST", batch, json.dumps(wanted).encode())[2])
        put = answer["objects"][0]["actions"]["upload"]["href"].removeprefix(registry.endpoint)
        with read_only(registry.root):
            check_reads(registry, repository, tmp_path)
            check_refusals(registry, repository)
            status, _, body = registry.call("PUT", put, data)  # by a right of earlier
            assert status == 507
            assert "Read-only file system" in json.loads(body)["error"]
        assert registry.call("PUT", put, data)[0] == 200
        assert registry.commit(repository, {"a.txt": b"a"})[0] == 200


def test_our_client_tells_the_reason_at_once(tmp_path: Path) -> None:
    with Registry(KERNELS, tmp_path / "root") as registry, read_only(registry.root):
        client = Client(tmp_path / "home", registry.endpoint)
        assert client("new", "my-scale", cwd=tmp_path).code == 0
        assert client("build", tmp_path / "my-scale", timeout=300).code == 0
        begin = time.monotonic()
        run = client("push", tmp_path / "my-scale", "--to", "alice/x", "--built", env={"HF_TOKEN": registry.writer})
        assert run.code == 1
        assert REFUSAL in run.err
        assert "tell whoever runs the server" in run.err
        assert time.monotonic() - begin < 2  # it does not try again


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_folder_that_its_user_may_not_write_in(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with Registry(KERNELS, tmp_path / "root") as registry:
        repository = publish(registry)
        registry.stop()
        for path in (registry.root, *registry.root.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        registry.start(user=NOBODY, group=NOBODY)
        check_reads(registry, repository, tmp_path)
        check_refusals(registry, repository)


def test_a_read_only_folder_without_a_registry_is_told_at_the_start(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with read_only(root):
        command = [KERNELS, "serve", "--root", str(root), "--listen", "127.0.0.1:0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 9
        assert f"{root} is read-only; only what was a registry before can be served so" in done.stderr
