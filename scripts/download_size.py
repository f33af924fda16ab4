"""Says what `pip install ARGUMENT...` is about to download, and how large it is, before it starts.

usage: download_size.py ARGUMENT...        the arguments of pip install
"""

import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor


def size_of(url: str) -> int | None:
    """Bytes of the file; None where the server does not tell."""
    parts = urllib.parse.urlsplit(url)
    try:
        if parts.scheme == "file":
            return os.stat(urllib.request.url2pathname(parts.path)).st_size
        request = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(request, timeout=15) as response:
            return int(response.headers["Content-Length"])
    except (OSError, TypeError, ValueError):
        return None


def main() -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--dry-run"]
    result = subprocess.run([*command, "--report", "-", *sys.argv[1:]], capture_output=True, text=True)
    if result.returncode != 0:
        return  # pip install, which comes next, tells why
    packages = {item["metadata"]["name"]: item["download_info"]["url"] for item in json.loads(result.stdout)["install"]}
    if not packages:
        print("Nothing to download.")
        return
    with ThreadPoolExecutor(8) as pool:
        sizes = dict(zip(packages, pool.map(size_of, packages.values()), strict=True))
    known = {name: size for name, size in sizes.items() if size is not None}
    largest = sorted(known, key=lambda name: -known[name])[:3]
    print(f"{len(packages)} packages, {sum(known.values()) / 1e6:,.1f} MB", end="")
    print(f" and {len(sizes) - len(known)} of unknown size" if len(known) < len(sizes) else "", end="")
    print("; the largest: " + ", ".join(f"{name} {known[name] / 1e6:,.1f} MB" for name in largest), flush=True)
    if any(name.startswith("nvidia-") for name in packages):
        print("PyTorch comes as GPU build; a CPU build is enough: name its index in TORCH_INDEX_URL.", flush=True)


if __name__ == "__main__":
    main()
