"""A compile-fail case is built twice: as it is it must pass, with -DBAD it must fail with the text of its first line.

usage: compile_fail.py SOURCE COMPILER [FLAG...]        first line of SOURCE: "// error: TEXT"
"""

import os
import subprocess
import sys
from pathlib import Path


def main() -> str | None:
    source, compiler = sys.argv[1], sys.argv[2:]
    first_line = Path(source).read_text().splitlines()[0]
    prefix = "// error: "
    if not first_line.startswith(prefix):
        return f"{source}:1: is {first_line!r}; must be '{prefix}TEXT', TEXT being part of the expected message"
    expected = first_line.removeprefix(prefix)

    def build(*flags: str) -> subprocess.CompletedProcess[str]:
        command = [*compiler, *flags, "-fsyntax-only", source]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})

    good = build()
    if good.returncode != 0:
        return f"{source}: must compile without -DBAD, but:\n{good.stderr}"
    bad = build("-DBAD")
    if bad.returncode == 0:
        return f"{source}: must not compile with -DBAD, but does"
    if expected not in bad.stderr:
        return f"{source}: with -DBAD the error must contain {expected!r}, but is:\n{bad.stderr}"
    return None


if __name__ == "__main__":
    sys.exit(main())
