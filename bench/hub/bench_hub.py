"""The `kernels` client and registry against the real Hugging Face clients, curl and nginx, in one run.

usage: bench_hub.py [--kernels BINARY] [--runs N] [--gib SIZE] [--filter REGEX] [--out JSON]

The contestants of a case take turns, each round begins with another one, and every download starts from an empty
cache and is compared byte by byte before it counts. All run against one `kernels serve` on loopback, but for the
server cases, where nginx serves the same file. Writes build/bench/hub.json: the goals with what was reached, and
all times in seconds. Wants a machine that does nothing else.
"""

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "acceptance" / "hub"))
from registry import Registry, free_port  # noqa: E402

FILES, FILE_BYTES, PARALLEL = 200, 100_000, 8
VARIANT = "build/torch-universal"
METADATA = json.dumps(
    {
        "name": "bench",
        "id": "_bench",
        "version": 1,
        "license": "MIT",
        "python-depends": [],
        "backend": {"type": "cpu"},
    }
).encode()


@dataclass
class Run:
    """What one process took."""

    seconds: float
    peak_bytes: int


@dataclass
class Contestant:
    name: str
    start: Callable[[Path], Run]  # in an empty folder
    runs: list[Run] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(run.seconds for run in self.runs)

    @property
    def peak(self) -> int:
        return max(run.peak_bytes for run in self.runs)


def measured(command: list[str], env: dict[str, str], cwd: Path | None = None) -> Run:
    """Runs the command to its end. Its peak memory is looked at every few milliseconds: what the kernel reports at the
    end counts this process, too, as the child begins as a copy of it."""
    peak = 0
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, env=env, cwd=cwd, stdout=subprocess.DEVNULL, stderr=errors)
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.M)
            peak = max(peak, int(found[1]) * 1024 if found else 0)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.005)
        seconds = time.perf_counter() - begin
        if process.returncode != 0:
            errors.seek(0)
            raise RuntimeError(f"{command[:3]} failed: {errors.read()[-400:].decode(errors='replace')}")
    return Run(seconds, peak)


def race(title: str, contestants: list[Contestant], rounds: int) -> None:
    """What a run leaves stays until the race is over: ext4 takes up to 0.5 ms for a new file when others were deleted
    shortly before (recently_deleted in fs/ext4/ialloc.c), and most for who makes most files."""
    with tempfile.TemporaryDirectory(prefix="bench-hub-") as work:
        for turn in range(rounds):
            for i in range(len(contestants)):
                contestant = contestants[(i + turn) % len(contestants)]
                folder = Path(work) / f"{turn}-{i}"
                folder.mkdir()
                contestant.runs.append(contestant.start(folder))
                for file in folder.rglob("*"):
                    if file.is_file() and not file.is_symlink() and file.stat().st_size > 1 << 20:
                        os.truncate(file, 0)
    print(f"\n{title}")
    for c in contestants:
        print(f"  {c.name:24} median {c.median * 1e3:9.1f} ms   peak {c.peak / 2**20:7.1f} MiB", flush=True)


