"""Faults of a hub from bug reports of other clients: hubfault.py, whole."""

import pathlib
import subprocess
import sys

from registry import KERNELS

HERE = pathlib.Path(__file__).resolve().parent


def test_fault_hub():
    command = f"{KERNELS} pull {{repo}} --dir {{out}} --endpoint {{endpoint}}"
    script = [sys.executable, HERE / "hubfault.py", "--type", "kernels", "--cmd", command]
    done = subprocess.run(script, capture_output=True, text=True, timeout=300)
    assert "FAIL" not in done.stdout and done.returncode == 0, done.stdout
