"""What `kernels pull`, the queries, the cache commands and the accounts do against a hub without faults."""

import os
import subprocess
import sys

import pytest
from pulling import CODE, downloads, python_can, snapshot_files
from stub import OTHER_TOKEN, TOKEN, variant

# ---- what a pull is ------------------------------------------------------------------------------------------------


def test_pull_prints_the_snapshot_alone(hub, kernels, package):
    name, files = package
    run = kernels("pull", f"{name}@1")
    assert run.err == f"note: {name} has Python code; trusted is trusted by the hub\n"
    assert run.out.count("\n") == 1
    held = snapshot_files(run.path / "build/torch-universal")
    assert held.pop("metadata.json")
    assert held == files
    repo = kernels.repo(name)
    assert (repo / "refs/v1").read_text() == run.path.name
    assert not (repo / "trees").exists()
    link = os.readlink(run.path / "build/torch-universal/big.bin")
    assert link.startswith("../../../../blobs/")
    requests = [entry["path"] for entry in hub.log()]
    assert len(requests) == 3 + 3  # refs, tree, the publisher, one per file that is not empty
    assert all(entry["method"] == "GET" for entry in hub.log())


def test_pull_without_work_is_one_request(hub, kernels, package):
    name, _ = package
    first = kernels("pull", f"{name}@1").path
    hub.clear()
    assert kernels("pull", f"{name}@^1.1").path == first
    assert len(hub.log()) == 1
    hub.clear()
    assert kernels("pull", f"{name}@{first.name}").path == first
    assert hub.log() == []


@pytest.mark.parametrize("revision", ["1", "v1", "^1", "1.2", "1.2.0", "~1.2", ">=1,<2", "refs/heads/v1", "*"])
def test_revisions(hub, kernels, revision):
    name = "trusted/revisions"
    commit = hub.publish(name, variant("torch-universal", {"__init__.py": b"1"}), tag="1.2.0")
    assert kernels("pull", f"{name}@{revision}").path.name == commit


def test_ranges_take_the_highest_release(hub, kernels):
    name = "trusted/ranges"
    commits = {}
    for tag in ("1.0.0", "1.10.0", "1.9.0"):
        commits[tag] = hub.publish(name, variant("torch-universal", {"__init__.py": tag.encode()}), tag=tag)
    commits["2.0.0"] = hub.publish(name, variant("torch-universal", {"__init__.py": b"2"}), branch="v2", tag="2.0.0")
    assert kernels("pull", f"{name}@^1").path.name == commits["1.10.0"]
    assert kernels("pull", f"{name}@~1.9").path.name == commits["1.9.0"]
    assert kernels("pull", f"{name}@1").path.name == commits["1.9.0"]  # the head of v1
    run = kernels("pull", f"{name}@^3")
    assert run.code == CODE["not_found"]
    assert "v2, v1, 2.0.0, 1.10.0, 1.9.0, 1.0.0" in run.err


def test_commits_that_no_ref_names(hub, kernels):
    name = "trusted/history"
    old = hub.publish(name, variant("torch-universal", {"__init__.py": b"old"}))
    hub.publish(name, variant("torch-universal", {"__init__.py": b"new"}))
    assert kernels("pull", f"{name}@{old}").path.name == old
    assert kernels("pull", f"{name}@{old[:9]}").path.name == old
    assert kernels("pull", f"{name}@abcdef0123").code == CODE["not_found"]


def test_e29_variants_without_pytorch(hub, kernels):
    name = "trusted/header"
    tree = variant("neuron-header", {"include/scale.hpp": b"#pragma once"})
    tree.update(variant("neuron-c-aarch64-linux", {"lib/libscale.so": b"elf"}))
    tree.update(variant("torch-stable-abi210-cpu-x86_64-linux", {"__init__.py": b"1"}))
    hub.publish(name, tree)
    platform = ["--torch", "none", "--arch", "x86_64", "--backend", "cpu"]
    done = kernels("pull", f"{name}@1", "--json", *platform).json
    assert done["variant"] == "neuron-header"
    assert len(done["variants"]) == 3 and "(none)" in str(done["variants"])
    run = kernels("pull", f"{name}@1", "--variant", "header-only", "--variant-path")
    assert (run.path / "include/scale.hpp").exists()
    run = kernels("pull", f"{name}@1", "--variant", "cuda")
    assert run.code == CODE["not_found"] and "variants: neuron-c-aarch64-linux, neuron-header, torch" in run.err


