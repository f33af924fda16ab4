"""HTTPS: the registry's own, with every kind of client, and what it says of wrong files."""

import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority
from pulling import CODE, Client, snapshot_files
from registry import KERNELS, Registry
from stub import variant

FILES = variant("torch-universal", {"__init__.py": b"VALUE = 1\n", "big.bin": os.urandom(2_000_000)})
REPOSITORY = "alice/secure"


VARIABLES = ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"]


@pytest.fixture(autouse=True)
def no_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def python(script: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HF_HOME": str(home), **environment}
    return subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory, certificates: Authority) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("tls")
    with Registry(KERNELS, folder / "root", *certificates.options()) as registry:
        for path, data in FILES.items():
            (folder / "files" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "files" / path).write_bytes(data)
        script = (
            "from huggingface_hub import HfApi\napi = HfApi()\n"
            f"api.create_repo('{REPOSITORY}', repo_type='kernel')\n"
            f"api.upload_folder(repo_id='{REPOSITORY}', repo_type='kernel', folder_path='{folder / 'files'}')\n"
            f"api.create_branch('{REPOSITORY}', branch='v1', repo_type='kernel')"
        )
        done = python(
            script,
            folder / "home",
            HF_ENDPOINT=registry.endpoint,
            HF_TOKEN=registry.writer,
            SSL_CERT_FILE=str(certificates.file),
        )
        assert done.returncode == 0, done.stderr
        yield registry


def without_attributes(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if path != ".gitattributes"}


def test_huggingface_hub(registry: Registry, certificates: Authority, tmp_path: Path) -> None:
    script = f"from huggingface_hub import snapshot_download as s; print(s('{REPOSITORY}', repo_type='kernel'))"
    env = {"HF_ENDPOINT": registry.endpoint, "SSL_CERT_FILE": str(certificates.file)}
    done = python(script, tmp_path, **env)
    assert done.returncode == 0, done.stderr
    assert without_attributes(snapshot_files(Path(done.stdout.strip()))) == FILES


@pytest.mark.parametrize("variable", VARIABLES)
def test_our_client(registry: Registry, certificates: Authority, tmp_path: Path, variable: str) -> None:
    run = Client(tmp_path, registry.endpoint)("pull", f"{REPOSITORY}@1", env={variable: str(certificates.file)})
    assert snapshot_files(run.path) == FILES


def test_our_client_refuses_an_authority_that_it_does_not_know(registry: Registry, tmp_path: Path) -> None:
    run = Client(tmp_path, registry.endpoint)("pull", f"{REPOSITORY}@1")
    assert run.code == CODE["network"]
    assert "name the CA certificates of your network in SSL_CERT_FILE" in run.err


def test_curl_and_the_version_of_tls(registry: Registry, certificates: Authority) -> None:
    def curl(*options: str) -> subprocess.CompletedProcess[str]:
        command = ["curl", "-sS", "--cacert", str(certificates.file), *options, registry.endpoint + "/health"]
        return subprocess.run(command, capture_output=True, text=True, timeout=30)

    for version in ("1.2", "1.3"):
        assert curl(f"--tlsv{version}", "--tls-max", version).stdout == "ok\n"
    # At security level 0 OpenSSL offers even this; the server has to refuse it.
    old = curl("--tlsv1.1", "--tls-max", "1.1", "--ciphers", "ALL:@SECLEVEL=0")
    assert old.returncode == 35  # no handshake
    assert "SSL_connect" in old.stderr


def test_plain_http_to_the_port_is_no_answer_and_no_end(registry: Registry, certificates: Authority) -> None:
    with pytest.raises(OSError):
        urllib.request.urlopen(registry.endpoint.replace("https", "http") + "/health", timeout=10)
    trusting = ssl.create_default_context(cafile=certificates.file)
    with urllib.request.urlopen(registry.endpoint + "/health", context=trusting, timeout=10) as answer:
        assert answer.read() == b"ok\n"


def refusal(tmp_path: Path, certificate: object, key: object) -> str:
    """What the server says; it must not start, and must not make its folder."""
    command = [KERNELS, "serve", "--root", tmp_path / "root", "--cert", certificate, "--key", key]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert done.stdout == ""
    return done.stderr


def test_wrong_files_are_told_at_the_start(certificates: Authority, tmp_path: Path) -> None:
    certificate, key = certificates.certificate(), certificates.key()
    other, encrypted, text = certificates.key("ca"), tmp_path / "encrypted.key", tmp_path / "text"
    text.write_text("hello\n")
    text.chmod(0o600)
    certificates.run("pkey", "-in", key, "-aes128", "-passout", "pass:secret", "-out", encrypted)
    absent = tmp_path / "absent"
    assert f"--cert: cannot read {absent}: No such file or directory" in refusal(tmp_path, absent, key)
    assert f"--key: cannot read {absent}: No such file or directory" in refusal(tmp_path, certificate, absent)
    assert f"--cert: cannot read {tmp_path}: Is a directory" in refusal(tmp_path, tmp_path, key)
    assert f"--cert: {text} holds no certificate in PEM form" in refusal(tmp_path, text, key)
    assert f"--cert: {key} holds no certificate in PEM form" in refusal(tmp_path, key, key)
    assert f"--key: {text} holds no private key in PEM form" in refusal(tmp_path, certificate, text)
    assert f"--key: {encrypted} is encrypted" in refusal(tmp_path, certificate, encrypted)
    assert f"the key {other} does not belong to the first certificate of" in refusal(tmp_path, certificate, other)


def test_a_key_that_all_may_read_is_refused(certificates: Authority, tmp_path: Path) -> None:
    key = tmp_path / "open.key"
    key.write_bytes(certificates.key().read_bytes())
    certificate = certificates.certificate()
    for mode in (0o644, 0o602):
        key.chmod(mode)
        said = refusal(tmp_path, certificate, key)
        assert f"--key: every user of this machine has access to {key}" in said
        assert f"run chmod o= {key}" in said
    key.chmod(0o640)
    with Registry(KERNELS, tmp_path / "root", "--cert", str(certificate), "--key", str(key)):
        pass
