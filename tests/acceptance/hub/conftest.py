"""Fixtures of the hub's acceptance tests: a stub hub, and the `kernels` program against a cache of its own."""

import subprocess

import pytest
from certificates import Authority
from pulling import Client, content
from pushing import Hub
from registry import KERNELS
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


@pytest.fixture
def start(tmp_path):
    """Starts a hub for pushing, with options of hub_stub.py."""
    hubs = []

    def start(*options):
        hubs.append(Hub(tmp_path, *options))
        return hubs[-1]

    yield start
    for hub in hubs:
        hub.stub.stop()


@pytest.fixture
def new_package(tmp_path):
    """A package as `kernels new` makes it."""
    subprocess.run([KERNELS, "new", "my-scale"], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "my-scale"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A throw-away certification authority, by openssl."""
    return Authority(tmp_path_factory.mktemp("certificates"))
