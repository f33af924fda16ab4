"""Reads the cases that test_nki and test_nki_ops write (tests/nki_cases.hpp) and runs their sources."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import nki
import nki.language as nl
import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def write_cases(folder):
    """Runs the programs that write cases, of the release build or of the folder NEURON_KERNELS_TEST_PROGRAMS."""
    programs = Path(os.environ.get("NEURON_KERNELS_TEST_PROGRAMS", ROOT / "build/release/tests"))
    for name in ("test_nki", "test_nki_ops"):
        program = programs / name
        if not program.exists():
            raise FileNotFoundError(f"{program}: build it first (cmake --build build/release --target {name})")
        environment = {**os.environ, "NEURON_KERNELS_NKI_CASES": str(folder)}
        subprocess.run([program, "[cases]"], env=environment, check=True, stdout=subprocess.DEVNULL)


@dataclass
class Output:
    replay: np.ndarray  # what Host makes of the same program
    exact: np.ndarray
    error: np.ndarray  # how far from exact a right answer may be
    dtype: nl.DType


class Case:
    def __init__(self, folder):
        self.name = folder.name
        self.source = (folder / "kernel.py").read_text()
        what = json.loads((folder / "case.json").read_text())
        self.chip, self.kernel = what["chip"], what["kernel"]
        self.inputs, self.outputs = [], []
        for t in what["tensors"]:
            numbers, dtype = np.fromfile(folder / t["file"], np.float64), getattr(nl, t["dtype"])
            if t["role"] == "input":
                self.inputs.append((numbers.reshape(t["shape"]), dtype))
            else:
                self.outputs.append(Output(*numbers.reshape(3, *t["shape"]), dtype))

    def run(self):
        """The outputs of the source, on the stand-in for the case's chip."""
        os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] = self.chip
        module = {"__name__": self.name}
        exec(compile(self.source, f"{self.name}/kernel.py", "exec"), module)
        got = nki.simulate(module[self.kernel])(*(nki.tensor(a, dtype) for a, dtype in self.inputs))
        return got if isinstance(got, tuple) else (got,)


def largest_excess(got, want, bound):
    """max |got - want| / bound; infinite where one is NaN or an infinity of its own."""
    got = np.asarray(got, np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    with np.errstate(all="ignore"):
        ratio = np.where(same, 0, np.abs(got - want) / bound)
    return np.where(np.isnan(ratio), np.inf, ratio).max(initial=0)
