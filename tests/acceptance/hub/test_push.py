"""kernels new, build, push, lock, key: the built command against the stub hub."""

import json
import os
import pathlib
import re
import shutil
import subprocess

from pushing import set_version
from registry import KERNELS
from stub import variant


def test_a_new_package_builds_and_its_test_passes(new_package):
    build = new_package / "build"
    path = f"{pathlib.Path(KERNELS).parent}{os.pathsep}{os.environ['PATH']}"  # CMakeLists.txt asks `kernels include`
    configure = ["cmake", "-S", new_package, "-B", build]
    subprocess.run(configure, check=True, capture_output=True, env={**os.environ, "PATH": path})
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    subprocess.run(["ctest", "--test-dir", build], check=True, capture_output=True)


def test_a_package_exists_or_has_a_bad_name(start, new_package):
    hub = start()
    assert "exists" in hub.run("new", "my-scale", cwd=new_package.parent, status=8).stderr
    assert "lower-case" in hub.run("new", "My_Scale", cwd=new_package.parent, status=2).stderr


def test_push_makes_repository_branch_tag_and_card(start, new_package):
    hub = start()
    done = hub.run("push", new_package, "--to", "alice/scale")
    refs = hub.refs("alice/scale")
    assert done.stdout == f"alice/scale@0.1.0 {refs['v0']}\n"
    assert refs["0.1.0"] == refs["v0"] != refs["main"]
    tree = hub.tree("alice/scale", "v0")
    built = new_package / "build" / "kernel-package"
    local = {str(p.relative_to(built)) for p in built.rglob("*") if p.is_file()}
    assert local == {path for path in tree if path not in ("README.md", ".gitattributes")}
    header = "build/neuron-header/include/my_scale/scale.hpp"
    assert hub.content("alice/scale", "0.1.0", header) == (new_package / "include/my_scale/scale.hpp").read_bytes()
    card = hub.content("alice/scale", "main", "README.md").decode()
    assert card.startswith("---\nlibrary_name: kernels\n") and "kernels pull alice/scale@^0.1" in card
    metadata = json.loads(hub.content("alice/scale", "v0", "build/neuron-header/metadata.json"))
    assert (metadata["name"], metadata["version"], metadata["package-version"]) == ("my-scale", 0, "0.1.0")


def test_a_second_push_sends_nothing(start, new_package):
    hub = start()
    first = hub.json("push", new_package, "--to", "alice/scale")
    assert first["changed"] and first["tagged"] and first["card_changed"]
    hub.stub.clear()
    second = hub.json("push", new_package, "--to", "alice/scale")
    assert second == {**first, "changed": False, "tagged": False, "card_changed": False, "sent": [], "gone": []}
    assert all(method == "GET" for method, _ in hub.requests()) and len(hub.requests()) <= 3


def test_a_published_version_does_not_change(start, new_package):
    hub = start()
    commit = hub.json("push", new_package, "--to", "alice/scale")["commit"]
    extra = new_package / "include" / "my_scale" / "extra.hpp"
    extra.write_text("#pragma once\n")
    refused = hub.run("push", new_package, "--to", "alice/scale", status=8).stderr
    assert "is published" in refused and "raise the version" in refused
    assert hub.refs("alice/scale")["v0"] == commit
    set_version(new_package, "0.2.0")
    assert hub.json("push", new_package, "--to", "alice/scale")["tag"] == "0.2.0"
    extra.unlink()
    set_version(new_package, "0.3.0")
    third = hub.json("push", new_package, "--to", "alice/scale")
    assert third["gone"] == ["build/neuron-header/include/my_scale/extra.hpp"]
    set_version(new_package, "0.2.1")
    assert "0.3.0" in hub.run("push", new_package, "--to", "alice/scale", status=8).stderr
    refs = hub.refs("alice/scale")
    assert refs["0.1.0"] == commit and refs["0.3.0"] == refs["v0"] == third["commit"]
    assert "build/neuron-header/include/my_scale/extra.hpp" in hub.tree("alice/scale", "0.2.0")


