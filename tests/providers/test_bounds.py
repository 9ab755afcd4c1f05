"""Answers of servers that want to exhaust the application: bombs, bodies without end, bytes that drip."""

from __future__ import annotations

import gzip
import re
import resource
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

from rag.errors import ProviderAnswerInvalid, ProviderUnavailable
from rag.ingestion.loaders.sandbox import answers_sandbox_of
from rag.ingestion.loaders.values import ExtractionLimits
from rag.integrations.sources.remote import client_for
from rag.providers.bounds import TOO_LARGE, UNREADABLE, Bounds, bound, bounded, timed

RAG = Path(__file__).parents[2] / "rag"
MB = 2**20
LIMITS = ExtractionLimits()
SMALL = Bounds(most_bytes=MB, longest_seconds=60)


@cache
def bomb(beginning: bytes = b"", end: bytes = b"") -> bytes:
    """Pack 300 MB, a little at a time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    parts = [packer.compress(beginning), *(packer.compress(b" " * MB) for _ in range(300)), packer.compress(end)]
    return b"".join([*parts, packer.flush()])


PACKED = {"gzip": gzip.compress, "deflate": zlib.compress, "raw deflate": lambda text: zlib.compress(text)[2:-4]}


class Hostile:
    """Sends what `parts` yields to whoever connects, until they leave."""

    def __init__(self) -> None:
        self.parts: Callable[[], Iterator[bytes]] = lambda: iter(())
        self.requests = 0
        self._door = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._door.getsockname()[1]}"
        self.url = f"http://{self.host}/"
        self.is_over = threading.Event()

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(65_536)
            self.requests += 1
            for part in self.parts():
                client.sendall(part)

    def answers(self, body: bytes, *headers: str) -> None:
        """Answer with this body."""
        lines = ["HTTP/1.1 200 OK", "Connection: close", f"Content-Length: {len(body)}", *headers]
        self.parts = lambda: iter(["\r\n".join(lines).encode() + b"\r\n\r\n", body])

    def drips(self, beginning: bytes, drop: bytes) -> None:
        """Send a beginning and then a drop every hundredth of a second."""

        def parts() -> Iterator[bytes]:
            yield beginning
            while not self.is_over.wait(0.01):
                yield drop

        self.parts = parts

    def close(self) -> None:
        self.is_over.set()
        # Wakes `accept`, which closing alone does not.
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()


@pytest.fixture
def server() -> Iterator[Hostile]:
    hostile = Hostile()
    threading.Thread(target=hostile.serve, daemon=True).start()
    yield hostile
    hostile.close()


@contextmanager
def little_memory(megabytes: int) -> Iterator[None]:
    """Let this process grow by so much at most."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert grown < megabytes, f"it grew by {grown} MB"


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_a_small_answer_that_unpacks_to_a_large_one_is_broken_off(server: Hostile, library: Any) -> None:
    server.answers(bomb(), "Content-Encoding: gzip")
    with little_memory(100), bound(library.Client(), SMALL) as client, pytest.raises(ProviderAnswerInvalid) as refused:
        client.get(server.url)
    assert refused.value.message == TOO_LARGE
    for encoding in ("gzip, gzip", "br", "zstd", "compress"):
        server.answers(gzip.compress(bomb()), f"Content-Encoding: {encoding}")
        with bound(library.Client(), SMALL) as client, pytest.raises(ProviderAnswerInvalid) as refused:
            client.get(server.url)
        assert refused.value.message == UNREADABLE


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
@pytest.mark.parametrize("name", PACKED)
def test_an_ordinary_packed_answer_is_read_as_it_was_written(server: Hostile, library: Any, name: str) -> None:
    text = b"Twenty-eight days. " * 10_000
    server.answers(PACKED[name](text), f"Content-Encoding: {name.removeprefix('raw ')}")
    with bound(library.Client(), SMALL) as client:
        assert client.get(server.url).content == text
    server.answers(text[:1000])
    with bound(library.Client(), SMALL) as client:
        assert client.get(server.url).content == text[:1000]


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
@pytest.mark.parametrize(
    ("beginning", "drop"),
    [
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;long=", b"x"),
    ],
    ids=["head", "body", "chunk"],
)
def test_an_answer_that_drips_ends_with_its_time(server: Hostile, library: Any, beginning: bytes, drop: bytes) -> None:
    server.drips(beginning, drop)
    limits = Bounds(most_bytes=MB, longest_seconds=0.5)
    with bound(library.Client(), limits) as client, pytest.raises((ProviderUnavailable, library.TimeoutException)):
        client.get(server.url)


