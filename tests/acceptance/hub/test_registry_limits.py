"""The registry's limits: clients that are too slow, and requests that are too large or no HTTP."""

import contextlib
import os
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority
from registry import KERNELS, Registry

DEADLINE = 2  # seconds; a connection is looked at once a second
HURRY = ("--header-deadline", str(DEADLINE), "--least-rate", "1024")


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with Registry(KERNELS, tmp_path_factory.mktemp("hasty") / "root", *HURRY, "--idle-deadline", "60") as registry:
        yield registry


def connect(registry: Registry, receive_buffer: int = 0) -> socket.socket:
    s = socket.socket()
    if receive_buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    s.settimeout(30)
    s.connect(("127.0.0.1", registry.port))
    return s


def answer(s: socket.socket) -> bytes:
    """All that comes until the server closes."""
    got = b""
    with contextlib.suppress(ConnectionError):
        while piece := s.recv(1 << 16):
            got += piece
    return got


def seconds_until_closed(s: socket.socket, drip: bytes) -> float:
    """Sends `drip` byte by byte, five a second, until the connection has ended."""
    begin = time.monotonic()
    s.settimeout(0.2)
    for i in range(200):
        try:
            s.sendall(drip[i % len(drip) : i % len(drip) + 1])
            if s.recv(1) == b"":
                break
        except TimeoutError:
            continue
        except ConnectionError:
            break
    return time.monotonic() - begin


def in_time(seconds: float) -> bool:
    return DEADLINE <= seconds <= DEADLINE + 3


def test_a_slow_header_is_cut(hasty: Registry) -> None:
    s = connect(hasty)
    s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: ")
    assert in_time(seconds_until_closed(s, b"a"))


def test_a_silent_connection_is_cut(hasty: Registry) -> None:
    s = connect(hasty)
    begin = time.monotonic()
    assert answer(s) == b""
    assert in_time(time.monotonic() - begin)


def test_a_slow_header_of_a_second_request_is_cut(hasty: Registry) -> None:
    s = connect(hasty)
    s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert s.recv(1 << 16).endswith(b"ok\n")
    assert in_time(seconds_until_closed(s, b"GET / HTTP/1.1 "))


def test_an_idle_connection_is_kept_for_its_own_time(tmp_path: Path, hasty: Registry) -> None:
    request = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    s = connect(hasty)
    s.sendall(request)
    assert s.recv(1 << 16).endswith(b"ok\n")
    time.sleep(2 * DEADLINE + 1)
    s.sendall(request)
    assert s.recv(1 << 16).endswith(b"ok\n")
    with Registry(KERNELS, tmp_path / "root", "--idle-deadline", "2") as registry:
        s = connect(registry)
        s.sendall(request)
        begin = time.monotonic()
        assert answer(s).endswith(b"ok\n")
        assert 1 <= time.monotonic() - begin <= 5


