"""Fixtures of the hub's acceptance tests: a stub hub, and the `kernels` program against a cache of its own."""

import subprocess

import pytest
from pulling import Client, content
from stub import Stub, variant


@pytest.fixture(scope="session")
def hub(tmp_path_factory):
    stub = Stub(tmp_path_factory.mktemp("stub"))
    yield stub
    stub.stop()


@pytest.fixture(autouse=True)
def no_faults(hub):
    hub.clear()
    yield
    hub.clear()


@pytest.fixture
def kernels(hub, tmp_path):
    return Client(tmp_path / "home", hub.url)


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """Compiles a C source to a library for LD_PRELOAD."""
    folder = tmp_path_factory.mktemp("shim")

    def build(name, source):
        path = folder / f"{name}.so"
        if not path.exists():
            (folder / f"{name}.c").write_text(source)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", path, folder / f"{name}.c", "-ldl"], check=True)
        return str(path)

    return build


@pytest.fixture
def package(hub, request):
    """Publishes trusted/<test's name>: a small file, a large one (LFS), an empty one."""
    name = "trusted/" + request.node.name.split("[")[0].replace("_", "-")
    files = {"__init__.py": b"VALUE = 1\n", "big.bin": content(4_000_000, name), "empty.txt": b""}
    hub.publish(name, variant("torch-universal", files), tag="1.2.0")
    return name, files