def test_the_clients_of_sources_bound_answers_too(server: Hostile) -> None:
    own_hosts = frozenset({server.host})
    server.answers(bomb(), "Content-Encoding: gzip")
    with little_memory(150), client_for(own_hosts) as client, pytest.raises(ProviderAnswerInvalid, match="too large"):
        client.get(server.url)
    server.drips(b"HTTP/1.1 200 OK\r\nX-Long: ", b"x")
    transport = timed(httpx.HTTPTransport())
    limits = Bounds(longest_seconds=0.5)
    with pytest.raises(httpx.TimeoutException):
        bounded(transport.handle_request, httpx.Request("GET", server.url), limits)
    transport.close()


def test_a_webdav_server_with_a_bomb_takes_no_memory(server: Hostile) -> None:
    packed = bomb(b'<d:multistatus xmlns:d="DAV:">', b"</d:multistatus>")
    head = f"HTTP/1.1 207 Multi-Status\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    server.parts = lambda: iter([head.encode(), packed])
    webdav = pytest.importorskip("rag.integrations.sources.webdav.webdav")
    folder = webdav.WebdavFolder.of({"address": f"{server.url}dav", "user": "", "password": ""})
    reader = answers_sandbox_of(LIMITS, webdav.WORKER).of_tenant("demo")
    source = webdav.WebdavSource(folder, LIMITS, reader, own_hosts=frozenset({server.host}))
    with little_memory(150), pytest.raises(Exception, match="too large"):
        list(source.items())
    source.close()


def bucket_at(server: Hostile) -> Any:
    s3 = pytest.importorskip("rag.integrations.sources.s3.bucket")
    bucket = s3.Bucket.of({"address": f"http://{server.host}", "bucket": "papers", "region": "eu-1"})
    return s3.BucketSource(bucket, LIMITS, own_hosts=frozenset({server.host}))


def test_a_storage_with_a_bomb_takes_no_memory(server: Hostile) -> None:
    server.answers(bomb(), "Content-Encoding: gzip", "Content-Type: application/xml")
    with little_memory(150), pytest.raises(ProviderAnswerInvalid, match="does not end"):
        list(bucket_at(server).items())


def test_a_storage_whose_list_never_ends_is_left(server: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    s3 = pytest.importorskip("rag.integrations.sources.s3.bucket")
    monkeypatch.setattr(s3, "MOST_LISTS", 20)
    about = "<IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>"
    server.answers(f"<ListBucketResult><Name>papers</Name>{about}</ListBucketResult>".encode())
    with pytest.raises(ProviderAnswerInvalid, match="does not end"):
        list(bucket_at(server).items())
    assert server.requests == 21


@pytest.mark.parametrize("body", [b"", b"<", b"<a/>", b"<ListBucketResult><Contents/></ListBucketResult>"])
def test_a_list_that_is_none_is_said(server: Hostile, body: bytes) -> None:
    server.answers(body)
    with pytest.raises(ProviderAnswerInvalid, match="cannot be read"):
        list(bucket_at(server).items())


def test_a_storage_that_drips_is_left(server: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    s3 = pytest.importorskip("rag.integrations.sources.s3.bucket")
    monkeypatch.setattr(s3, "LONGEST_SECONDS", 0.3)
    monkeypatch.setattr(s3, "RETRIES", 0)
    for beginning in (b"HTTP/1.1 200 OK\r\nX-Long: ", b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n"):
        server.drips(beginning, b"x")
        with pytest.raises((ProviderUnavailable, ProviderAnswerInvalid)):
            list(bucket_at(server).items())


def test_every_client_of_the_application_is_bounded() -> None:
    makes = re.compile(r"(?:httpx2?\.(?:Client|get|post|request|stream)|OAuth2Client|DefaultHttpxClient)\(")
    found = set()
    for path in RAG.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for made in makes.finditer(text):
            if "bound(" not in text[made.start() - 400 : made.end() + 500]:
                found.add(f"{path.relative_to(RAG)}: {made[0]}")
    # `client_for` gives its client a transport that bounds every answer.
    assert found == {"integrations/sources/remote.py: httpx.Client("}