def test_a_slow_body_is_cut(hasty: Registry) -> None:
    s = connect(hasty)
    s.sendall(b"POST /api/validate-yaml HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
    assert in_time(seconds_until_closed(s, b"a"))


def test_a_body_that_becomes_slow_is_cut(hasty: Registry) -> None:
    s = connect(hasty)
    s.sendall(b"POST /api/validate-yaml HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" + b"a" * 4_000_000)
    assert DEADLINE <= seconds_until_closed(s, b"a") <= 2 * DEADLINE + 3


def test_a_steady_body_is_taken(hasty: Registry) -> None:
    body = b'"' + b"a" * 40_000 + b'"'
    s = connect(hasty)
    s.sendall(b"POST /api/validate-yaml HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body))
    for at in range(0, len(body), 4000):  # 8 kB a second for five seconds
        s.sendall(body[at : at + 4000])
        time.sleep(0.5)
    assert s.recv(1 << 16).startswith(b"HTTP/1.1 200")


def ask_for_large_file(registry: Registry, receive_buffer: int = 0) -> socket.socket:
    repository = registry.create("large")
    assert registry.commit(repository, {"large.bin": os.urandom(64_000_000)})[0] == 200
    s = connect(registry, receive_buffer)
    s.sendall(f"GET /kernels/{repository}/resolve/main/large.bin HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return s


def test_a_slow_reader_is_cut(tmp_path: Path) -> None:
    # A rate that the kernel's buffers alone do not reach.
    with Registry(KERNELS, tmp_path / "root", "--header-deadline", str(DEADLINE), "--least-rate", "50000") as registry:
        s = ask_for_large_file(registry, receive_buffer=4096)
        got = b""
        for _ in range(10 * (DEADLINE + 3)):
            got += s.recv(20)
            time.sleep(0.1)
        assert len(got + answer(s)) < 20_000  # what the kernel had taken before the cut


def test_a_reader_that_stops_is_cut(tmp_path: Path) -> None:
    with Registry(KERNELS, tmp_path / "root", "--idle-deadline", "2") as registry:
        s = ask_for_large_file(registry)
        time.sleep(5)
        assert len(answer(s)) < 30_000_000


def test_a_slow_handshake_is_cut(tmp_path: Path, certificates: Authority) -> None:
    with Registry(KERNELS, tmp_path / "root", *certificates.options(), *HURRY) as registry:
        begin = time.monotonic()
        assert answer(connect(registry)) == b""
        assert in_time(time.monotonic() - begin)
        trusting = ssl.create_default_context(cafile=certificates.file)
        s = trusting.wrap_socket(connect(registry), server_hostname="127.0.0.1")
        s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert s.recv(1 << 16)


POST = b"POST /api/validate-yaml HTTP/1.1\r\nHost: x\r\n"
GET = b"GET /health HTTP/1.1\r\nHost: x\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
MALFORMED = {
    "negative length": (POST + b"Content-Length: -5\r\n\r\nhello", 400),
    "length that is no number": (POST + b"Content-Length: 5x\r\n\r\nhello", 400),
    "length beyond 64 bits": (POST + b"Content-Length: 99999999999999999999999\r\n\r\nhello", 413),
    "two lengths": (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
    "length and coding": (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "other coding": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "chunk size that is no number": (CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n", 400),
    "negative chunk size": (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", 400),
    "chunk size beyond 64 bits": (CHUNKED + b"f" * 20 + b"\r\nhello\r\n0\r\n\r\n", 413),
    "chunk longer than it says": (CHUNKED + b"2\r\nhello\r\n0\r\n\r\n", 400),
    "zero byte in the address": (b"GET /health\0/x HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "zero byte before the query": (b"GET /health\0?x=1 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "%00 in the address": (b"GET /api/%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
    "../ in the address": (
        b"GET /kernels/a/b/resolve/main/../../x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        401,
    ),
    "overlong UTF-8": (b"GET /%c0%ae%c0%ae/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
    "overlong UTF-8, not escaped": (b"GET /\xc0\xae/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 400),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "two hosts": (b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    "path in the host": (b"GET /health HTTP/1.1\r\nHost: a/b@c\r\n\r\n", 400),
    "field without a colon": (GET + b"foo\r\n\r\n", 400),
    "no version": (b"GET /health\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "unknown method": (b"FOO /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
    "large field": (GET + b"X-A: " + b"a" * 100_000 + b"\r\n\r\n", 431),
    "many fields": (GET + b"".join(b"A%d: b\r\n" % i for i in range(5000)) + b"\r\n", 431),
    "large address": (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
    "large body": (POST + b"Connection: close\r\nContent-Length: 9000000\r\n\r\n" + b"a" * 9_000_000, 413),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_request_is_refused_and_its_connection_closed(hasty: Registry, what: str) -> None:
    request, status = MALFORMED[what]
    s = connect(hasty)
    with contextlib.suppress(ConnectionError):  # it may answer before it has all
        s.sendall(request)
    line = answer(s).split(b"\r\n")[0]
    assert line.startswith(b"HTTP/1.1 %d " % status), line
    assert hasty.get("/health") == b"ok\n"


def test_what_follows_a_request_of_unclear_length_is_not_run(hasty: Registry) -> None:
    s = connect(hasty)
    s.sendall(POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + GET + b"\r\n")
    assert answer(s).count(b"HTTP/1.1 ") == 1


def test_noise_is_not_answered_as_a_request(hasty: Registry) -> None:
    for noise in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"\r\n" * 40_000, os.urandom(200_000)):
        s = connect(hasty)
        with contextlib.suppress(OSError):
            s.sendall(noise)
            s.shutdown(socket.SHUT_WR)
        assert not answer(s).startswith((b"HTTP/1.1 2", b"HTTP/1.1 5"))
        assert hasty.get("/health") == b"ok\n"


@pytest.mark.parametrize("size", [128 << 10, (128 << 10) + 1, 1_000_000])
def test_a_file_in_git_is_sent_whole_and_in_part_from_memory_or_disk(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    with Registry(KERNELS, tmp_path / "root") as registry:
        repository = registry.create("in-git")
        assert registry.commit(repository, {"f.bin": content})[0] == 200
        target = f"/kernels/{repository}/resolve/main/f.bin"
        status, header, body = registry.call("GET", target)
        assert (status, header["Content-Length"], body == content) == (200, str(size), True)
        status, header, body = registry.call("GET", target, Range="bytes=100-131299")
        part = content[100:131300]
        assert (status, header["Content-Range"], body == part) == (206, f"bytes 100-{99 + len(part)}/{size}", True)
        status, header, body = registry.call("HEAD", target)
        assert (status, header["Content-Length"], body) == (200, str(size), b"")
        assert list((tmp_path / "root" / "tmp").iterdir()) == []
