"""A user of the built `kernels` command with a stub hub of his own."""

import json
import os
import re
import subprocess

from registry import KERNELS
from stub import TOKEN, Stub


class Hub:
    """A stub and a user of it, with a home of his own."""

    def __init__(self, folder, *options):
        self.folder = folder
        self.stub = Stub(folder / "store", *options)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "HF_ENDPOINT": self.stub.url,
            "HF_TOKEN": TOKEN,
        }

    def run(self, *arguments, status=0, cwd=None, env=(), **more):
        environment = {name: text for name, text in {**self.env, **dict(env)}.items() if text is not None}
        command = [KERNELS, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, **more)
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def json(self, *arguments, **more):
        return json.loads(self.run(*arguments, "--json", **more).stdout)

    def tree(self, name, revision):
        entries = self.stub.request("GET", f"/api/kernels/{name}/tree/{revision}?recursive=true")
        return {entry["path"]: entry for entry in entries if entry["type"] == "file"}

    def refs(self, name):
        answer = self.stub.request("GET", f"/api/kernels/{name}/refs")
        return {ref["name"]: ref["targetCommit"] for ref in answer["branches"] + answer["tags"]}

    def content(self, name, revision, path):
        return self.stub.content("GET", f"/kernels/{name}/resolve/{revision}/{path}")

    def requests(self):
        return [(entry["method"], entry["path"]) for entry in self.stub.log() if "/_stub/" not in entry["path"]]


def set_version(package, version):
    manifest = package / "kernel.toml"
    manifest.write_text(re.sub(r'(?m)^version = ".*"', f'version = "{version}"', manifest.read_text()))
