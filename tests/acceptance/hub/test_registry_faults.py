"""The registry under faults: killed at random points under load, without space, on a read-only disk, slow clients.

KILL_ROUNDS sets how often it is killed (20; `make acceptance` does 200).
"""

import base64
import hashlib
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from registry import KERNELS, Registry

ROUNDS = int(os.environ.get("KILL_ROUNDS", "20"))


class Writer(threading.Thread):
    """Commits to one repository until the server goes away; remembers what was acknowledged."""

    def __init__(self, registry: Registry, repository: str, seed: int) -> None:
        super().__init__()
        self.registry, self.repository, self.random = registry, repository, random.Random(seed)
        self.acknowledged: list[tuple[str, str, bytes]] = []  # commit, path, content
        self.unexpected: list[str] = []

    def call(self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes, kind: str) -> bytes:
        headers = {"Authorization": f"Bearer {self.registry.writer}", "Content-Type": kind}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise AssertionError(f"{method} {path}: HTTP {answer.status} {data[:200]!r}")
        return data

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.registry.port, timeout=20)
        try:
            while True:
                content = self.random.randbytes(self.random.choice([10, 3000, 40_000, 40_000, 1_200_000]))
                path = f"{self.random.randrange(50)}/{self.random.randrange(10**9)}.bin"
                header = {"key": "header", "value": {"summary": path, "description": ""}}
                if self.random.random() < 0.3:
                    line = self.upload(connection, path, content)
                else:
                    encoded = base64.b64encode(content).decode()
                    line = {"key": "file", "value": {"content": encoded, "path": path, "encoding": "base64"}}
                body = "".join(json.dumps(one) + "\n" for one in (header, line)).encode()
                target = f"/api/kernels/{self.repository}/commit/main"
                done = json.loads(self.call(connection, "POST", target, body, "application/x-ndjson"))
                self.acknowledged.append((done["commitOid"], path, content))
        except (OSError, http.client.HTTPException):
            pass  # the server was killed
        except AssertionError as error:
            self.unexpected.append(str(error))

    def upload(self, connection: http.client.HTTPConnection, path: str, content: bytes) -> dict[str, object]:
        oid = hashlib.sha256(content).hexdigest()
        batch = {"operation": "upload", "transfers": ["basic"], "objects": [{"oid": oid, "size": len(content)}]}
        target = f"/kernels/{self.repository}.git/info/lfs/objects/batch"
        answer = json.loads(self.call(connection, "POST", target, json.dumps(batch).encode(), "application/json"))
        if "actions" in answer["objects"][0]:
            href = answer["objects"][0]["actions"]["upload"]["href"].removeprefix(self.registry.endpoint)
            self.call(connection, "PUT", href, content, "application/octet-stream")
        return {"key": "lfsFile", "value": {"path": path, "algo": "sha256", "oid": oid, "size": len(content)}}


def check_store(registry: Registry, repository: str) -> None:
    folder = registry.root / "repos" / "kernels" / (repository + ".git")
    fsck = subprocess.run(["git", "-C", str(folder), "fsck", "--full", "--strict"], capture_output=True, text=True)
    assert fsck.returncode == 0, fsck.stderr
    for file in (registry.root / "objects").rglob("*"):
        if file.is_file():
            assert hashlib.sha256(file.read_bytes()).hexdigest() == file.name, f"{file} has other content"


def kill_under_load(registry: Registry, repository: str, seed: int, seconds: float) -> int:
    """One round: how many commits were acknowledged before the kill; all must be there after the restart."""
    writers = [Writer(registry, repository, seed * 10 + i) for i in range(4)]
    for writer in writers:
        writer.start()
    time.sleep(seconds)
    registry.kill()
    for writer in writers:
        writer.join()
        assert not writer.unexpected, writer.unexpected
    check_store(registry, repository)
    registry.start()
    folder = registry.root / "repos" / "kernels" / (repository + ".git")
    git = ["git", "-C", str(folder), "rev-list", "refs/heads/main"]
    on_main = set(subprocess.run(git, check=True, capture_output=True, text=True).stdout.split())
    connection = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=20)
    acknowledged = [one for writer in writers for one in writer.acknowledged]
    for commit, path, content in acknowledged:
        assert commit in on_main, f"round {seed}: {commit} was acknowledged and is not on main"
        connection.request("GET", f"/kernels/{repository}/resolve/{commit}/{path}")
        assert connection.getresponse().read() == content, f"round {seed}: {path} of {commit} has other bytes"
    connection.close()
    return len(acknowledged)


def test_a_killed_registry_loses_no_acknowledged_commit(tmp_path: Path) -> None:
    moments, total = random.Random(1), 0
    for first in range(0, ROUNDS, 10):  # a new one now and then: every object is compared after every kill
        registry = Registry(KERNELS, tmp_path / f"root-{first}")
        registry.start()
        repository = registry.create("load")
        for kill in range(first, min(first + 10, ROUNDS)):
            total += kill_under_load(registry, repository, kill, moments.uniform(0.02, 0.4))
        assert registry.stop() == 0
        shutil.rmtree(registry.root)
    assert total > ROUNDS  # the load was one


def test_a_full_disk_gives_507_and_leaves_the_branch_as_it_was(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=10m", "tmpfs", str(mount)], capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs of 10 MB")
    try:
        with Registry(KERNELS, mount / "root") as registry:
            repository = registry.create("full")
            before = json.loads(registry.get(f"/api/kernels/{repository}"))["sha"]
            status, _, answer = registry.commit(repository, {"large.bin": os.urandom(20_000_000)})
            assert status == 507, answer
            assert "No space left" in json.loads(answer)["error"]
            assert json.loads(registry.get(f"/api/kernels/{repository}"))["sha"] == before
            assert not list((mount / "root" / "tmp").iterdir())
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


def test_slow_senders_do_not_keep_others_waiting(tmp_path: Path) -> None:
    with Registry(KERNELS, tmp_path / "root") as registry:
        slow = [socket.create_connection(("127.0.0.1", registry.port)) for _ in range(300)]
        for s in slow:
            s.sendall(b"GET / HTTP/1.1\r\nX-A: ")
        begin = time.monotonic()
        for _ in range(20):
            assert registry.get("/health") == b"ok\n"
        assert time.monotonic() - begin < 5
        for s in slow:
            s.close()


def test_a_stop_finishes_running_transfers(tmp_path: Path) -> None:
    with Registry(KERNELS, tmp_path / "root") as registry:
        repository = registry.create("stop")
        content = os.urandom(8_000_000)
        writer = Writer(registry, repository, 0)
        connection = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=30)
        line = writer.upload(connection, "large.bin", content)
        header = {"key": "header", "value": {"summary": "large"}}
        body = "".join(json.dumps(one) + "\n" for one in (header, line)).encode()
        writer.call(connection, "POST", f"/api/kernels/{repository}/commit/main", body, "application/x-ndjson")
        connection.request("GET", f"/kernels/{repository}/resolve/main/large.bin")
        answer = connection.getresponse()
        got = answer.read(1000)
        assert registry.process is not None
        registry.process.terminate()
        time.sleep(0.3)
        got += answer.read()
        assert got == content
        assert registry.process.wait(timeout=30) == 0
        registry.process = None
