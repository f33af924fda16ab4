"""The registry against the real Hugging Face clients and raw requests: srvprobe.py and hub_conformance.py, whole.

conformance.py [ARGUMENT...]     arguments go to hub_conformance.py; the last line is "N passed, M failed"

The clients are those of the Python that runs this; KERNELS_BIN names another `kernels`.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from registry import KERNELS, Registry

HERE = pathlib.Path(__file__).resolve().parent


def probe(registry, folder):
    """Requests that no client library would send: S-SRV-01 and S-SRV-02. They ask for acme/probe."""
    registry.admin("org", "add", "acme")
    registry.admin("org", "member", "acme", "alice")
    script = [sys.executable, HERE / "srvprobe.py"]
    subprocess.run([*script, "--make", folder], check=True, stdout=subprocess.DEVNULL)
    hf = pathlib.Path(sys.executable).with_name("hf")
    upload = [hf, "upload", "acme/probe", folder / "root" / "acme" / "probe", ".", "--quiet"]
    env = {"HF_ENDPOINT": registry.endpoint, "HF_TOKEN": registry.writer, "HF_HOME": str(folder / "home")}
    subprocess.run(upload, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **env})
    return subprocess.run([*script, "--url", registry.endpoint]).returncode


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with Registry(KERNELS, folder / "registry") as registry:
            probed = probe(registry, folder)
            script = [sys.executable, HERE / "hub_conformance.py", registry.endpoint]
            rights = ["--token", registry.writer, "--reader-token", registry.reader]
            rights += ["--trusted-org", registry.trusted_org]
            held = subprocess.run([*script, *rights, "--compiled", *sys.argv[1:]]).returncode
    return probed or held


if __name__ == "__main__":
    sys.exit(main())
