"""A `kernels serve` on loopback with throw-away users, for tests and benchmarks."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent.parent.parent
KERNELS = os.environ.get("KERNELS_BIN", str(ROOT / "build" / "hub" / "cli" / "kernels"))


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Registry:
    """alice writes to her own namespace and to `trusted`; bob only reads there."""

    trusted_org = "trusted"

    def __init__(self, kernels: str, root: Path) -> None:
        self.kernels, self.root, self.port = kernels, root, free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None
        for command in ("user add alice", "user add bob", "org add trusted --trusted", "org member trusted alice"):
            self.admin(*command.split())
        self.writer, self.reader = self.admin("token", "add", "alice"), self.admin("token", "add", "bob")

    def admin(self, *arguments: str) -> str:
        command = [self.kernels, "serve", "--root", str(self.root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def start(self) -> None:
        command = [self.kernels, "serve", "--root", str(self.root), "--listen", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
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

    def requests(self) -> int:
        """How many it has taken, this one included."""
        found = re.search(r"^kernels_requests_total (\d+)$", self.get("/metrics").decode(), re.M)
        assert found is not None
        return int(found[1])

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
