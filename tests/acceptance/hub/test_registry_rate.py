"""The registry's rate limit: what a refusal says, who is counted, and that clients wait and finish."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from pulling import Client, snapshot_files
from registry import KERNELS, Registry
from stub import variant

FILES = variant("torch-universal", {f"f{i:02}.txt": b"%d" % i for i in range(30)})


def limited(folder: Path, rate: str, *options: str) -> Registry:
    return Registry(KERNELS, folder / "root", "--rate-limit", rate, *options)


def publish(registry: Registry) -> str:
    repository = registry.create("many")
    assert registry.commit(repository, FILES)[0] == 200
    return repository


def test_a_refusal_says_how_long_to_wait_in_both_forms(tmp_path: Path) -> None:
    with limited(tmp_path, "5/2") as registry:
        statuses = [registry.call("GET", "/api/whoami-v2")[0] for _ in range(6)]
        assert statuses == [200] * 5 + [429]
        _, header, body = registry.call("GET", "/api/whoami-v2")
        wait = int(header["Retry-After"])
        assert wait in (1, 2)
        assert header["RateLimit"] == f'"api";r=0;t={wait}'
        assert header["RateLimit-Policy"] == '"fixed window";"api";q=5;w=2'
        assert json.loads(body) == {"error": header["X-Error-Message"]}
        assert header["X-Error-Message"] == f"Too many requests: 5 in 2 s are allowed; try again in {wait} s"
        assert "X-Error-Code" not in header
        assert registry.get("/health") == b"ok\n"  # probes are not counted
        assert registry.metric("requests_refused_total") == 2
        time.sleep(wait)
        assert registry.call("GET", "/api/whoami-v2")[0] == 200


def test_a_token_is_counted_wherever_it_comes_from_and_made_up_ones_by_address(tmp_path: Path) -> None:
    with limited(tmp_path, "4/60") as registry:
        alice, bob = {}, {"Authorization": f"Bearer {registry.reader}"}

        def ask(who: dict[str, str]) -> int:
            return registry.call("GET", "/api/kernels", **who)[0]

        assert [ask(alice) for _ in range(5)] == [200] * 4 + [429]
        assert [ask(bob) for _ in range(5)] == [200] * 4 + [429]
        invented = [ask({"Authorization": f"Bearer hf_{i}"}) for i in range(5)]
        assert invented == [401] * 4 + [429]
        assert ask({"Authorization": ""}) == 429  # the same address


def test_a_forwarded_address_counts_only_from_a_trusted_proxy(tmp_path: Path) -> None:
    def statuses(registry: Registry, addresses: list[str]) -> list[int]:
        field = "X-Forwarded-For"
        return [registry.call("GET", "/api/kernels", **{"Authorization": "", field: a})[0] for a in addresses]

    with limited(tmp_path / "direct", "2/60") as registry:
        assert statuses(registry, ["10.0.0.1", "10.0.0.2", "10.0.0.3"]) == [200, 200, 429]
    with limited(tmp_path / "behind", "2/60", "--trusted-proxy", "127.0.0.1") as registry:
        assert statuses(registry, ["10.0.0.1"] * 3 + ["10.0.0.2"]) == [200, 200, 429, 200]
        # What a client writes itself stands before what the proxy adds.
        assert statuses(registry, ["10.9.9.9, 10.0.0.1", "10.0.0.1, 10.0.0.3"]) == [429, 200]
        # A home has a /64 of addresses.
        assert statuses(registry, ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8:0:1::1"]) == [
            200,
            200,
            429,
            200,
        ]


def test_many_addresses_take_no_memory(tmp_path: Path) -> None:
    with limited(tmp_path, "100/600", "--trusted-proxy", "127.0.0.1") as registry:
        connection = http.client.HTTPConnection("127.0.0.1", registry.port)

        def ask(first: int, count: int) -> int:
            for i in range(first, first + count):
                forwarded = f"10.{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}"
                connection.request("GET", "/api/whoami-v2", headers={"X-Forwarded-For": forwarded})
                connection.getresponse().read()
            return registry.peak_bytes()

        before = ask(0, 1000)
        assert ask(1000, 20_000) - before < 1_000_000
        connection.close()


def test_huggingface_hub_waits_and_finishes(tmp_path: Path) -> None:
    with limited(tmp_path, "12/2") as registry:
        repository = publish(registry)
        time.sleep(2)  # the plain calls at the start of a download are not tried again by this client
        script = f"from huggingface_hub import snapshot_download as s; print(s('{repository}', repo_type='kernel'))"
        env = {"PATH": os.environ["PATH"], "HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": registry.endpoint}
        done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert snapshot_files(Path(done.stdout.split()[-1])) == FILES
        assert registry.metric("requests_refused_total") > 0


def test_our_client_waits_and_finishes(tmp_path: Path) -> None:
    with limited(tmp_path, "12/2") as registry:
        repository = publish(registry)
        client = Client(tmp_path / "home", registry.endpoint)
        run = client("pull", repository, "--revision", "main")
        assert snapshot_files(run.path) == FILES
        assert registry.metric("requests_refused_total") > 0
        assert re.search(r"HTTP 429; next try in [123] s", run.err)


def test_a_wrong_limit_is_a_usage_error(tmp_path: Path) -> None:
    for wrong in ("0/5", "5", "5/", "/5", "5/0", "-5/5", "5/x", "5/100000"):
        command = [KERNELS, "serve", "--root", str(tmp_path / "root"), f"--rate-limit={wrong}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 2
        assert f"--rate-limit is '{wrong}'; expected REQUESTS/SECONDS" in done.stderr
        assert "for example --rate-limit 500/300" in done.stderr