def test_json_and_dry_run(hub, kernels, package):
    name, files = package
    plan = kernels("pull", f"{name}@1", "--dry-run", "--json").json
    assert set(plan["files"]) == set(files) | {"metadata.json"}
    assert plan["received"] == 0 and not kernels.blobs(name)
    done = kernels("pull", f"{name}@1", "--json").json
    assert done["bytes"] == plan["bytes"] == done["received"]
    assert done["variants"] == [{"variant": "torch-universal", "accepted": True, "reason": ""}]


def test_dir_gets_plain_files(hub, kernels, package, tmp_path):
    name, files = package
    out = tmp_path / "out"
    assert kernels("pull", f"{name}@1", "--dir", out).path == out
    held = snapshot_files(out)
    assert held["build/torch-universal/big.bin"] == files["big.bin"]
    assert not any(p.is_symlink() for p in out.rglob("*"))


def test_kernel_dependencies_are_pulled(hub, kernels):
    hub.publish("trusted/base", variant("torch-universal", {"__init__.py": b"base"}))
    needs = {"kernel-depends": [{"repo-id": "trusted/base", "version": 1}]}
    hub.publish("trusted/user", variant("torch-universal", {"__init__.py": b"user"}, **needs))
    done = kernels("pull", "trusted/user@1", "--json").json
    assert [d["repository"] for d in done["dependencies"]] == ["trusted/base"]
    assert (kernels.repo("trusted/base") / "refs/v1").exists()
    hub.publish("trusted/base", variant("torch-universal", {"__init__.py": b"base 2"}), branch="v2")
    needs["kernel-depends"].append({"repo-id": "trusted/mid", "version": 1})
    hub.publish("trusted/user", variant("torch-universal", {"__init__.py": b"user"}, **needs))
    other = {"kernel-depends": [{"repo-id": "trusted/base", "version": 2}]}
    hub.publish("trusted/mid", variant("torch-universal", {"__init__.py": b"mid"}, **other))
    run = kernels("pull", "trusted/user@1")
    assert run.code == CODE["incompatible"]
    assert "trusted/user@v1 asks for '1', trusted/mid@v1 for '2'" in run.err


def test_trust_in_a_publisher_is_shown_before_python_code_arrives(hub, kernels):
    hub.publish("alice/code", variant("torch-universal", {"__init__.py": b"1"}))
    words = "alice is not trusted by the hub: read the code before you import it"
    assert words in kernels("info", "alice/code").out
    hub.clear()
    assert words in kernels("pull", "alice/code@1", "--dry-run").err
    run = kernels("pull", "alice/code@1")
    assert run.err.startswith(f"note: alice/code has Python code; {words}") and run.err.count("\n") == 1
    paths = [entry["path"] for entry in hub.log()]
    downloaded = [i for i, path in enumerate(paths) if path.endswith(".py")]
    assert paths.index("/api/organizations/alice/overview") < downloaded[0]
    assert kernels("pull", "alice/code@1").err == ""  # nothing was downloaded
    kernels("cache", "rm", "alice/code")
    assert kernels("pull", "alice/code@1", "-q").err == ""
    kernels("cache", "rm", "alice/code")
    assert kernels("pull", "alice/code@1", "--json").json["publisher"] == "untrusted"
    kernels("cache", "rm", "alice/code")
    hub.fault({"path": "/overview", "action": "status", "status": 404, "body": "<html>", "times": 1})
    hub.fault({"path": "/overview", "action": "status", "status": 403, "times": 1})
    assert "is not trusted by the hub" in kernels("pull", "alice/code@1").err  # 404: alice is no organization
    kernels("cache", "rm", "alice/code")
    assert "whether alice is trusted, the hub did not say" in kernels("pull", "alice/code@1").err
    hub.publish("alice/headers", variant("neuron-header", {"include/a.hpp": b"1"}))
    assert kernels("pull", "alice/headers@1").err == ""


