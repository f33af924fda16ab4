"""`kernels pull` against a hub with faults. E1 to E28 are pains of users of real clients, by their number in the fact
sheet of the protocol; each test replays one. Those of `kernels push` are in test_pains_push.py, E27 is in
test_package_use.py."""

import os
import pathlib
import subprocess
import sys
import time

import pytest
from front import Front
from pulling import CODE, Client, content, downloads, python_can, snapshot_files
from shims import EMPTY_LOCKS, FULL_DISK, NO_LINKS, NO_LOCKS
from stub import TOKEN, Stub, variant


@pytest.mark.skipif(not python_can("kernels"), reason="needs the Python package kernels")
def test_e01_python_loads_it_offline(hub, kernels, package):
    name, _ = package
    kernels("pull", f"{name}@1")
    code = f"import kernels; print(kernels.get_kernel({name!r}, version=1).VALUE)"
    env = kernels.environment(HF_HUB_OFFLINE="1", HF_ENDPOINT="http://127.0.0.1:9")
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.strip() == "1", done.stderr


def test_e02_unreachable_hub_and_full_cache(hub, kernels, package):
    name, _ = package
    path = kernels("pull", f"{name}@1").path
    begin = time.monotonic()
    run = kernels("pull", f"{name}@1", "--endpoint", "http://127.0.0.1:9")
    assert run.path == path
    assert "using the cached copy" in run.err
    assert time.monotonic() - begin < 2
    missing = kernels("pull", "trusted/never@1", "--endpoint", "http://127.0.0.1:9", "--retries", "0")
    assert missing.code == CODE["network"]
    assert "127.0.0.1:9" in missing.err


def make_public(path):
    """Lets another user through to a folder of pytest's."""
    for folder in [path, *path.parents]:
        if folder.stat().st_uid == os.geteuid() and folder != pathlib.Path("/tmp"):
            folder.chmod(folder.stat().st_mode | 0o055)


@pytest.mark.parametrize("offline", [False, True])
def test_e02_read_only_cache(hub, kernels, package, offline):
    """S-HUB-17"""
    name, _ = package
    path = kernels("pull", f"{name}@1").path
    user = {"user": 65534, "group": 65534} if os.geteuid() == 0 else {}
    if user:
        make_public(kernels.home)
    subprocess.run(["chmod", "-R", "a-w,a+rX", kernels.home], check=True)
    try:
        extra = ["--offline"] if offline else []
        assert kernels("pull", f"{name}@1", *extra, **user).path == path
        hub.publish("trusted/other", variant("torch-universal", {"__init__.py": b"1"}))
        run = kernels("pull", "trusted/other@1", **user)
        assert run.code == CODE["storage"]
        assert "read-only" in run.err
    finally:
        subprocess.run(["chmod", "-R", "u+w", kernels.home], check=True)


