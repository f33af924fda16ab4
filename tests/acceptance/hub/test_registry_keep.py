"""Housekeeping of a registry: gc, backup and restore under load, and killed at random points.

KILL_ROUNDS sets how often it is killed (20; `make acceptance` does 200).
"""

import fcntl
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pulling import Client, content, snapshot_files
from registry import KERNELS, Registry
from stub import variant
from writer import Writer, check_acknowledged, check_store

ROUNDS = int(os.environ.get("KILL_ROUNDS", "20"))
PACKAGE = {"__init__.py": b"VALUE = 1\n", "big.bin": content(4_000_000, 1), "empty.txt": b""}
LONG_AGO = time.time() - 100 * 24 * 3600


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry(KERNELS, tmp_path / "root") as started:
        yield started


def gc(registry: Registry, *options: str) -> dict[str, int]:
    return dict(json.loads(registry.admin("gc", "--json", *options)))


@contextmanager
def store_lock(root: Path) -> Iterator[None]:
    """The lock that uploads share, taken exclusively."""
    with open(root / "store.lock", "a+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, 1)
        yield


def make_old(root: Path, older_than_s: float = -1.0) -> None:
    """As if the files that nothing touched for some seconds were not touched for days."""
    with store_lock(root):
        for folder in ("objects", "repos", "tmp"):
            for path in (root / folder).rglob("*"):
                try:
                    if time.time() - path.stat().st_mtime > older_than_s:
                        os.utime(path, (LONG_AGO, LONG_AGO))
                except FileNotFoundError:
                    pass  # of a request that just ended


class Recycler(Writer):
    """Writes a few contents again and again on branches that it deletes again: each is garbage now and then."""

    def run(self) -> None:
        pool = [random.Random(i).randbytes(1_100_000 if i % 2 else 3000) for i in range(8)]
        connection = http.client.HTTPConnection("127.0.0.1", self.registry.port, timeout=60)
        start = self.call(connection, "GET", f"/api/kernels/{self.repository}/refs", b"", "application/json")
        first = json.loads(start)["branches"][0]["targetCommit"]
        try:
            while not self.stopped.is_set():
                branch = f"b{self.random.randrange(10**9)}"
                address = f"/api/kernels/{self.repository}/branch/{branch}"
                body = json.dumps({"startingPoint": first}).encode()
                self.call(connection, "POST", address, body, "application/json")
                made = []
                for _ in range(3):
                    content, path = self.random.choice(pool), f"{self.random.randrange(10**9)}.bin"
                    by_lfs = self.random.random() < 0.7
                    made.append((self.commit(connection, branch, path, content, by_lfs=by_lfs), path, content))
                if self.random.random() < 0.8:
                    self.call(connection, "DELETE", address, b"", "application/json")
                    time.sleep(self.random.uniform(0, 1))
                else:
                    self.acknowledged += made
        except (AssertionError, OSError) as error:
            self.unexpected.append(repr(error))


class Reviver(Writer):
    """Brings commits of deleted branches back by their ids, until housekeeping has removed them."""

    revived = 0

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.registry.port, timeout=60)
        branches = f"/api/kernels/{self.repository}/branch/"
        try:
            while not self.stopped.is_set():
                content = self.random.randbytes(1000)
                self.call(connection, "POST", branches + "once", b"", "application/json")
                commit = self.commit(connection, "once", "a.bin", content, by_lfs=False)
                self.call(connection, "DELETE", branches + "once", b"", "application/json")
                while not self.stopped.is_set() and self.revive(connection, branches + "again", commit):
                    got = self.call(connection, "GET", f"/kernels/{self.repository}/resolve/again/a.bin", b"", "")
                    assert got == content
                    self.revived += 1
                    self.call(connection, "DELETE", branches + "again", b"", "application/json")
                    time.sleep(0.02)
        except (AssertionError, OSError) as error:
            self.unexpected.append(repr(error))

    def revive(self, connection: http.client.HTTPConnection, address: str, commit: str) -> bool:
        try:
            self.call(connection, "POST", address, json.dumps({"startingPoint": commit}).encode(), "application/json")
        except AssertionError as error:
            assert "HTTP 404" in str(error), error
            return False
        return True


