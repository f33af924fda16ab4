"""A certification authority for tests, by openssl."""

import subprocess
from pathlib import Path


class Authority:
    """file: its own certificate. options(): `--cert` and `--key` of a server at 127.0.0.1 and localhost."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "ca.pem"
        self.run("req", "-x509", *self.new_key("ca"), "-subj", "/CN=test authority", "-days", "2", "-out", self.file)

    def run(self, *arguments: object) -> None:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    def new_key(self, name: str) -> tuple[object, ...]:
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self.key(name))

    def key(self, name: str = "server") -> Path:
        return self.folder / f"{name}.key"

    def certificate(self, name: str = "server") -> Path:
        """Of that name, made at the first call."""
        made = self.folder / f"{name}.pem"
        if not made.exists():
            # Some clients refuse an authority's certificate as a server's, which openssl makes unless told otherwise.
            more = ("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-addext", "basicConstraints=CA:FALSE")
            by = ("-CA", self.file, "-CAkey", self.key("ca"), "-days", "2")
            self.run("req", "-x509", *self.new_key(name), "-subj", f"/CN={name}", *more, *by, "-out", made)
        return made

    def options(self) -> tuple[str, ...]:
        return ("--cert", str(self.certificate()), "--key", str(self.key()))
