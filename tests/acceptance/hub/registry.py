"""A `kernels serve` on loopback with throw-away users, for tests and benchmarks."""

import base64
import copy
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from email.message import Message
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent.parent.parent
KERNELS = os.environ.get("KERNELS_BIN", str(ROOT / "build" / "hub" / "cli" / "kernels"))


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Registry:
    """alice writes to her own namespace and to `trusted`; bob only reads there. options: of `kernels serve`."""

    trusted_org = "trusted"

    def __init__(self, kernels: str, root: Path, *options: str) -> None:
        self.kernels, self.root, self.port, self.options = kernels, root, free_port(), options
        scheme = "https" if "--cert" in options else "http"
        self.endpoint = f"{scheme}://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None
        for command in ("user add alice", "user add bob", "org add trusted --trusted", "org member trusted alice"):
            self.admin(*command.split())
        self.writer, self.reader = self.admin("token", "add", "alice"), self.admin("token", "add", "bob")

    def restored(self, root: Path) -> "Registry":
        """One with the same users on another root."""
        other = copy.copy(self)
        other.root, other.port, other.process = root, free_port(), None
        other.endpoint = f"http://127.0.0.1:{other.port}"
        return other

    def admin(self, *arguments: str) -> str:
        command = [self.kernels, "serve", "--root", str(self.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def start(self, **how: Any) -> None:
        """how: arguments of Popen, such as user."""
        listen = ["--root", str(self.root), "--listen", f"127.0.0.1:{self.port}"]
        command = [self.kernels, "serve", *listen, *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **how)
        assert self.process.stdout is not None
        if not self.process.stdout.readline().startswith("http"):
            raise RuntimeError(f"kernels serve did not start: exit code {self.process.wait()}")

    def kill(self) -> None:
        """As a power cut for the process: no handler runs."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(timeout=60)
        self.process = None
        return code

    def __enter__(self) -> "Registry":
        self.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def get(self, path: str, headers: dict[str, str] | None = None) -> bytes:
        request = urllib.request.Request(self.endpoint + path, headers=headers or {})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    def metric(self, name: str) -> int:
        found = re.search(rf"^kernels_{name} (\d+)$", self.get("/metrics").decode(), re.M)
        assert found is not None
        return int(found[1])

    def requests(self) -> int:
        """How many it has taken, this one included."""
        return self.metric("requests_total")

    def call(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Message, bytes]:
        """Status, header and body of one request by alice on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {self.writer}", **headers})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def create(self, name: str, owner: str = "alice", **settings: object) -> str:
        """A kernel repository of alice or of an organisation of hers."""
        body = {"name": name, "organization": owner, "type": "kernel", **settings}
        status, _, answer = self.call("POST", "/api/repos/create", json.dumps(body).encode())
        assert status == 200, answer
        return f"{owner}/{name}"

    def commit(
        self, repository: str, files: dict[str, bytes], kind: str = "kernel", branch: str = "main"
    ) -> tuple[int, Message, bytes]:
        """One commit on a branch with all content inline; the server makes LFS objects of what is large."""
        lines: list[dict[str, object]] = [{"key": "header", "value": {"summary": "files"}}]
        for path, content in files.items():
            value = {"path": path, "content": base64.b64encode(content).decode(), "encoding": "base64"}
            lines.append({"key": "file", "value": value})
        body = "".join(json.dumps(line) + "\n" for line in lines).encode()
        return self.call("POST", f"/api/{kind}s/{repository}/commit/{quote(branch, safe='')}", body)

    def peak_bytes(self) -> int:
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)
        assert found is not None
        return int(found[1]) * 1024

    def make_repositories(self, owner: str, count: int) -> None:
        """many-00000 and so on, by the API."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.writer}", "Content-Type": "application/json"}
        for i in range(count):
            body = json.dumps({"name": f"many-{i:05d}", "organization": owner, "type": "kernel"})
            connection.request("POST", "/api/repos/create", body, headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise RuntimeError(f"creating many-{i:05d} gave HTTP {answer.status}")
        connection.close()
