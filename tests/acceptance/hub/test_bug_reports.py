"""Bug reports of other clients, by the name of their row; this file has those that need a rule of their own.

S-HUB-01 to 16, 24, 25   hubfault.py, run by test_hubfault.py
S-SRV-01, 02             srvprobe.py, run by conformance.py
S-PUSH-01, 02            test_push.py
S-CFG-01 to 04           tests/hub/test_hub_toml.cpp and test_hub_manifest.cpp
S-MOD-01                 test_package_use.py
S-HUB-17                 the pain E2 in test_pains.py; S-HUB-19 and 20 are also E3, E16, E17, E18 and E24
"""

import base64
import io
import json
import os
import pathlib
import subprocess
import tarfile
import time
import urllib.request

import pytest
from pulling import CODE, Client, downloads, snapshot_files
from registry import KERNELS, Registry
from shims import NO_LINKS, NO_LOCKS
from stub import TOKEN, variant

GIB = 1 << 30
LARGE_BYTES = 4 * GIB + 3
LARGE_SHA256 = "e46cc0e75439b5899523a9f2f8bbb5e844886cd19a6afcead17cfaa0123f253f"  # of markers()


def test_s_hub_18_links_are_relative_across_file_systems(hub, kernels, package, tmp_path):
    """The cache moves to another place, and to a file system other than that of the files that are asked for."""
    name, files = package
    kernels("pull", f"{name}@1")
    links = [p for p in kernels.repo(name).rglob("*") if p.is_symlink()]
    assert len(links) == 4 and not [p for p in links if os.readlink(p).startswith("/") or not p.exists()]
    moved = tmp_path / "elsewhere" / "deeper" / "hub"
    moved.parent.mkdir(parents=True)
    kernels.cache.rename(moved)
    other = pathlib.Path("/dev/shm") / f"kernels-{os.getpid()}"
    assert os.stat("/dev/shm").st_dev != os.stat(tmp_path).st_dev
    try:
        subprocess.run(["cp", "-a", moved, other], check=True)
        for cache in (moved, other):
            assert not [p for p in cache.rglob("*") if p.is_symlink() and not p.exists()]
            out = tmp_path / f"out-{cache.name}"
            assert kernels("pull", f"{name}@1", "--offline", "--cache", cache, "--dir", out).code == 0
            assert (out / "build/torch-universal/big.bin").read_bytes() == files["big.bin"]
    finally:
        subprocess.run(["rm", "-rf", other], check=True)


def test_s_hub_19_no_locks_is_one_warning_and_right_files(hub, kernels, shim):
    name = "trusted/no-locks"
    files = {f"{i}.bin": os.urandom(1_500_000) for i in range(3)}
    hub.publish(name, variant("neuron-header", files))
    run = kernels("pull", f"{name}@1", env={"LD_PRELOAD": shim("no_locks", NO_LOCKS)})
    assert run.err == (
        "note: this cache's file system has no locks; pulls at the same time may download a file twice\n"
    )
    held = snapshot_files(run.path / "build/neuron-header")
    assert {file: held[file] for file in files} == files
    begin = time.monotonic()
    assert kernels("pull", f"{name}@1").err == ""
    assert time.monotonic() - begin < 10


def test_s_hub_20_no_links_is_one_warning_and_plain_files(hub, kernels, shim):
    name = "trusted/no-links"
    hub.publish(name, variant("neuron-header", {"a.hpp": b"a", "b.hpp": b"b"}))
    env = {"LD_PRELOAD": shim("no_links", NO_LINKS)}
    run = kernels("pull", f"{name}@1", env=env)
    assert run.err == (
        "note: this cache's file system has no symbolic links; each version of a package gets files of its own\n"
    )
    assert not [p for p in kernels.repo(name).rglob("*") if p.is_symlink()]
    assert sorted(p.name for p in run.path.rglob("*.hpp")) == ["a.hpp", "b.hpp"]
    hub.clear()
    again = kernels("pull", f"{name}@1", env=env)
    assert (again.path, again.err, downloads(hub)) == (run.path, "", [])
    kernels("cache", "rm", name)
    wanted = {"HF_HUB_DISABLE_SYMLINKS": "1"}, {**env, "HF_HUB_DISABLE_SYMLINKS_WARNING": "1"}
    for asked_for in wanted:
        assert kernels("pull", f"{name}@1", env=asked_for).err == ""
        kernels("cache", "rm", name)


