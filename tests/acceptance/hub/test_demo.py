"""How `make demo` gets its operators: scripts/demo_hub.py. The demo itself needs the weights of models."""

import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from pulling import python_can
from registry import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

import demo_hub  # noqa: E402

CODE = f"""
import pathlib, sys
sys.path.insert(0, {str(ROOT / "scripts")!r})
import demo_hub, torch
package, figures = demo_hub.by_registry(pathlib.Path(sys.argv[1]), lambda text, fraction: None)
assert package.__file__.startswith(sys.argv[1]) and package.__version__ == figures["version"], package.__file__
x, w = torch.randn(4, 64), torch.randn(64)
torch.testing.assert_close(package.ops.rms_norm(x, w, 1e-6), torch.nn.functional.rms_norm(x, (64,), w, 1e-6))
print(demo_hub.describe(figures))
"""


@pytest.mark.skipif(not python_can("torch"), reason="needs PyTorch")
def test_operators_come_from_the_pulled_snapshot(tmp_path):
    done = subprocess.run([sys.executable, "-c", CODE, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "pulled demo/neuron-kernels@0.1 back in" in done.stdout and "torch-stable-abi210-cpu" in done.stdout


def test_the_registry_ends_with_what_it_was_started_for(tmp_path):
    env = demo_hub.environment(tmp_path)
    with pytest.raises(RuntimeError, match="stop here"):
        with demo_hub.serving(env, ("serve", "--root", tmp_path / "registry")) as address:
            assert urllib.request.urlopen(address + "/health", timeout=10).read() == b"ok\n"
            raise RuntimeError("stop here")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address + "/health", timeout=10)


def test_what_fails_ends_the_demo_with_the_reason(tmp_path):
    with pytest.raises(SystemExit, match="(?s)^demo: kernels pull no-slash\nerror: .*OWNER/NAME"):
        demo_hub.kernels(demo_hub.environment(tmp_path), "pull", "no-slash")
