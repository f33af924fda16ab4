"""The registry behind nginx as docs/registry.md sets it up, and the addresses in its answers."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority
from pulling import Client, content, snapshot_files
from registry import KERNELS, ROOT, Registry, free_port
from stub import variant

LARGE = 72 << 20  # bytes; more than a part of an upload, and than what nginx takes unless told
LIMIT = ("--rate-limit", "1000/600", "--trusted-proxy", "127.0.0.1")


def recipe() -> str:
    """The nginx block of docs/registry.md."""
    found = re.search(r"^    server \{\n(?:(?:    .*)?\n)*?    \}\n", (ROOT / "docs/registry.md").read_text(), re.M)
    assert found is not None
    return found[0]


class Nginx:
    """nginx with the recipe; only names, ports and files are put in."""

    def __init__(self, folder: Path, upstream: int, certificates: Authority) -> None:
        self.port, self.folder = free_port(), folder
        self.url = f"https://localhost:{self.port}"
        server = recipe()
        for old, new in {
            "listen 443 ": f"listen {self.port} ",
            "hub.example.org": "localhost",
            "/etc/ssl/hub.pem": str(certificates.certificate()),
            "/etc/ssl/hub.key": str(certificates.key()),
            "127.0.0.1:8085": f"127.0.0.1:{upstream}",
        }.items():
            assert server.count(old) == 1, f"docs/registry.md has {server.count(old)} of {old!r}"
            server = server.replace(old, new)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        places = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
        user = "user root;\n" if os.geteuid() == 0 else ""
        (folder / "nginx.conf").write_text(
            f"{user}daemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
            f"http {{\naccess_log off;\n{places}{server}}}\n"
        )

    def __enter__(self) -> "Nginx":
        command = ["nginx", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE)
        for _ in range(100):
            if (self.folder / "pid").exists():
                return self
            assert self.process.poll() is None, self.process.stderr and self.process.stderr.read()
            time.sleep(0.05)
        raise AssertionError("nginx does not start")

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.wait()


class Site:
    """A registry, the proxy in front of it, and curl at the proxy."""

    def __init__(self, registry: Registry, nginx: Nginx, certificates: Authority) -> None:
        self.registry, self.nginx, self.certificates = registry, nginx, certificates

    def curl(self, path: str, *options: str) -> str:
        command = ["curl", "-sS", "--cacert", str(self.certificates.file), *options]
        done = subprocess.run([*command, self.nginx.url + path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, script: str, home: Path, **environment: str) -> str:
        env = {
            "PATH": os.environ["PATH"],
            "HF_HOME": str(home),
            "HF_ENDPOINT": self.nginx.url,
            "HF_TOKEN": self.registry.writer,
            "SSL_CERT_FILE": str(self.certificates.file),
            **environment,
        }
        done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, certificates: Authority) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("proxy")
    with Registry(KERNELS, folder / "root", *LIMIT) as registry, Nginx(folder, registry.port, certificates) as nginx:
        yield Site(registry, nginx, certificates)


@pytest.mark.parametrize("way", ["lfs", "xet"])
def test_a_large_file_by_the_real_client(site: Site, tmp_path: Path, way: str) -> None:
    files = variant("torch-universal", {"__init__.py": b"VALUE = 1\n", "big.bin": content(LARGE, way)})
    for path, data in files.items():
        (tmp_path / "files" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / path).write_bytes(data)
    repository = f"alice/{way}"
    script = (
        "from huggingface_hub import HfApi, snapshot_download\napi = HfApi()\n"
        f"where = dict(repo_id='{repository}', repo_type='kernel')\napi.create_repo(**where)\n"
        f"print(api.upload_folder(folder_path='{tmp_path / 'files'}', **where).commit_url)\n"
        "api.create_branch(branch='v1', **where)\n"
        "print(snapshot_download(ignore_patterns=['.gitattributes'], **where))"
    )
    out = site.python(script, tmp_path / "home", HF_HUB_DISABLE_XET="1" if way == "lfs" else "0")
    commit_url, snapshot = out.splitlines()
    assert commit_url.startswith(f"{site.nginx.url}/kernels/{repository}/commit/")
    assert snapshot_files(Path(snapshot)) == files
    client = Client(tmp_path / "ours", site.nginx.url)
    run = client("pull", f"{repository}@1", env={"SSL_CERT_FILE": str(site.certificates.file)})
    assert snapshot_files(run.path) == files


def test_addresses_in_answers_are_those_of_the_proxy(site: Site) -> None:
    repository, url = site.registry.create("links"), site.nginx.url
    as_alice = ("-H", f"Authorization: Bearer {site.registry.writer}")
    site.registry.create("links-2")
    page = site.curl("/api/kernels?search=links&limit=1", "-i", "--http1.1")
    assert re.search(r"(?im)^link: <(.*)>; rel=.next.", page)[1].startswith(f"{url}/api/kernels?")
    batch = {"operation": "upload", "transfers": ["basic"], "objects": [{"oid": "a" * 64, "size": 5}]}
    path = f"/kernels/{repository}.git/info/lfs/objects/batch"
    for version in ("--http1.1", "--http2"):
        actions = json.loads(site.curl(path, version, *as_alice, "-d", json.dumps(batch)))["objects"][0]["actions"]
        assert all(action["href"].startswith(url + "/_lfs/") for action in actions.values())
    token = json.loads(site.curl(f"/api/kernels/{repository}/xet-write-token/main", *as_alice))
    assert token["casUrl"].startswith(url + "/_xet/")


def test_clients_are_counted_by_their_own_address(tmp_path: Path, certificates: Authority) -> None:
    options = ("--rate-limit", "3/600", "--trusted-proxy", "127.0.0.1")
    with Registry(KERNELS, tmp_path / "root", *options) as registry:
        with Nginx(tmp_path, registry.port, certificates) as nginx:
            site = Site(registry, nginx, certificates)

            def status(source: str, *options: str) -> str:
                code = ("-o", "/dev/null", "-w", "%{http_code}")
                return site.curl("/api/kernels", "--interface", source, *options, *code)

            assert [status("127.0.0.2") for _ in range(4)] == ["200", "200", "200", "429"]
            assert status("127.0.0.3") == "200"
            assert status("127.0.0.2", "-H", "X-Forwarded-For: 10.0.0.1") == "429"


def test_a_public_url_needs_nothing_from_the_proxy(tmp_path: Path) -> None:
    with Registry(KERNELS, tmp_path / "root", "--public-url", "https://hub.example.org/kernels-hub/") as registry:
        status, _, body = registry.call("POST", "/api/repos/create", b'{"name": "x", "type": "kernel"}')
        assert status == 200
        assert json.loads(body)["url"] == "https://hub.example.org/kernels-hub/kernels/alice/x"
    wrong = [KERNELS, "serve", "--root", str(tmp_path / "root"), "--public-url", "hub.example.org"]
    done = subprocess.run(wrong, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "--public-url is 'hub.example.org'; expected an address that starts with http:// or https://" in done.stderr