def test_gc_beside_uploads_loses_nothing_that_was_acknowledged(registry: Registry) -> None:
    repositories = [registry.create("first"), registry.create("second")]
    reviver = Reviver(registry, registry.create("third"), 3)
    writers = [*(Recycler(registry, repositories[i % 2], i) for i in range(3)), reviver]
    for writer in writers:
        writer.start()
    removed, until = 0, time.monotonic() + 15
    while time.monotonic() < until:
        make_old(registry.root, older_than_s=1)  # the grace period becomes one second
        done = gc(registry)
        assert done["problems"] == []
        removed += done["objects"] + done["git_objects"]
    for writer in writers:
        writer.stopped.set()
    for writer in writers:
        writer.join()
        assert not writer.unexpected, writer.unexpected
    make_old(registry.root)
    gc(registry)
    assert removed > 20  # there was garbage
    assert reviver.revived > 20
    for writer in writers[:3]:
        assert writer.acknowledged
        check_acknowledged(registry, writer)
    for repository in repositories:
        check_store(registry, repository)


def test_a_dry_run_changes_nothing(registry: Registry) -> None:
    writer = Writer(registry, registry.create("dry"), 1)
    connection = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=20)
    writer.upload(connection, "never committed", os.urandom(2_000_000))
    make_old(registry.root)

    def picture() -> dict[str, tuple[int, int]]:
        return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in registry.root.rglob("*")}

    before = picture()
    would = gc(registry, "--dry-run")
    assert picture() == before
    done = gc(registry)
    assert would["objects"] == done["objects"] == 1
    assert done["bytes"] > 1_900_000  # the new pack is deducted


def test_clones_and_pulls_work_after_packing(registry: Registry, tmp_path: Path) -> None:
    writer = Writer(registry, registry.create("packed"), 2)
    connection = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=20)
    content = os.urandom(50_000)
    commit = writer.commit(connection, "main", "a.bin", content, by_lfs=False)
    assert gc(registry)["packed"] > 3
    subprocess.run(
        ["git", "clone", "-q", f"{registry.endpoint}/kernels/alice/packed", str(tmp_path / "clone")], check=True
    )
    assert (tmp_path / "clone" / "a.bin").read_bytes() == content
    assert registry.get(f"/kernels/alice/packed/resolve/{commit}/a.bin") == content
    writer.commit(connection, "main", "b.bin", content, by_lfs=False)  # whose blob is in the pack
    check_store(registry, "alice/packed")


def run_and_kill(registry: Registry, command: list[str], seconds: float) -> None:
    process = subprocess.Popen([KERNELS, "serve", "--root", str(registry.root), *command], stdout=subprocess.DEVNULL)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_killed_gc_loses_nothing_and_the_next_one_works(registry: Registry) -> None:
    moments = random.Random(3)
    writers = [Recycler(registry, registry.create("killed"), 7)]
    writers[0].start()
    for _ in range(ROUNDS):
        make_old(registry.root, older_than_s=1)
        run_and_kill(registry, ["gc"], moments.uniform(0.005, 0.12))
    writers[0].stopped.set()
    writers[0].join()
    assert not writers[0].unexpected, writers[0].unexpected
    make_old(registry.root)
    assert gc(registry)["problems"] == []
    check_acknowledged(registry, writers[0])
    check_store(registry, "alice/killed")


def publish(registry: Registry) -> None:
    """trusted/demo, version 1.2.0."""
    writer = Writer(registry, registry.create("demo", "trusted"), 4)
    connection = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=20)
    for path, data in variant("torch-universal", PACKAGE).items():
        writer.commit(connection, "main", path, data, by_lfs=len(data) > 1_000_000)
    target = "/api/kernels/trusted/demo/tag/main"
    writer.call(connection, "POST", target, json.dumps({"tag": "1.2.0"}).encode(), "application/json")


def restored(registry: Registry, backup: Path, root: Path) -> Registry:
    copy = registry.restored(root)
    copy.admin("restore", str(backup))
    return copy


