"""What the registry of the page tests holds: packages as people make them, and hostile ones."""

import json
import os
import struct
import subprocess
import zlib
from pathlib import Path
from urllib.parse import quote

from pushing import set_version
from registry import Registry

LONG_OWNED = "trusted/" + "a-package-with-a-name-of-the-greatest-length-that-the-registry-takes-" + "x" * 27
HOSTILE_BRANCH = "main;$(touch${IFS}owned)|'\"&<b>"

CARD = (
    """---
license: apache-2.0
library_name: kernels
tags:
- scale
- "neuron"
---

# my-scale

A factor times a row of numbers, **exactly rounded**, for [Trainium](https://example.com/chip) and any CPU. See
[the header](include/my_scale/scale.hpp), [a file](kernel.toml), and [Shapes](#shapes).

![logo](docs/logo.png) ![from elsewhere](https://tracker.example.com/pixel.png)
[![badge](https://badges.example.com/build.svg)](https://example.com/build)

```cpp
auto a_line_of_code_that_is_far_too_long_for_any_telephone = my_scale::scale(destination, source, factor); // and on
```

## Shapes

| dtype | rows | columns | bound | speed on one core | speed on all cores | note |
|---|--:|--:|---|---|---|---|
| f32 | 1 | 4096 | 1 ulp | 12.3 GB/s | 80.1 GB/s | `destination` may be `source` in all of these cases |
| bf16 | 128 | 4096 | 1 ulp | 10.0 GB/s | 75.5 GB/s | ~~slow~~ fast |

- [x] forward
- [ ] backward

> A quotation, which says little.

<script>document.title = "owned"</script>
<img src=x onerror="document.title='owned'">

[do not](javascript:document.title='owned') https://example.com/an/address/that/is/long/"""
    + "y" * 120
    + "\n"
)


def create(registry: Registry, name: str, kind: str = "kernel", private: bool = False) -> None:
    owner, repository = name.split("/")
    registry.create(repository, organization=owner, type=kind, private=private)


def commit(registry: Registry, name: str, files: dict[str, bytes], kind: str = "kernel", branch: str = "main") -> str:
    """The new commit; its branch is made unless it is main."""
    if branch != "main":
        assert registry.call("POST", f"/api/{kind}s/{name}/branch/{quote(branch, safe='')}", b"{}")[0] == 200
    status, _, answer = registry.commit(name, files, kind, branch)
    assert status == 200, answer
    return str(json.loads(answer)["commitOid"])


def png() -> bytes:
    """A picture of 48 x 24 blue pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x30\x70\xc0" * 48 for _ in range(24))
    header = struct.pack(">IIBBBBB", 48, 24, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def metadata(name: str, backend: str, **more: object) -> bytes:
    return json.dumps({"name": name, "id": name, "version": 1, "backend": {"type": backend}, **more}).encode()


def many_variants() -> dict[str, bytes]:
    """As a kernel for many GPUs has them."""
    files = {}
    for torch in ("210", "211", "212"):
        for backend in ("cu126", "cu130", "rocm71", "cpu"):
            folder = f"build/torch{torch}-cxx11-{backend}-x86_64-linux"
            kind = {"cu": "cuda", "ro": "rocm", "cp": "cpu"}[backend[:2]]
            more = {"python-depends": ["einops"]} if kind == "cuda" else {}
            files[f"{folder}/metadata.json"] = metadata("many", kind, **more)
            files[f"{folder}/_ops.so"] = b"\x7fELF" + bytes(50_000)
    files["build/torch-universal/__init__.py"] = b"VALUE = 1\n"
    files["build/torch-cpu-of-no-known-form/x"] = b""
    files["build/torch-cpu/x"] = bytes(3000)  # sorted by the paths of their files, it comes after the one above
    return files


def push_my_scale(registry: Registry, kernels: str, folder: Path) -> None:
    """trusted/my-scale at three versions, as the command makes and pushes them."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "HF_ENDPOINT": registry.endpoint,
        "HF_TOKEN": registry.writer,
    }
    subprocess.run([kernels, "new", "my-scale"], cwd=folder, check=True, capture_output=True)
    package = folder / "my-scale"
    (package / "CARD.md").write_text(CARD)
    for version in ("0.1.0", "1.0.0", "1.2.0"):
        set_version(package, version)
        command = [kernels, "push", package, "--to", "trusted/my-scale"]
        subprocess.run(command, env=environment, check=True, capture_output=True)
    commit(registry, "trusted/my-scale", {"docs/logo.png": png(), "include/my_scale/scale.hpp": b"// scale\n"})
    commit(registry, "trusted/my-scale", {"kernel.toml": b"schema = 1\n", "docs/binary.bin": bytes(range(256))})


def fill(registry: Registry, kernels: str, folder: Path) -> None:
    push_my_scale(registry, kernels, folder)
    for name in (LONG_OWNED, "alice/hostile", "alice/gated", "alice/empty"):
        create(registry, name)
    commit(registry, LONG_OWNED, {"README.md": b"# long\n\n" + b"unbroken" * 40 + b"\n"})
    commit(registry, LONG_OWNED, many_variants(), branch="v1")
    commit(registry, "alice/hostile", {"README.md": b"<b>bold</b>", "<script>alert(1)</script>.txt": b"<i>&\n"})
    commit(registry, "alice/hostile", {'a "quoted" & <b>.txt': b"x"}, branch=HOSTILE_BRANCH)
    commit(registry, "alice/gated", {"README.md": b"GATED-CONTENT", "gated.txt": b"GATED-CONTENT"}, branch="main")
    assert registry.call("PUT", "/api/kernels/alice/gated/settings", b'{"gated": "manual"}')[0] == 200
    create(registry, "alice/hidden", private=True)
    commit(registry, "alice/hidden", {"README.md": b"PRIVATE-CONTENT"})
    create(registry, "alice/hidden", "model", private=True)
    for kind in ("model", "dataset", "space"):
        create(registry, "alice/tiny", kind)
        commit(registry, "alice/tiny", {"README.md": b"# tiny\n", "config.json": b"{}\n", "a/b/c.txt": b"deep\n"}, kind)
    registry.make_repositories("alice", 60)
