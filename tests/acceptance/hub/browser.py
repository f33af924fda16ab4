"""Headless Chromium, steered by the DevTools protocol over a pipe: pages without scripts, as wide as a test asks."""

import base64
import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any


def find_chromium() -> str | None:
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


class Browser:
    """One page; `errors` are what the browser complains of, such as breaches of the Content-Security-Policy."""

    def __init__(self, chromium: str, profile: Path) -> None:
        from_here, to_there = os.pipe()
        from_there, to_here = os.pipe()
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--remote-debugging-pipe", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
        ]  # fmt: skip
        # The browser reads commands from descriptor 3 and writes answers to 4.
        command = ["bash", "-c", f'exec "$@" 3<&{from_here} 4>&{to_here}', "bash", chromium, *options, "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(from_here, to_here), stderr=subprocess.DEVNULL)
        os.close(from_here)
        os.close(to_here)
        self.commands, self.answers = os.fdopen(to_there, "wb"), os.fdopen(from_there, "rb")
        self.ids, self.session, self.errors = itertools.count(1), "", list[str]()
        self.unread, self.rest = list[dict[str, Any]](), b""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Accessibility"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setScriptExecutionDisabled", value=True)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)
        self.commands.close()
        self.answers.close()

    def receive(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            data = os.read(self.answers.fileno(), 1 << 20)
            if not data:
                raise RuntimeError(f"chromium ended with exit code {self.process.wait()}")
            self.rest += data
        line, self.rest = self.rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.errors.append(message["params"]["entry"]["text"])
        return message

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        number = next(self.ids)
        command = {"id": number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        self.commands.write(json.dumps(command).encode() + b"\0")
        self.commands.flush()
        while (message := self.receive()).get("id") != number:
            self.unread.append(message)
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return dict(message["result"])

    def open(self, url: str, width: int, dark: bool = False) -> None:
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.unread, self.errors = [], []
        self.call("Page.navigate", url=url)
        while not any(message.get("method") == "Page.loadEventFired" for message in self.unread):
            self.unread.append(self.receive())

    def evaluate(self, expression: str) -> Any:
        """Of the tests' own code: the page's scripts, if it had any, do not run."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(picture))

    def roles(self) -> list[tuple[str, str]]:
        """Role and name of everything that a screen reader meets."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
