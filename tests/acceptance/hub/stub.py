"""Starts hub_stub.py for tests and publishes packages to it with plain requests, without any client of ours."""

import base64
import contextlib
import hashlib
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import quote

HERE = pathlib.Path(__file__).resolve().parent
TOKEN = "hf_stub_alice"
OTHER_TOKEN = "hf_stub_bob"
LFS_THRESHOLD = 1 << 16  # bytes; larger files are LFS objects


def metadata(files, **extra):
    """metadata.json for a variant that holds `files` ({path: bytes})."""
    digest = {path: base64.b64encode(hashlib.sha256(data).digest()).decode() for path, data in sorted(files.items())}
    document = {
        "name": "demo",
        "id": "_demo_1",
        "version": 1,
        "license": "Apache-2.0",
        "python-depends": [],
        "backend": {"type": "cpu"},
        "digest": {"algorithm": "sha256", "files": digest},
    }
    document.update(extra)
    return json.dumps(document).encode()


def variant(name, files, **extra):
    """Paths below build/ with metadata.json, from {path: bytes}."""
    tree = {f"build/{name}/{path}": data for path, data in files.items()}
    tree[f"build/{name}/metadata.json"] = metadata(files, **extra)
    return tree


class Stub:
    """A running stub. `url` is its endpoint."""

    def __init__(self, root, *options):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, HERE / "hub_stub.py", "--port", str(self.port), "--root", str(root)]
        command += ["--promote", "--lfs-threshold", str(LFS_THRESHOLD), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for _ in range(200):
            with contextlib.suppress(OSError):
                self.request("GET", "/_stub/log")
                return
            time.sleep(0.05)
        raise RuntimeError("the stub does not start")

    def stop(self):
        self.process.kill()
        self.process.wait()

    def request(self, method, path, body=None, content_type="application/json"):
        """The answer's JSON, or its bytes if it is no object or list."""
        text = self.content(method, path, body, content_type)
        return json.loads(text) if text.startswith((b"{", b"[")) else text

    def content(self, method, path, body=None, content_type="application/json"):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": content_type}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def publish(self, name, files, branch="v1", tag=None, kind="kernel"):
        """Commits `files` to a branch, made if it is missing; returns the commit."""
        owner, short = name.split("/")
        with contextlib.suppress(urllib.error.HTTPError):
            self.request("POST", "/api/repos/create", {"name": short, "organization": owner, "type": kind})
        api = f"/api/{kind}s/{name}"
        if branch != "main":
            with contextlib.suppress(urllib.error.HTTPError):
                self.request("POST", f"{api}/branch/{quote(branch, safe='')}", {})
        lines = [{"key": "header", "value": {"summary": "Add build"}}]
        for path, data in files.items():
            value = {"path": path, "content": base64.b64encode(data).decode(), "encoding": "base64"}
            lines.append({"key": "file", "value": value})
        body = "\n".join(json.dumps(line) for line in lines).encode()
        url = f"{api}/commit/{quote(branch, safe='')}"
        commit = self.request("POST", url, body, "application/x-ndjson")["commitOid"]
        if tag:
            with contextlib.suppress(urllib.error.HTTPError):
                self.request("DELETE", f"{api}/tag/{tag}")
            self.request("POST", f"{api}/tag/{branch}", {"tag": tag})
        self.request("DELETE", "/_stub/log")
        return commit

    def fault(self, *rules):
        self.request("POST", "/_stub/faults", list(rules))

    def log(self):
        return self.request("GET", "/_stub/log")

    def clear(self):
        self.request("DELETE", "/_stub/log")
        self.request("DELETE", "/_stub/faults")
