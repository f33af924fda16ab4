import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "stand_in"), str(HERE)]
if importlib.util.find_spec("ml_dtypes") is None:
    sys.path.append(str(HERE / "stand_in_ml_dtypes"))


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the files in tests/golden anew")


@pytest.fixture(scope="session")
def all_cases(tmp_path_factory):
    import cases

    folder = tmp_path_factory.mktemp("nki")
    cases.write_cases(folder)
    return {path.name: cases.Case(path) for path in sorted(folder.iterdir()) if (path / "case.json").exists()}