def markers(path, size=LARGE_BYTES):
    """A file that takes no space: byte i * 2^30 is i, all others 0."""
    with path.open("wb") as file:
        file.truncate(size)
        for at in range(0, size, GIB):
            file.seek(at)
            file.write(bytes([at // GIB]))
    return path


def publish_object(registry, name, path, file, digest):
    """A commit with `file` at `path`, which is linked to where the registry keeps objects instead of being sent."""

    def post(target, body, kind="application/json"):
        headers = {"Authorization": f"Bearer {registry.writer}", "Content-Type": kind}
        urllib.request.urlopen(urllib.request.Request(registry.endpoint + target, body, headers), timeout=60).read()

    owner, short = name.split("/")
    post("/api/repos/create", json.dumps({"name": short, "organization": owner, "type": "kernel"}).encode())
    stored = registry.root / "objects" / digest[:2] / digest
    owned = registry.root / "repos" / "kernels" / f"{name}.git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest
    for link in (stored, owned):
        link.parent.mkdir(parents=True, exist_ok=True)
        os.link(file, link)
    lines = [{"key": "header", "value": {"summary": "large"}}]
    for small_path, data in variant("neuron-header", {}).items():
        value = {"path": small_path, "content": base64.b64encode(data).decode(), "encoding": "base64"}
        lines.append({"key": "file", "value": value})
    lfs = {"path": path, "algo": "sha256", "oid": digest, "size": file.stat().st_size}
    lines.append({"key": "lfsFile", "value": lfs})
    body = "\n".join(map(json.dumps, lines)).encode()
    post(f"/api/kernels/{name}/commit/main", body, "application/x-ndjson")


def test_s_hub_21_more_than_four_gib(tmp_path):
    """Cut just before and just after 4 GiB, a pull goes on there; lengths have 64 bits in client and registry."""
    path = "build/neuron-header/large.bin"
    with Registry(KERNELS, tmp_path / "root") as registry:
        publish_object(registry, "alice/large", path, markers(registry.root / "large"), LARGE_SHA256)
        address = f"{registry.endpoint}/kernels/alice/large/resolve/main/{path}"
        request = urllib.request.Request(address, headers={"Range": "bytes=4294967297-"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.headers["Content-Range"] == "bytes 4294967297-4294967298/4294967299"
            assert answer.read() == b"\0\0"
        for cut in (4 * GIB - 1, 4 * GIB + 1):
            kernels = Client(tmp_path / f"home-{cut}", registry.endpoint)
            blobs = kernels.repo("alice/large") / "blobs"
            blobs.mkdir(parents=True)
            partial = blobs / f"{LARGE_SHA256}.00000000-1-1.incomplete"  # as a process of another machine left it
            os.utime(markers(partial, cut), (0, 0))
            done = kernels("pull", "alice/large@main", "--variant", "neuron-header", "--json", timeout=300).json
            assert LARGE_BYTES - cut <= done["received"] < LARGE_BYTES - cut + 10_000  # and metadata.json
            large = pathlib.Path(done["folder"]) / "large.bin"  # its SHA-256 was checked
            assert large.stat().st_size == LARGE_BYTES


def test_s_hub_22_the_token_is_for_its_owner_alone(hub, kernels, package):
    """Also with a umask of 000. Its folder is as the umask says, since groups share a HF_HOME."""
    name, _ = package
    run = kernels("login", "--token-stdin", stdin=TOKEN + "\n", umask=0)
    assert run.code == 0 and TOKEN not in run.out + run.err
    assert (kernels.home / "token").stat().st_mode & 0o777 == 0o600
    token = "hf_" + "a1" * 17
    hub.fault({"path": "/refs", "action": "status", "status": 500, "body": f"no right for {token}", "times": 99})
    env = {"HF_TOKEN": token, "HF_DEBUG": "1", "HF_HUB_VERBOSITY": "debug"}
    failed = kernels("pull", f"{name}@1", "--retries", "0", env=env)
    assert failed.code == CODE["network"] and "no right for hf_..." in failed.err
    assert token not in failed.out + failed.err
    hub.clear()
    done = kernels("pull", f"{name}@1", "--json", env={"HF_TOKEN": TOKEN, "HF_DEBUG": "1"})
    assert done.code == 0 and TOKEN not in done.out + done.err
    assert any(entry["req"].get("authorization") == f"Bearer {TOKEN}" for entry in hub.log())


def evil_archive():
    """A link to outside and a file behind it, a hard link out, a program that runs as its owner, a pipe."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, kind, target, mode in (
            ("a", tarfile.SYMTYPE, "/tmp", 0o777),
            ("a/evil", tarfile.REGTYPE, "", 0o644),
            ("b", tarfile.LNKTYPE, "../../x", 0o644),
            ("c", tarfile.REGTYPE, "", 0o4755),
            ("d", tarfile.FIFOTYPE, "", 0o644),
        ):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.mode = kind, target, mode
            archive.addfile(entry)
    return data.getvalue()


@pytest.mark.parametrize("option", [[], ["--dir"]])
def test_s_hub_23_archives_stay_archives(hub, kernels, tmp_path, option):
    name, data = "trusted/archive", evil_archive()
    hub.publish(name, variant("neuron-header", {"evil.tar": data}))
    option = [*option, tmp_path / "out"] if option else []
    folder = kernels("pull", f"{name}@1", "--variant", "neuron-header", *option).path
    folder = folder if option else folder / "build/neuron-header"
    held = {str(p.relative_to(folder)): p.stat().st_mode & 0o7111 for p in folder.rglob("*")}
    assert held == {"evil.tar": 0, "metadata.json": 0}
    assert (folder / "evil.tar").read_bytes() == data
    assert not pathlib.Path("/tmp/evil").exists()
