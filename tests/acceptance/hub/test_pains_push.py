"""`kernels push` and the pains of users of real clients: E13 to E30, as in test_pains.py."""

import os
import threading

import pytest
from pulling import Client
from pushing import set_version
from registry import KERNELS, Registry
from stub import variant


def test_e13_who_may_not_push_is_told_why(start, new_package):
    hub = start()
    assert (
        "kernels login" in hub.run("push", new_package, "--to", "alice/scale", status=3, env={"HF_TOKEN": None}).stderr
    )
    foreign = hub.run("push", new_package, "--to", "bob/scale", status=3).stderr
    assert "may not create bob/scale" in foreign and "right to write in 'bob'" in foreign
    wrong = hub.run("push", new_package, "--to", "alice/scale", status=3, env={"HF_TOKEN": "hf_wrongwrongwrong"}).stderr
    assert "token" in wrong and "hf_wrong" not in wrong
    offline = hub.run("push", new_package, "--to", "alice/scale", status=2, env={"HF_HUB_OFFLINE": "1"}).stderr
    assert "--dry-run" in offline
    assert hub.run("push", new_package, "--to", "scale", status=2).stderr


def test_e13_our_registry_says_which_right_is_missing(tmp_path, new_package):
    with Registry(KERNELS, tmp_path / "root") as registry:
        only_reads = registry.admin("token", "add", "alice", "--read-only")
        kernels = Client(tmp_path / "home", registry.endpoint)
        push = ("push", new_package, "--to", "alice/scale")
        missing = kernels(*push).err
        foreign = kernels(*push, env={"HF_TOKEN": registry.reader}).err
        reading = kernels(*push, env={"HF_TOKEN": only_reads}).err
        assert kernels(*push, env={"HF_TOKEN": registry.writer}).code == 0
    assert "needs a token that may write" in missing and "kernels login" in missing
    assert 'rights to create a kernel under the namespace "alice"' in foreign
    assert "ask for the right to write in 'alice'" in foreign
    assert "This token may only read" in reading and "right to write in 'alice'" in reading


def test_e15_a_new_branch_gets_its_content_and_no_other_branch_does(start, new_package):
    hub = start()
    first = hub.json("push", new_package, "--to", "alice/scale")
    assert first["branch"] == "v0" and set(hub.refs("alice/scale")) == {"main", "v0", "0.1.0"}
    (new_package / "include" / "later.hpp").write_text("#pragma once\n")
    set_version(new_package, "1.0.0")
    second = hub.json("push", new_package, "--to", "alice/scale")
    assert second["branch"] == "v1"
    later = "build/neuron-header/include/later.hpp"
    assert later in hub.tree("alice/scale", "v1")
    assert hub.refs("alice/scale")["v0"] == first["commit"] and later not in hub.tree("alice/scale", "v0")
    assert set(hub.tree("alice/scale", "main")) <= {"README.md", ".gitattributes"}


@pytest.mark.parametrize("options", [(), ("--multipart", "100000"), ("--xet", "off")])
def test_e21_large_files_go_by_lfs_over_http_with_and_without_xet(start, new_package, options):
    hub = start(*options)
    data = os.urandom(350_000)
    (new_package / "include" / "table.bin").write_bytes(data)
    hub.run("push", new_package, "--to", "alice/scale")
    entry = hub.tree("alice/scale", "v0")["build/neuron-header/include/table.bin"]
    assert entry["lfs"]["size"] == len(data)
    assert hub.content("alice/scale", "v0", "build/neuron-header/include/table.bin") == data
    log = hub.stub.log()
    puts = [r for r in log if r["method"] == "PUT"]
    assert len(puts) == (4 if "--multipart" in options else 1)
    assert not [r for r in puts if "authorization" in r["req"]]
    assert [r for r in log if "/_lfs/verify/" in r["path"] and "authorization" in r["req"]]
    assert not [r for r in log if "xet" in r["path"]]


def test_e30_a_branch_that_moves_meanwhile_is_a_conflict(start, new_package):
    hub = start()
    hub.run("push", new_package, "--to", "alice/scale")
    set_version(new_package, "0.2.0")
    hub.stub.fault({"path": "/preupload/v0", "method": "POST", "action": "delay", "seconds": 1.5, "times": 1})
    other = variant("torch-universal", {"__init__.py": b""})
    mover = threading.Timer(0.7, lambda: hub.stub.publish("alice/scale", other, branch="v0"))
    mover.start()
    failed = hub.run("push", new_package, "--to", "alice/scale", status=8)
    mover.join()
    assert "moved" in failed.stderr and "push again" in failed.stderr
    assert "0.2.0" not in hub.refs("alice/scale")
    hub.run("push", new_package, "--to", "alice/scale")
    tree = hub.tree("alice/scale", "0.2.0")
    assert "build/torch-universal/__init__.py" in tree and "kernel.toml" in tree
