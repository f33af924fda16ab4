"""Sums up a run of test.sh or acceptance.sh: a table of its steps, then "N passed, N failed".

Exit code 1 on any failure.

usage: test_summary.py RESULTS_FOLDER        with steps.tsv (name, exit code, seconds) and NAME.xml (JUnit)
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def outcomes(junit: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    for test in ElementTree.parse(junit).iter("testcase"):
        tags = {child.tag for child in test}
        counts["failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"] += 1
    return counts


def main() -> int:
    folder = Path(sys.argv[1])
    total: Counter[str] = Counter()
    print(f"\n{'step':<22}{'seconds':>8}{'passed':>8}{'failed':>8}{'skipped':>8}")
    for line in (folder / "steps.tsv").read_text().splitlines():
        name, code, seconds = line.split("\t")
        junit = folder / f"{name}.xml"
        counts = outcomes(junit) if junit.exists() else Counter()
        if code != "0" and counts["failed"] == 0:
            counts["failed"] = 1  # the step itself: a build, or a runner that died
        total += counts
        cells = "".join(f"{counts[kind]:>8}" for kind in ("passed", "failed", "skipped"))
        print(f"{name:<22}{seconds:>8}{cells}")

    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    closing = f"{total['passed']} passed, {total['failed']} failed{skipped}"
    (folder / "summary.txt").write_text(closing + "\n")
    print(f"\n{closing}", flush=True)
    return 1 if total["failed"] or not total["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