def test_other_variants_stay_and_a_new_branch_drops_what_main_had(start, new_package):
    hub = start()
    other = variant("torch-universal", {"__init__.py": b"x = 1\n"})
    hub.stub.publish("alice/scale", other, branch="main")
    hub.run("push", new_package, "--to", "alice/scale")
    assert not [path for path in hub.tree("alice/scale", "v0") if "torch-universal" in path]
    hub.stub.publish("alice/scale", other, branch="v0")
    set_version(new_package, "0.2.0")
    hub.run("push", new_package, "--to", "alice/scale")
    assert [path for path in hub.tree("alice/scale", "v0") if "torch-universal" in path]


def test_dry_run_lists_files_and_sizes_and_asks_no_server(start, new_package):
    hub = start()
    done = hub.run("push", new_package, "--to", "alice/scale", "--dry-run", env={"HF_TOKEN": None})
    size = (new_package / "include/my_scale/scale.hpp").stat().st_size
    assert re.search(rf"(?m)^ +{size}  v0  build/neuron-header/include/my_scale/scale.hpp$", done.stdout)
    assert re.search(r"(?m)^ +\d+  main  README.md$", done.stdout)
    plan = hub.json("push", new_package, "--to", "alice/scale", "--dry-run")
    assert sum(file["size"] for file in plan["files"]) == plan["bytes"]
    assert hub.requests() == []


def test_a_failing_store_leaves_the_branch_alone(start, new_package):
    hub = start()
    (new_package / "include" / "table.bin").write_bytes(os.urandom(100_000))
    hub.stub.fault({"path": "/_lfs/verify/", "method": "POST", "action": "status", "status": 422, "times": 1})
    failed = hub.run("push", new_package, "--to", "alice/scale", status=1)
    assert "table.bin" in failed.stderr
    assert "0.1.0" not in hub.refs("alice/scale")
    assert "kernel.toml" not in hub.tree("alice/scale", "v0")
    hub.run("push", new_package, "--to", "alice/scale")


def test_a_dropped_upload_is_sent_again(start, new_package):
    hub = start()
    (new_package / "include" / "table.bin").write_bytes(os.urandom(100_000))
    hub.stub.fault({"path": "/_lfs/put/", "method": "PUT", "action": "status", "status": 503, "times": 2})
    hub.run("push", new_package, "--to", "alice/scale")
    assert "0.1.0" in hub.refs("alice/scale")


def test_empty_files_are_regular_and_come_back_empty(start, new_package):
    """S-PUSH-01"""
    hub = start("--upload-mode", "lfs")
    for name in ("__init__.py", "zero.bin"):
        (new_package / "include" / name).write_bytes(b"")
    hub.run("push", new_package, "--to", "alice/scale")
    tree = hub.tree("alice/scale", "v0")
    for name in ("__init__.py", "zero.bin"):
        entry = tree[f"build/neuron-header/include/{name}"]
        assert entry["size"] == 0 and "lfs" not in entry
        assert hub.content("alice/scale", "v0", f"build/neuron-header/include/{name}") == b""


def test_what_is_no_source_stays_at_home(start, new_package):
    """S-PUSH-02: .git, .env and products are not sent, a link is refused."""
    hub = start()
    include = new_package / "include"
    (include / ".git").mkdir()
    (include / ".git" / "config").write_text("secret")
    (include / ".env").write_text("TOKEN=secret")
    (include / "a.o").write_bytes(b"\x7fELF")
    (include / "__pycache__").mkdir()
    (include / "__pycache__" / "a.pyc").write_bytes(b"")
    hub.run("push", new_package, "--to", "alice/scale")
    paths = " ".join(hub.tree("alice/scale", "v0"))
    assert not any(word in paths for word in (".git/", ".env", ".o ", "__pycache__"))
    (include / "link").symlink_to("/etc/hostname")
    set_version(new_package, "0.2.0")
    hub.stub.clear()
    refused = hub.run("push", new_package, "--to", "alice/scale", status=2).stderr
    assert "link is a link" in refused and hub.requests() == []


