"""The registry under faults: killed at random points under load, without space, on a read-only disk, slow clients.

KILL_ROUNDS sets how often it is killed (20; `make acceptance` does 200).
"""

import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from registry import KERNELS, Registry
from writer import Writer, check_acknowledged, check_store

ROUNDS = int(os.environ.get("KILL_ROUNDS", "20"))


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
    for writer in writers:
        for commit, _, _ in writer.acknowledged:
            assert commit in on_main, f"round {seed}: {commit} was acknowledged and is not on main"
        check_acknowledged(registry, writer)
    return sum(len(writer.acknowledged) for writer in writers)


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