def test_metadata_digest_is_checked(hub, kernels):
    tree = variant("torch-universal", {"__init__.py": b"good"})
    tree["build/torch-universal/__init__.py"] = b"evil"
    hub.publish("trusted/altered", tree)
    run = kernels("pull", "trusted/altered@1")
    assert run.code == CODE["integrity"]
    assert "checksum mismatch: SHA-256 of __init__.py" in run.err
    assert not (kernels.repo("trusted/altered") / "refs/v1").exists()


MANIFEST = """schema = 1

[package]
name = "consumer"
version = "0.1.0"
license = "Apache-2.0"
description = "needs another package"

[dependencies]
"trusted/locked" = "^1"
"""


def test_lock_file_pins_what_is_pulled(hub, kernels, tmp_path):
    name = "trusted/locked"
    first = hub.publish(name, variant("torch-universal", {"__init__.py": b"1"}), tag="1.0.0")
    (tmp_path / "kernel.toml").write_text(MANIFEST)
    folder = ["--package", tmp_path]
    run = kernels("pull", "--locked", *folder)
    assert run.code == CODE["usage"] and "kernel.lock" in run.err
    assert kernels("pull", *folder).path.name == first
    lock = (tmp_path / "kernel.lock").read_text()
    second = hub.publish(name, variant("torch-universal", {"__init__.py": b"2"}), tag="1.1.0")
    for options in ([], ["--locked"], ["--frozen"]):
        assert kernels("pull", *options, *folder).path.name == first
    assert (tmp_path / "kernel.lock").read_text() == lock
    kernels("lock", "--upgrade", tmp_path)
    assert kernels("pull", "--locked", *folder, "--json").json[0]["commit"] == second
    altered = (tmp_path / "kernel.lock").read_text()
    digest = altered[altered.index("git-sha1:") + 9 :][:8]
    (tmp_path / "kernel.lock").write_text(altered.replace(digest, "00000000"))
    run = kernels("pull", "--locked", *folder)
    assert run.code == CODE["integrity"] and "kernel.lock has git-sha1:00000000" in run.err
    assert kernels("pull", f"{name}@1", "--locked").code == CODE["usage"]