class Bench:
    def __init__(self, options: argparse.Namespace, registry: Registry, work: Path) -> None:
        self.options, self.registry, self.work = options, registry, work
        self.goals: list[dict[str, object]] = []
        self.times: dict[str, dict[str, list[float]]] = {}

    # ---- what the cases share ----

    def env(self, home: Path) -> dict[str, str]:
        keep = {
            k: v for k, v in os.environ.items() if not k.startswith(("HF_", "KERNELS_")) and "proxy" not in k.lower()
        }
        # The registry of agent harnesses is one more request of each Python process unless it is there already.
        (home / ".agent_harnesses.json").write_text('{"standardEnvVars": [], "harnesses": {}}')
        return keep | {
            "HF_HOME": str(home),
            "HF_ENDPOINT": self.registry.endpoint,
            "HF_TOKEN": self.registry.writer,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        }

    def goal(self, name: str, unit: str, wanted: str, limit: float, reached: float, at_most: bool = True) -> None:
        met = reached <= limit if at_most else reached >= limit
        self.goals.append({"goal": name, "wanted": wanted, "reached": reached, "unit": unit, "met": met})

    def record(self, title: str, contestants: list[Contestant]) -> None:
        race(title, contestants, self.options.runs)
        self.times[title] = {c.name: [r.seconds for r in c.runs] for c in contestants}

    def push(self, name: str, files: dict[str, bytes | Path]) -> tuple[str, str]:
        """Pushes a package by huggingface_hub; its repository and the commit of branch v1."""
        from huggingface_hub import CommitOperationAdd, HfApi

        api = HfApi(endpoint=self.registry.endpoint, token=self.registry.writer)
        repository = f"{self.registry.trusted_org}/{name}"
        api.create_repo(repository, repo_type="kernel")
        api.create_branch(repository, repo_type="kernel", branch="v1")
        done = api.create_commit(
            repository,
            [CommitOperationAdd(path, str(data) if isinstance(data, Path) else data) for path, data in files.items()],
            commit_message="Add build",
            repo_type="kernel",
            revision="v1",
        )
        return repository, done.oid

    # ---- cases ----

    def start_up(self) -> None:
        env = self.env(self.work)
        ours = Contestant("kernels --version", lambda _: measured([self.options.kernels, "--version"], env))
        curl = Contestant("curl --version", lambda _: measured(["curl", "--version"], env))
        race("start-up", [ours, curl], 4 * self.options.runs)
        self.times["start-up"] = {c.name: [r.seconds for r in c.runs] for c in (ours, curl)}
        self.goal("start-up", "ms", "<= 15", 15, ours.median * 1e3)
        self.goal("start-up over curl --version", "x", "<= 1.2", 1.2, ours.median / curl.median)

    def small_files(self) -> None:
        data = {f"{VARIANT}/f{i:03d}.bin": os.urandom(FILE_BYTES) for i in range(FILES - 2)}
        data[f"{VARIANT}/__init__.py"] = b"x = 1\n"
        data[f"{VARIANT}/metadata.json"] = METADATA
        repository, commit = self.push("bench-small", data)
        url = f"{self.registry.endpoint}/kernels/{repository}/resolve/{commit}"

        def check(folder: Path) -> None:
            for path, content in data.items():
                if (folder / path).read_bytes() != content:
                    raise RuntimeError(f"{path} differs from what was pushed")

        def ours(folder: Path) -> Run:
            run = measured([self.options.kernels, "pull", f"{repository}@{commit}"], self.env(folder))
            check(next(folder.glob("hub/kernels--*/snapshots/*")))
            return run

        def curl(folder: Path) -> Run:
            lines = [f'url = "{url}/{path}"\noutput = "{folder}/{path}"\ncreate-dirs\n' for path in data]
            (folder / "list").write_text("".join(lines))
            command = ["curl", "-sS", "--fail", "-H", f"Authorization: Bearer {self.registry.writer}", "-K", "list"]
            run = measured([*command, "--parallel", "--parallel-max", str(PARALLEL)], self.env(folder), folder)
            check(folder)
            return run

        def hf(folder: Path) -> Run:
            command = ["hf", "download", repository, "--type", "kernel", "--revision", commit, "--quiet"]
            run = measured([str(Path(sys.executable).parent / command[0]), *command[1:]], self.env(folder))
            check(next(folder.glob("hub/kernels--*/snapshots/*")))
            return run

        pull = Contestant("kernels pull", ours)
        peers = [Contestant(f"curl, {PARALLEL} parallel", curl), Contestant("hf download", hf)]
        self.record(f"{FILES} files x {FILE_BYTES // 1000} kB, empty cache", [pull, *peers])
        self.goal("200 files over curl", "x", "<= 1.5", 1.5, pull.median / peers[0].median)
        self.goal("200 files, hf download over ours", "x", ">= 5", 5, peers[1].median / pull.median, at_most=False)
        self.goal("client memory, 200 files", "MiB", "<= 64", 64, pull.peak / 2**20)
        self.nothing_to_do(repository)

    def nothing_to_do(self, repository: str) -> None:
        with tempfile.TemporaryDirectory(prefix="bench-hub-") as folder:
            env = self.env(Path(folder))
            command = [self.options.kernels, "pull", f"{repository}@v1"]
            measured(command, env)
            before = self.registry.requests()
            measured(command, env)
            requests = self.registry.requests() - before - 1  # the look at the counter is one
            again = Contestant("kernels pull, again", lambda _: measured(command, env))
            race("nothing to do", [again], 4 * self.options.runs)
        self.times["nothing to do"] = {again.name: [r.seconds for r in again.runs]}
        self.goal("no-op pull", "ms", "<= 30", 30, again.median * 1e3)
        self.goal("no-op pull, requests", "", "<= 2", 2, requests)

    def large_file(self) -> None:
        path = self.work / "large.bin"
        block, left = os.urandom(1 << 24), int(self.options.gib * 2**30)
        digest = hashlib.sha256()
        with path.open("wb") as file:
            while left > 0:
                file.write(block[:left])
                digest.update(block[:left])
                left -= len(block)
        files = {f"{VARIANT}/large.bin": path, f"{VARIANT}/metadata.json": METADATA, f"{VARIANT}/__init__.py": b""}
        repository, commit = self.push("bench-large", files)
        url = f"{self.registry.endpoint}/kernels/{repository}/resolve/{commit}/{VARIANT}/large.bin"

        def ours(folder: Path) -> Run:
            return measured([self.options.kernels, "pull", f"{repository}@{commit}"], self.env(folder))

        def curl(folder: Path) -> Run:
            token = f"Authorization: Bearer {self.registry.writer}"
            return measured(
                ["curl", "-sS", "--fail", "-L", "-H", token, "-o", str(folder / "f"), url], self.env(folder)
            )

        def openssl(folder: Path) -> Run:
            return measured(["openssl", "dgst", "-sha256", str(path)], self.env(folder))

        pull, peers = Contestant("kernels pull", ours), [Contestant("curl", curl), Contestant("openssl", openssl)]
        self.record(f"one file of {self.options.gib:g} GiB, empty cache", [pull, *peers])
        slower = max(peer.median for peer in peers)
        self.goal(
            "1 GiB, slower of curl and openssl over ours", "x", ">= 0.9", 0.9, slower / pull.median, at_most=False
        )
        self.goal("client memory, 1 GiB", "MiB", "<= 64", 64, pull.peak / 2**20)

    def downloaders(self, clients: int = 256, size: int = 1 << 20) -> None:
        """256 connections that get the file again and again, from our server and from nginx."""
        content = os.urandom(size)
        repository, commit = self.push("bench-shared", {f"{VARIANT}/shared.bin": content})
        target = f"/kernels/{repository}/resolve/{commit}/{VARIANT}/shared.bin"
        headers = {"Authorization": f"Bearer {self.registry.writer}"}
        if self.registry.get(target, headers) != content:
            raise RuntimeError("the registry serves other bytes than were pushed")
        contestants: dict[str, list[Load]] = {"kernels serve": [], "nginx": []}
        with nginx(self.work / "nginx", content) as port:
            for turn in range(2 * self.options.runs):
                if turn % 2 == 0:
                    contestants["kernels serve"].append(load(self.registry.port, target, headers, clients))
                else:
                    contestants["nginx"].append(load(port, "/shared.bin", {}, clients))
        in_git = self.registry.create("bench-in-git", self.registry.trusted_org)
        self.registry.commit(in_git, {"f.bin": os.urandom(1_000_000)})  # for the server's memory: by another way
        load(self.registry.port, f"/kernels/{in_git}/resolve/main/f.bin", headers, clients)
        print(f"\n{clients} downloaders of a file of {size >> 20} MiB")
        ours, peer = (sorted(runs, key=lambda run: run.rate)[len(runs) // 2] for runs in contestants.values())
        for name, run in {"kernels serve": ours, "nginx": peer}.items():
            print(
                f"  {name:24} {run.rate / 1e6:8.0f} MB/s   p99 {run.p99 * 1e3:8.1f} ms   errors {run.errors}",
                flush=True,
            )
        for name, runs in contestants.items():
            self.times[f"{clients} downloaders, p99: {name}"] = {name: [run.p99 for run in runs]}
        self.goal("256 downloaders, errors", "", "0", 0, sum(run.errors for run in contestants["kernels serve"]))
        self.goal("256 downloaders, throughput over nginx", "x", ">= 0.7", 0.7, ours.rate / peer.rate, at_most=False)
        self.goal("server memory", "MiB", "<= 64", 64, self.registry.peak_bytes() / 2**20)

    def many_repositories(self, count: int = 10_000) -> None:
        self.registry.make_repositories(self.registry.trusted_org, count)
        token = {"Authorization": f"Bearer {self.registry.writer}"}
        for name, query in {"list": "?limit=100", "search": "?search=many-07&limit=100"}.items():
            seconds = []
            for _ in range(10):
                begin = time.perf_counter()
                entries = json.loads(self.registry.get(f"/api/kernels{query}", token))
                seconds.append(time.perf_counter() - begin)
                if len(entries) != 100:
                    raise RuntimeError(f"{name} of {count} repositories gave {len(entries)} entries, expected 100")
            self.times[f"{count} repositories"] = {name: seconds}
            self.goal(f"{name} {count} repositories", "ms", "< 100", 100, statistics.median(seconds) * 1e3)


@contextlib.contextmanager
def nginx(folder: Path, content: bytes) -> Iterator[int]:
    """nginx serving /shared.bin; its port."""
    (folder / "www").mkdir(parents=True)
    (folder / "www" / "shared.bin").write_bytes(content)
    port = free_port()
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"""{"user root;" if os.getuid() == 0 else ""}
        daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes auto;
        events {{ worker_connections 2048; }}
        http {{
          access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000;
          client_body_temp_path {folder}/body; {temporary}
          server {{ listen 127.0.0.1:{port} backlog=1024; root {folder}/www; }}
        }}
        """
    )
    (folder / "www").chmod(0o755)
    process = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                http.client.HTTPConnection("127.0.0.1", port, timeout=1).connect()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


@dataclass
class Load:
    rate: float  # bytes per second
    p99: float  # seconds of one file
    errors: int


def load(port: int, target: str, headers: dict[str, str], clients: int, seconds: int = 4) -> Load:
    command = ["wrk", "-t2", f"-c{clients}", f"-d{seconds}s", "--latency", "--timeout", "30s"]
    for name, value in headers.items():
        command += ["-H", f"{name}: {value}"]
    out = subprocess.run(
        [*command, f"http://127.0.0.1:{port}{target}"], check=True, capture_output=True, text=True
    ).stdout
    rate = re.search(r"Transfer/sec:\s+([\d.]+)([KMGT]?B)", out)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s)", out)
    assert rate is not None and p99 is not None, out
    socket_errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    other = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    errors = sum(map(int, socket_errors.groups())) if socket_errors else 0
    bytes_of = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
    seconds_of = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
    return Load(
        float(rate[1]) * bytes_of[rate[2]], float(p99[1]) * seconds_of[p99[2]], errors + (int(other[1]) if other else 0)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", default=str(ROOT / "build" / "hub" / "cli" / "kernels"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--gib", type=float, default=1.0)
    parser.add_argument("--filter", default="", help="cases whose name matches, of: %(default)s")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "hub.json")
    options = parser.parse_args()
    missing = [program for program in ("curl", "nginx", "openssl", "wrk") if shutil.which(program) is None]
    if missing:
        print(f"bench_hub: missing programs: {', '.join(missing)}; `make bench-hub` installs them", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="bench-hub-") as folder:
        work = Path(folder)
        with Registry(options.kernels, work / "root") as registry:
            bench = Bench(options, registry, work)
            for case in (
                bench.start_up,
                bench.small_files,
                bench.large_file,
                bench.downloaders,
                bench.many_repositories,
            ):
                if re.search(options.filter, case.__name__):
                    case()
    print(f"\n{'goal':44} {'wanted':>8} {'reached':>10}")
    for goal in bench.goals:
        verdict = "met" if goal["met"] else "MISSED"
        print(f"{goal['goal']:44} {goal['wanted']:>8} {goal['reached']:10.2f} {goal['unit']:4} {verdict}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"cpus": os.cpu_count(), "goals": bench.goals, "seconds": bench.times}, indent=1))
    print(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