def test_a_registry_restored_from_a_backup_made_under_load_serves_the_same(registry: Registry, tmp_path: Path) -> None:
    publish(registry)
    writers = [Writer(registry, registry.create(f"load-{i}"), i) for i in range(3)]
    for writer in writers:
        writer.start()
    time.sleep(1)
    before = [len(writer.acknowledged) for writer in writers]
    wrote = json.loads(registry.admin("backup", str(tmp_path / "backup.tar"), "--json"))
    time.sleep(0.2)
    for writer in writers:
        writer.stopped.set()
    for writer in writers:
        writer.join()
        assert not writer.unexpected, writer.unexpected
    assert wrote["repositories"] == 4
    assert min(before) > 0
    with restored(registry, tmp_path / "backup.tar", tmp_path / "restored") as copy:
        for writer, count in zip(writers, before, strict=True):
            writer.acknowledged = writer.acknowledged[:count]  # of later ones it has some; restore checked them
            check_acknowledged(copy, writer)
            check_store(copy, writer.repository)
        pulls = [Client(tmp_path / f"home-{i}", url) for i, url in enumerate((registry.endpoint, copy.endpoint))]
        first, second = (snapshot_files(pull("pull", "trusted/demo@^1.1").path) for pull in pulls)
        assert first == second
        assert first["build/torch-universal/big.bin"] == PACKAGE["big.bin"]
        name = copy.create("new")  # accounts and tokens are there
        connection = http.client.HTTPConnection("127.0.0.1", copy.port, timeout=20)
        Writer(copy, name, 5).commit(connection, "main", "big.bin", PACKAGE["big.bin"], by_lfs=True)
    objects = [p for p in (copy.root / "objects").rglob("*") if p.is_file()]
    assert all(p.stat().st_nlink > 1 for p in objects)  # owners share the bytes


def test_a_damaged_backup_is_refused_and_leaves_nothing(registry: Registry, tmp_path: Path) -> None:
    publish(registry)
    backup, root = tmp_path / "backup.tar", tmp_path / "restored"
    registry.admin("backup", str(backup))
    whole = bytearray(backup.read_bytes())
    at = whole.index(PACKAGE["big.bin"][:64]) + 1_000_000
    whole[at] ^= 1
    for damaged in (whole, backup.read_bytes()[: len(whole) // 2]):
        (tmp_path / "damaged.tar").write_bytes(damaged)
        with pytest.raises(subprocess.CalledProcessError) as error:
            restored(registry, tmp_path / "damaged.tar", root)
        assert error.value.returncode == 6
        assert "damaged.tar is not a whole backup" in error.value.stderr
        assert "hint: use another one" in error.value.stderr
        assert sorted(p.name for p in tmp_path.iterdir()) == ["backup.tar", "damaged.tar", "root"]


def test_a_killed_backup_or_restore_leaves_nothing_half(registry: Registry, tmp_path: Path) -> None:
    moments = random.Random(6)
    publish(registry)
    backup, root, copy = tmp_path / "backup.tar", tmp_path / "restored", registry.restored(tmp_path / "restored")
    for _ in range(ROUNDS):
        run_and_kill(registry, ["backup", str(backup)], moments.uniform(0.005, 0.15))
        if backup.exists():  # then it is whole
            registry.restored(tmp_path / "once").admin("restore", str(backup))
            shutil.rmtree(tmp_path / "once")
            backup.unlink()
    registry.admin("backup", str(backup))
    for _ in range(ROUNDS):
        run_and_kill(copy, ["restore", str(backup)], moments.uniform(0.005, 0.15))
        if root.exists():
            assert registry.restored(root).admin("user", "list").split() == ["alice", "bob"]
            check_store(copy, "trusted/demo")
            shutil.rmtree(root)
    copy.admin("restore", str(backup))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["backup.tar", "restored", "root"]
    assert not (registry.root / "housekeeping").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give the folder to somebody else")
def test_another_user_than_the_servers_is_refused(registry: Registry) -> None:
    os.chown(registry.root, 65534, -1)
    with pytest.raises(subprocess.CalledProcessError) as error:
        gc(registry)
    assert error.value.returncode == 2
    assert "belongs to the user with the id 65534, and this one has the id 0" in error.value.stderr


def test_two_at_once_are_one_too_many(registry: Registry) -> None:
    with open(registry.root / "housekeeping.lock", "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(subprocess.CalledProcessError) as error:
            gc(registry)
    assert error.value.returncode == 8
    assert "another gc or backup works on" in error.value.stderr