@pytest.mark.skipif(not python_can("huggingface_hub"), reason="needs the Python package huggingface_hub")
def test_cache_is_shared_with_python(hub, kernels, package):
    name, _ = package
    code = (
        "import huggingface_hub as h\n"
        f"print(h.snapshot_download({name!r}, repo_type='kernel', revision='v1'))\n"
        "assert not h.scan_cache_dir().warnings"
    )
    python = [sys.executable, "-c", code]
    done = subprocess.run(python, env=kernels.environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    hub.clear()
    assert str(kernels("pull", f"{name}@1").path) == done.stdout.strip()
    assert not downloads(hub)
    offline = kernels.environment(HF_HUB_OFFLINE="1")
    assert subprocess.run(python, env=offline, capture_output=True).returncode == 0


# ---- tokens --------------------------------------------------------------------------------------------------------


def test_login_whoami_logout(kernels):
    run = kernels("login", "--token-stdin", stdin=TOKEN + "\n")
    assert run.code == 0 and "alice" in run.err
    token = kernels.home / "token"
    assert token.read_text() == TOKEN
    assert token.stat().st_mode & 0o777 == 0o600
    assert kernels("whoami").out.split() == ["alice", "org", "trusted"]
    assert kernels("whoami", "--json", env={"HF_TOKEN": OTHER_TOKEN}).json["name"] == "bob"
    assert kernels("logout").code == 0
    assert not token.exists()
    run = kernels("whoami")
    assert run.code == CODE["auth"] and "kernels login" in run.err


def test_bad_token_is_neither_stored_nor_shown(kernels):
    run = kernels("login", "--token-stdin", stdin="hf_wrongSecret123")
    assert run.code == CODE["auth"]
    assert "Secret" not in run.out + run.err
    assert not (kernels.home / "token").exists()
    run = kernels("whoami", env={"HF_TOKEN": "hf_two words"})
    assert run.code == CODE["usage"]
    assert "two" not in run.err


def test_private_repository(hub, kernels, package):
    name, _ = package
    hub.request("PUT", f"/api/kernels/{name}/settings", {"private": True})
    run = kernels("pull", f"{name}@1")
    assert run.code == CODE["not_found"] and "no token was sent" in run.err
    assert kernels("pull", f"{name}@1", env={"HF_TOKEN": OTHER_TOKEN}).code == CODE["not_found"]
    assert kernels("pull", f"{name}@1", env={"HF_TOKEN": "hf_stale"}).code == CODE["auth"]
    assert kernels("pull", f"{name}@1", env={"HF_TOKEN": TOKEN}).code == 0


# ---- queries and the cache -----------------------------------------------------------------------------------------


def test_queries(hub, kernels, package):
    name, _ = package
    versions = kernels("versions", name, "--json").json
    assert [(v["ref"], v["branch"]) for v in versions] == [("v1", True), ("1.2.0", False)]
    info = kernels("info", name, "--json").json
    assert info["metadata"]["name"] == "demo" and info["trusted_publisher"] is True
    assert name in [repo["repository"] for repo in kernels("search", name.split("/")[1], "--json").json]
    assert name in kernels("list", "trusted", "-q").out.split()
    assert kernels("list", "nobody", "--json").json == []
    assert kernels("versions", "trusted/none").code == CODE["not_found"]
    assert kernels("versions", "no-slash").code == CODE["usage"]


def test_cache_commands(hub, kernels, package):
    name, _ = package
    kernels("pull", f"{name}@1")
    hub.publish(name, variant("torch-universal", {"__init__.py": b"2"}), branch="v2")
    kernels("pull", f"{name}@2")
    (repo,) = kernels("cache", "ls", "--json").json
    assert repo["repository"] == name
    assert sorted(r["refs"] for r in repo["revisions"]) == [["1.2.0", "v1"], ["v2"]] or sorted(
        r["refs"] for r in repo["revisions"]
    ) == [["v1"], ["v2"]]
    before = kernels.blobs(name)
    assert kernels("cache", "rm", f"{name}@1", "--dry-run").code == 0
    assert kernels.blobs(name) == before
    assert kernels("cache", "rm", f"{name}@1").code == 0
    assert len(kernels.blobs(name)) == 2
    assert kernels("pull", f"{name}@2", "--offline").code == 0
    assert kernels("pull", f"{name}@1", "--offline").code == CODE["not_found"]
    (kernels.repo(name) / "refs/v2").unlink()
    assert kernels("cache", "prune").code == 0
    assert not kernels.repo(name).exists()
    assert kernels("cache", "ls", "--json").json == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(kernels, shell):
    script = kernels("completion", shell).out
    for word in ("pull", "versions", "whoami", "offline"):
        assert word in script
    if shell == "bash":
        test = 'source /dev/stdin; COMP_WORDS=(kernels cache pr); COMP_CWORD=2; _kernels; echo "${COMPREPLY[*]}"'
        done = subprocess.run(["bash", "-c", test], input=script, capture_output=True, text=True)
        assert done.stdout.split() == ["prune"]


def test_every_help_ends_in_examples(kernels):
    commands = ["pull", "versions", "info", "search", "list", "verify", "login", "logout", "whoami"]
    commands += [f"cache {c}" for c in ("ls", "rm", "prune", "verify")] + ["completion bash"]
    for command in commands:
        text = kernels(*command.split(), "--help").out
        assert "kernels " in text.split("Examples:\n")[1], command


def test_usage_errors(kernels, tmp_path):
    for arguments in (
        [],
        ["frobnicate"],
        ["pull"],
        ["pull", "--all"],
        ["pull", "a/b@1", "--parallel", "0"],
        ["pull", "../x@1"],
    ):
        run = kernels(*arguments, cwd=tmp_path)  # where there is no kernel.toml
        assert run.code == CODE["usage"], arguments
        assert run.err.startswith("error: ") and "hint: " in run.err
        assert run.out == ""
    assert kernels("pull", "a/b@1", "--endpoint", "ftp://x").code == CODE["usage"]
