"""An example builds as a user builds it (-O2, one include path) within the budget of time and memory, and runs.

usage: example.py SOURCE OUTPUT_FOLDER COMPILER [FLAG...]
"""

import resource
import subprocess
import sys
from pathlib import Path

# Budget of a unit that includes one public header and calls it once. Processor time, so that other load does not count.
# One of a few tries must hold it: a shared machine gives a processor's second more or less work.
SECONDS = 10.0
MEBIBYTES = 1024.0
TRIES = 3


def build(command: list[str]) -> float:
    """Processor seconds of the command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> str | None:
    source, folder, compiler = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"{source.stem}.{Path(compiler[0]).name}"
    for _ in range(TRIES):
        seconds = build([*compiler, "-O2", str(source), "-o", str(program)])
        if seconds <= SECONDS:
            break
    mebibytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{source.name}: built in {seconds:.1f} s of processor time, {mebibytes:.0f} MiB at most", flush=True)
    if seconds > SECONDS or mebibytes > MEBIBYTES:
        return f"{source}: allowed are {SECONDS:.0f} s and {MEBIBYTES:.0f} MiB; make what is included less a template"

    result = subprocess.run([str(program)])
    return f"{program}: exit code {result.returncode}, must be 0" if result.returncode != 0 else None


if __name__ == "__main__":
    sys.exit(main())
