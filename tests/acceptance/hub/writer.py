"""Load for a registry: commits that come one after the other, and what must be there of them afterwards."""

import base64
import hashlib
import http.client
import json
import random
import subprocess
import threading

from registry import Registry


class Writer(threading.Thread):
    """Commits to one repository until it is stopped or the server goes away; remembers what was acknowledged."""

    def __init__(self, registry: Registry, repository: str, seed: int) -> None:
        super().__init__(daemon=True)  # a test that fails does not wait for it
        self.registry, self.repository, self.random = registry, repository, random.Random(seed)
        self.acknowledged: list[tuple[str, str, bytes]] = []  # commit, path, content
        self.unexpected: list[str] = []
        self.stopped = threading.Event()

    def call(self, connection: http.client.HTTPConnection, method: str, path: str, body: bytes, kind: str) -> bytes:
        headers = {"Authorization": f"Bearer {self.registry.writer}", "Content-Type": kind}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise AssertionError(f"{method} {path}: HTTP {answer.status} {data[:200]!r}")
        return data

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.registry.port, timeout=20)
        try:
            while not self.stopped.is_set():
                content = self.random.randbytes(self.random.choice([10, 3000, 40_000, 40_000, 1_200_000]))
                path = f"{self.random.randrange(50)}/{self.random.randrange(10**9)}.bin"
                commit = self.commit(connection, "main", path, content, by_lfs=self.random.random() < 0.3)
                self.acknowledged.append((commit, path, content))
        except (OSError, http.client.HTTPException):
            pass  # the server was killed
        except AssertionError as error:
            self.unexpected.append(str(error))

    def commit(
        self, connection: http.client.HTTPConnection, branch: str, path: str, content: bytes, *, by_lfs: bool
    ) -> str:
        """Adds one file; the commit's id."""
        header = {"key": "header", "value": {"summary": path, "description": ""}}
        if by_lfs:
            line = self.upload(connection, path, content)
        else:
            encoded = base64.b64encode(content).decode()
            line = {"key": "file", "value": {"content": encoded, "path": path, "encoding": "base64"}}
        body = "".join(json.dumps(one) + "\n" for one in (header, line)).encode()
        target = f"/api/kernels/{self.repository}/commit/{branch}"
        return str(json.loads(self.call(connection, "POST", target, body, "application/x-ndjson"))["commitOid"])

    def upload(self, connection: http.client.HTTPConnection, path: str, content: bytes) -> dict[str, object]:
        oid = hashlib.sha256(content).hexdigest()
        batch = {"operation": "upload", "transfers": ["basic"], "objects": [{"oid": oid, "size": len(content)}]}
        target = f"/kernels/{self.repository}.git/info/lfs/objects/batch"
        answer = json.loads(self.call(connection, "POST", target, json.dumps(batch).encode(), "application/json"))
        if "actions" in answer["objects"][0]:
            href = answer["objects"][0]["actions"]["upload"]["href"].removeprefix(self.registry.endpoint)
            self.call(connection, "PUT", href, content, "application/octet-stream")
        return {"key": "lfsFile", "value": {"path": path, "algo": "sha256", "oid": oid, "size": len(content)}}


def check_store(registry: Registry, repository: str) -> None:
    folder = registry.root / "repos" / "kernels" / (repository + ".git")
    fsck = subprocess.run(["git", "-C", str(folder), "fsck", "--full", "--strict"], capture_output=True, text=True)
    assert fsck.returncode == 0, fsck.stderr
    for file in (registry.root / "objects").rglob("*"):
        if file.is_file():
            assert hashlib.sha256(file.read_bytes()).hexdigest() == file.name, f"{file} has other content"


def check_acknowledged(registry: Registry, writer: Writer) -> None:
    """Every acknowledged commit that a branch still has gives the bytes that were sent."""
    connection = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=20)
    for commit, path, content in writer.acknowledged:
        connection.request("GET", f"/kernels/{writer.repository}/resolve/{commit}/{path}")
        assert connection.getresponse().read() == content, f"{path} of {commit} has other bytes"
    connection.close()