def test_a_file_that_cannot_be_read_is_an_error_before_any_request(start, new_package, tmp_path):
    """S-PUSH-02: an unreadable file."""
    hub = start()
    secret = new_package / "include" / "secret.hpp"
    secret.write_text("x")
    secret.chmod(0)
    more = {}
    if os.getuid() == 0:  # to whom nothing is unreadable
        program = shutil.copy(KERNELS, tmp_path / "kernels")
        os.chmod(program, 0o755)
        for folder in (tmp_path, new_package):
            os.chmod(folder, 0o777)
        for folder in tmp_path.parents:
            if folder.stat().st_uid == 0 and folder.name.startswith("pytest"):
                os.chmod(folder, 0o755)
        more = {"user": 65534, "group": 65534, "executable": str(program)}
    failed = hub.run("push", new_package, "--to", "alice/scale", "--into", tmp_path / "staged", status=9, **more)
    assert "secret.hpp" in failed.stderr and hub.requests() == []


def test_keys_are_private_and_signatures_are_required(start, new_package):
    hub = start()
    assert "kernels key new" in hub.run("push", new_package, "--to", "alice/scale", "--sign", status=4).stderr
    key = hub.run("key", "new").stdout.strip()
    stored = pathlib.Path(hub.env["HOME"]) / ".config" / "kernels" / "keys" / "default.key"
    assert stored.stat().st_mode & 0o777 == 0o600
    result = hub.json("push", new_package, "--to", "alice/scale", "--sign")
    assert "signatures/neuron-header.json" in result["sent"]
    pull = ("pull", "alice/scale@0.1.0", "--variant", "neuron-header", "--require-signature")
    refused = hub.run(*pull, status=6).stderr
    assert f"kernels key trust alice {key}" in refused
    hub.run("key", "trust", "alice", key)
    hub.run(*pull)
    listed = hub.json("key", "list")
    assert listed["own"][0]["key"] == listed["trusted"][0]["key"] == key
    unsigned = hub.json("push", new_package, "--to", "alice/scale", "--retag")
    assert unsigned["gone"] == ["signatures/neuron-header.json"]


def test_lock_resolves_pins_and_stays(start, new_package):
    hub = start()
    for version, needs in (("1.0.0", {}), ("1.2.0", {"alice/base": "^1"}), ("2.0.0", {"alice/base": "^2"})):
        files = variant("neuron-header", {"a.hpp": version.encode()}, dependencies=needs)
        hub.stub.publish("alice/mid", files, branch=f"v{version[0]}", tag=version)
    for version in ("1.5.0", "2.1.0"):
        files = variant("neuron-header", {"b.hpp": version.encode()})
        hub.stub.publish("alice/base", files, branch=f"v{version[0]}", tag=version)
    manifest = new_package / "kernel.toml"
    text = manifest.read_text()
    manifest.write_text(text + '"alice/mid" = "^1"\n')
    hub.run("lock", new_package, "--locked", status=2)
    hub.run("lock", new_package)
    lock = json.loads((new_package / "kernel.lock").read_text())
    assert [(p["repository"], p["version"]) for p in lock["packages"]] == [
        ("alice/base", "1.5.0"),
        ("alice/mid", "1.2.0"),
    ]
    assert lock["packages"][1]["commit"] == hub.refs("alice/mid")["1.2.0"]
    assert all(re.match("(git-sha1|sha256):", d) for p in lock["packages"] for d in p["files"].values())
    before = (new_package / "kernel.lock").read_bytes()
    hub.stub.clear()
    assert hub.json("lock", new_package, "--frozen")["written"] is False
    assert hub.requests() == []
    files = variant("neuron-header", {"b.hpp": b"newer"})
    hub.stub.publish("alice/base", files, branch="v1", tag="1.6.0")
    hub.run("lock", new_package)
    assert (new_package / "kernel.lock").read_bytes() == before
    hub.run("lock", new_package, "--upgrade")
    assert b"1.6.0" in (new_package / "kernel.lock").read_bytes()
    manifest.write_text(text + '"alice/mid" = "^1.1"\n"alice/base" = "^2"\n')
    conflict = hub.run("lock", new_package, status=7).stderr
    assert "alice/base" in conflict and "^1 by alice/mid 1.2.0 (^1.1 by this package)" in conflict