def kill_at_half(hub, kernels, name, size):
    """Starts a pull of `name`, whose big.bin stops at its half, and kills it while it waits for the rest."""
    data = content(size, name)
    hub.publish(name, variant("torch-universal", {"big.bin": data}))
    hub.fault(
        {"path": "big.bin", "action": "drop", "after": size // 2},
        {"path": "big.bin", "action": "delay", "seconds": 60},
    )
    process = kernels.start("pull", f"{name}@1")
    try:
        for _ in range(200):
            if sum(1 for path, _ in downloads(hub) if "big.bin" in path) >= 1:
                break
            time.sleep(0.05)
        time.sleep(1.0)  # it waits for the answer to its second request
    finally:
        process.kill()
        process.wait()
    return data


def test_e03_resumes_after_kill(hub, kernels):
    """S-HUB-19: kill -9, then again"""
    name, size = "trusted/resume", 20_000_000
    data = kill_at_half(hub, kernels, name, size)
    assert any(".incomplete" in blob for blob in kernels.blobs(name))
    hub.clear()
    path = kernels("pull", f"{name}@1").path
    assert (path / "build/torch-universal/big.bin").read_bytes() == data
    assert sum(announced for _, announced in downloads(hub)) <= 0.55 * size
    assert not any(".incomplete" in blob for blob in kernels.blobs(name))


def test_e03_damaged_partial_is_fetched_anew(hub, kernels):
    name = "trusted/damaged-partial"
    data = kill_at_half(hub, kernels, name, 2_000_000)
    (partial,) = [p for p in (kernels.repo(name) / "blobs").iterdir() if p.suffix == ".incomplete"]
    with partial.open("r+b") as file:
        file.write(b"damage")
    hub.clear()
    path = kernels("pull", f"{name}@1").path
    assert (path / "build/torch-universal/big.bin").read_bytes() == data


def test_e04_connection_that_breaks_three_times(hub, kernels, package):
    name, files = package
    size = len(files["big.bin"])
    for part in (0.9, 0.09, 0.009):
        hub.fault({"path": "big.bin", "action": "drop", "after": int(part * size)})
    path = kernels("pull", f"{name}@1").path
    assert (path / "build/torch-universal/big.bin").read_bytes() == files["big.bin"]
    tried = [request for request in downloads(hub) if "big.bin" in request[0]]
    assert len(tried) == 4
    assert sum(announced for _, announced in tried) < 1.2 * size


def test_e04_short_content_length(hub, kernels, package):
    name, _ = package
    hub.fault({"path": "big.bin", "action": "status", "status": 200, "body": "short", "times": 9})
    run = kernels("pull", f"{name}@1")
    assert run.code == CODE["integrity"]
    assert "sends 5 bytes, the listing says 4000000" in run.err
    assert not any(len(blob) == 64 for blob in kernels.blobs(name))


def test_e05_corrupt_body(hub, kernels, package):
    name, _ = package
    hub.fault({"path": "big.bin", "action": "corrupt"})
    run = kernels("pull", f"{name}@1")
    assert run.code == CODE["integrity"]
    assert "checksum mismatch" in run.err
    assert not any(len(blob) == 64 or ".incomplete" in blob for blob in kernels.blobs(name))


def test_e05_corrupt_cache(hub, kernels, package):
    name, files = package
    path = kernels("pull", f"{name}@1").path
    blob = (path / "build/torch-universal/big.bin").resolve()
    with blob.open("r+b") as file:
        file.seek(1000)
        file.write(b"\xff\x00")
    for command in (["verify", f"{name}@1"], ["cache", "verify"], ["pull", f"{name}@1", "--offline"]):
        run = kernels(*command)
        assert run.code == CODE["integrity"]
        assert "checksum mismatch" in run.out + run.err
    run = kernels("pull", f"{name}@1")
    assert run.path == path
    assert "damaged" in run.err
    assert blob.read_bytes() == files["big.bin"]
    assert kernels("verify", f"{name}@1").code == 0


def test_e06_mirror_that_says_size_0_in_head(hub, kernels, package):
    name, files = package
    hub.fault({"method": "HEAD", "path": ".", "action": "status", "status": 200, "body": "", "times": 99})
    path = kernels("pull", f"{name}@1").path
    assert (path / "build/torch-universal/big.bin").read_bytes() == files["big.bin"]


def old_and_new(hub, name):
    old = {"torch212-cxx11-cu130-x86_64-linux": "cu130", "torch212-cpu-x86_64-linux": "cpu"}
    tree = {}
    for folder in old:
        tree.update(variant(folder, {"__init__.py": b"1"}))
    hub.publish(name, tree)
    hub.publish(name, variant("torch213-cpu-x86_64-linux", {"__init__.py": b"2"}), branch="v2")


def test_e07_every_variant_with_its_reason(hub, kernels):
    old_and_new(hub, "trusted/reasons")
    run = kernels("pull", "trusted/reasons@1", "--torch", "2.13", "--backend", "cpu", "--arch", "x86_64")
    assert run.code == CODE["incompatible"]
    reason = "Torch version (2.12) does not match environment Torch version (2.13)"
    assert f"torch212-cxx11-cu130-x86_64-linux: {reason}" in run.err
    assert f"torch212-cpu-x86_64-linux: {reason}" in run.err


def test_e08_suggests_the_version_that_fits(hub, kernels):
    old_and_new(hub, "trusted/newer")
    run = kernels("pull", "trusted/newer@1", "--torch", "2.13", "--backend", "cpu", "--arch", "x86_64")
    assert run.code == CODE["incompatible"]
    assert "version v2 of trusted/newer has a build that is compatible" in run.err


def test_e09_variant_without_metadata(hub, kernels):
    hub.publish("trusted/bare", {"build/torch-universal/__init__.py": b"1"})
    run = kernels("pull", "trusted/bare@1")
    assert run.code == CODE["integrity"]
    assert "build/torch-universal/metadata.json" in run.err and "variant torch-universal" in run.err
    assert "publish it again" in run.err
    assert kernels("pull", "trusted/bare@1", "--all").code == 0


def test_e10_stable_abi_is_taken(hub, kernels):
    hub.publish("trusted/stable", variant("torch-stable-abi29-cu130-x86_64-linux", {"__init__.py": b"1"}))
    platform = ["--torch", "2.13", "--backend", "cu130", "--arch", "x86_64"]
    done = kernels("pull", "trusted/stable@1", "--json", *platform).json
    assert done["variant"] == "torch-stable-abi29-cu130-x86_64-linux"


def test_e11_device_it_was_not_built_for(hub, kernels):
    files = {"__init__.py": b"1", "code.so": content(200_000, "so")}
    backend = {"backend": {"type": "cuda", "archs": ["9.0a"]}}
    hub.publish("trusted/hopper", variant("torch-stable-abi29-cu130-x86_64-linux", files, **backend))
    platform = ["--torch", "2.13", "--backend", "cu130", "--arch", "x86_64"]
    run = kernels("pull", "trusted/hopper@1", *platform, "--device", "7.5")
    assert run.code == CODE["incompatible"]
    assert "9.0a; this machine has 7.5" in run.err
    assert [path.rsplit("/", 1)[1] for path, _ in downloads(hub)] == ["metadata.json"]
    assert kernels("pull", "trusted/hopper@1", *platform, "--device", "9.0").code == 0


def test_e12_exists_as_a_model(hub, kernels):
    hub.publish("trusted/model-only", {"build/torch-universal/__init__.py": b"1"}, kind="model")
    run = kernels("pull", "trusted/model-only@1")
    assert run.code == CODE["not_found"]
    assert "exists as a model, not as a kernel" in run.err


def test_e14_without_a_version(hub, kernels):
    old_and_new(hub, "trusted/versionless")
    run = kernels("pull", "trusted/versionless")
    assert run.code == CODE["usage"]
    assert "versions: v2, v1" in run.err
    assert run.out == ""


def test_e16_stale_lock_and_no_locks(hub, kernels, package, shim):
    name, _ = package
    locks = kernels.cache / ".locks" / kernels.repo(name).name
    path = kernels("pull", f"{name}@1").path
    assert list(locks.glob("*.lock"))  # as any client leaves them
    kernels("cache", "rm", name)
    locks.mkdir(parents=True, exist_ok=True)
    for entry in hub.request("GET", f"/api/kernels/{name}/tree/{path.name}?recursive=true"):
        (locks / (entry.get("lfs", entry)["oid"] + ".lock")).touch()
    begin = time.monotonic()
    assert kernels("pull", f"{name}@1").path == path
    kernels("cache", "rm", name)
    assert kernels("pull", f"{name}@1", env={"LD_PRELOAD": shim("no_locks", NO_LOCKS)}).path == path
    assert time.monotonic() - begin < 5


@pytest.mark.parametrize("locks", ["real", "empty"])
def test_e17_eight_pulls_at_once(hub, kernels, package, shim, locks):
    name, files = package
    env = {"LD_PRELOAD": shim("empty_locks", EMPTY_LOCKS)} if locks == "empty" else {}
    processes = [kernels.start("pull", f"{name}@1", env=env) for _ in range(8)]
    assert [process.wait(60) for process in processes] == [0] * 8
    assert kernels("verify", f"{name}@1").code == 0
    path = kernels("pull", f"{name}@1", "--offline").path
    assert (path / "build/torch-universal/big.bin").read_bytes() == files["big.bin"]
    assert not any(".incomplete" in blob for blob in kernels.blobs(name))
    if locks == "real":
        assert len([1 for request, _ in downloads(hub) if "big.bin" in request]) == 1


@pytest.mark.parametrize("how", ["refused", "HF_HUB_DISABLE_SYMLINKS"])
def test_e18_no_links(hub, kernels, package, shim, how):
    name, files = package
    env = {"LD_PRELOAD": shim("no_links", NO_LINKS)} if how == "refused" else {how: "1"}
    path = kernels("pull", f"{name}@1", env=env).path
    assert not any(p.is_symlink() for p in path.rglob("*"))
    assert (path / "build/torch-universal/big.bin").read_bytes() == files["big.bin"]
    hub.clear()
    assert kernels("pull", f"{name}@1", env=env).path == path
    assert not downloads(hub)
    assert not any(".incomplete" in blob for blob in kernels.blobs(name))


def test_e19_full_disk(hub, kernels, package, shim):
    name, _ = package
    run = kernels("pull", f"{name}@1", env={"LD_PRELOAD": shim("full_disk", FULL_DISK)})
    assert run.code == CODE["storage"]
    assert "No space left on device" in run.err
    assert not any(len(blob) == 64 or ".incomplete" in blob for blob in kernels.blobs(name))


def test_e20_rate_limit(hub, kernels):
    name = "trusted/many"
    hub.publish(name, variant("torch-universal", {f"f{i}.txt": b"%d" % i for i in range(12)}))
    limit = {"action": "status", "status": 429, "headers": {"RateLimit": '"api";r=0;t=2'}}
    hub.fault({"path": "f5.txt", **limit}, {"path": "f10.txt", **limit})
    begin = time.monotonic()
    assert kernels("pull", f"{name}@1").code == 0
    assert 2 <= time.monotonic() - begin < 7
    assert len(downloads(hub)) <= 13 + 3


def test_e22_proxy(hub, kernels, package):
    name, _ = package
    with Front(hub.url) as proxy:
        for variable in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            proxy.log.clear()
            kernels("cache", "rm", name)
            assert kernels("pull", f"{name}@1", env={variable: proxy.url}).code == 0
            assert len(proxy.log) == 6
        proxy.log.clear()
        for no_proxy in ("NO_PROXY", "no_proxy"):
            env = {"http_proxy": proxy.url, no_proxy: "127.0.0.1"}
            assert kernels("pull", f"{name}@1", env=env).code == 0
        assert not proxy.log
        env = {"HTTPS_PROXY": proxy.url}
        run = kernels("versions", name, "--endpoint", "https://hub.test", "--retries", "0", env=env)
        assert run.code == CODE["network"]
        assert ("CONNECT", "hub.test:443", None) in proxy.log


def test_e22_e23_prefix_and_foreign_links(tmp_path, hub):
    pages = Stub(tmp_path / "stub", "--page-size", "5")
    try:
        files = {f"f{i}.txt": b"%d" % i for i in range(23)}
        pages.publish("trusted/paged", variant("torch-universal", files))

        def foreign(headers):
            return [(k, v.replace(pages.url, "http://hub.invalid") if k == "Link" else v) for k, v in headers]

        with Front(pages.url, "/mirror", foreign) as front:
            kernels = Client(tmp_path / "home", front.url + "/mirror/")
            path = kernels("pull", "trusted/paged@1", env={"HF_TOKEN": TOKEN}).path
            assert len(snapshot_files(path)) == 24
            assert all(target.startswith("/mirror/") for _, target, _ in front.log)
    finally:
        pages.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become two users")
def test_e24_two_users_of_one_group(hub, tmp_path):
    """S-HUB-19: locks of another user"""
    name = "trusted/group"
    hub.publish(name, variant("torch-universal", {"__init__.py": b"1"}))
    shared = tmp_path / "shared"
    shared.mkdir()
    make_public(shared)
    os.chown(shared, 1001, 2000)
    shared.chmod(0o2775)
    kernels = Client(shared, hub.url)
    first = {"user": 1001, "group": 2000, "extra_groups": [2000], "umask": 0o002}
    second = {**first, "user": 1002}
    assert kernels("pull", f"{name}@1", **first).code == 0
    hub.publish(name, variant("torch-universal", {"__init__.py": b"2"}), branch="v2")
    assert kernels("pull", f"{name}@2", **second).code == 0
    assert kernels("pull", f"{name}@1", **second).code == 0
    assert kernels("cache", "rm", f"{name}@1", **second).code == 0
    assert kernels("cache", "prune", **second).code == 0
    assert kernels("pull", f"{name}@1", **first).code == 0


def test_e25_error_page_is_no_file(hub, kernels, package):
    name, _ = package
    page = {"action": "status", "status": 500, "body": "<html>oops</html>", "times": 99}
    hub.fault({"path": "big.bin", **page})
    run = kernels("pull", f"{name}@1", "--retries", "1")
    assert run.code == CODE["network"]
    assert "HTTP 500" in run.err
    assert not any(len(blob) == 64 or ".incomplete" in blob for blob in kernels.blobs(name))


def test_e26_leftovers_of_other_clients(hub, kernels, package):
    name, _ = package
    path = kernels("pull", f"{name}@1").path
    blob = (path / "build/torch-universal/big.bin").resolve()
    blob.unlink()
    old = time.time() - 7200
    left = [
        f"{blob.name}.sync.part",
        f"{blob.name}.lock",
        f"{blob.name}.0a1b2c3d.incomplete",
        f"{blob.name}.incomplete",
    ]
    for leftover in left:
        (blob.parent / leftover).write_bytes(b"half")
        os.utime(blob.parent / leftover, (old, old))
    begin = time.monotonic()
    assert kernels("pull", f"{name}@1").path == path
    assert time.monotonic() - begin < 5
    assert not any("." in name for name in kernels.blobs(name))


@pytest.mark.parametrize("variable", ["HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY", "DO_NOT_TRACK"])
def test_e28_without_telemetry(hub, kernels, package, variable):
    name, _ = package
    assert kernels("pull", f"{name}@1", env={variable: "1"}).code == 0
    agents = {entry["req"]["user-agent"] for entry in hub.log()}
    assert len(agents) == 1
    assert "platform" not in agents.pop()
