"""Limit responses by unpacked size and by time, for every HTTP client in the application.

httpx unpacks every encoding which a response names, layer by layer: 1.2 MB became gigabytes before the first part could
be counted. httpx applies timeouts to each read, so a byte per minute blocks a thread forever. Clients and transports of
both httpx and httpx2 are limited here.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from rag.errors import ProviderAnswerInvalid, ProviderUnavailable

#: Size of the parts for unpacking.
PART_BYTES = 65_536
#: A late read fails at once; to a socket, a timeout of zero would mean no timeout.
LEAST_SECONDS = 0.001

TOO_LARGE = "The server's answer is too large."
TOO_SLOW = "The server's answer comes too slowly."
UNREADABLE = "The server's answer is compressed in a way that cannot be read."

AnyTransport = TypeVar("AnyTransport")
AnyClient = TypeVar("AnyClient")


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The maximum size of a response in bytes after unpacking, and the maximum total time in seconds."""

    most_bytes: int = 32 * 2**20
    longest_seconds: float = 600.0


#: For responses which are not files: a list page, a key set.
USUAL = Bounds()
_at_work = threading.local()


class BoundedTransport:
    """Sends requests through a different transport, and aborts responses which are too large or too slow.

    Unpacks gzip and deflate in small parts, and refuses other encodings. Raises `ProviderAnswerInvalid` and
    `ProviderUnavailable` while the response is read.
    """

    def __init__(self, transport: Any, bounds: Bounds) -> None:
        self._transport = timed(transport)
        self._bounds = bounds

    def handle_request(self, request: Any) -> Any:
        return bounded(self._transport.handle_request, request, self._bounds)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> BoundedTransport:
        self._transport.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._transport.__exit__(*error)


def bound(client: AnyClient, bounds: Bounds = USUAL) -> AnyClient:
    """Limit the responses to an httpx or httpx2 client, also through a proxy. Returns the client."""
    parts: Any = client
    # A client with an explicit transport would ignore the environment's proxies.
    parts._transport = BoundedTransport(parts._transport, bounds)  # noqa: SLF001
    mounts = parts._mounts.items()  # noqa: SLF001
    parts._mounts = {pattern: mounted and BoundedTransport(mounted, bounds) for pattern, mounted in mounts}  # noqa: SLF001
    return client


def bounded(send: Callable[[Any], Any], request: Any, bounds: Bounds) -> Any:
    """Send a request, and return the response. The body is unpacked and counted while it is read."""
    request.headers["accept-encoding"] = "gzip, deflate"
    deadline = time.monotonic() + bounds.longest_seconds
    with _network_deadline(deadline):
        answer = send(request)
    encoding = answer.headers.pop("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        answer.headers.pop("content-length", None)
    answer.stream = _stream_class(type(answer).__module__)(answer.stream, encoding, bounds.most_bytes, deadline)
    return answer


class _Parts:
    def __init__(self, stream: Any, encoding: str, most_bytes: int, deadline: float) -> None:
        self._stream = stream
        self._encoding = encoding
        self._most_bytes = most_bytes
        self._deadline = deadline

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in unpacked(self._received(), self._encoding):
            size += len(part)
            if size > self._most_bytes:
                raise ProviderAnswerInvalid(TOO_LARGE)
            if time.monotonic() > self._deadline:
                raise ProviderUnavailable(TOO_SLOW)
            yield part

    def close(self) -> None:
        self._stream.close()

    def _received(self) -> Iterator[bytes]:
        size = 0
        parts = iter(self._stream)
        while True:
            with _network_deadline(self._deadline):
                part = next(parts, None)
            if part is None:
                return
            size += len(part)
            if size > self._most_bytes:
                raise ProviderAnswerInvalid(TOO_LARGE)
            yield part


@functools.cache
def _stream_class(module: str) -> Any:
    library = sys.modules[module.partition(".")[0]]
    return type("BoundedStream", (_Parts, library.SyncByteStream), {})


def unpacked(parts: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield a response body unpacked, in parts up to 64 KiB. Raises `ProviderAnswerInvalid`."""
    if encoding in ("", "identity"):
        yield from parts
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ProviderAnswerInvalid(UNREADABLE)
    # Some servers omit the zlib header.
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16 if "gzip" in encoding else zlib.MAX_WBITS)
    is_first = True
    for part in parts:
        try:
            content = unpacker.decompress(part, PART_BYTES)
        except zlib.error as exc:
            if not is_first or encoding != "deflate":
                raise ProviderAnswerInvalid(UNREADABLE) from exc
            unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
            content = _or_unreadable(unpacker, part)
        is_first = False
        while content:
            yield content
            content = _or_unreadable(unpacker, unpacker.unconsumed_tail)


def _or_unreadable(unpacker: Any, part: bytes) -> bytes:
    try:
        return bytes(unpacker.decompress(part, PART_BYTES))
    except zlib.error as exc:
        raise ProviderAnswerInvalid(UNREADABLE) from exc


# Time: the network's timeouts apply to each read, so the remaining total time shortens them


@contextmanager
def _network_deadline(deadline: float) -> Iterator[None]:
    """Let network reads in this thread fail after `deadline`, a value of `time.monotonic`."""
    before = getattr(_at_work, "deadline", None)
    _at_work.deadline = deadline
    try:
        yield
    finally:
        _at_work.deadline = before


def timed(transport: AnyTransport) -> AnyTransport:
    """Make a transport's connections obey the deadline set by `_network_deadline`. Returns the changed transport."""
    pool: Any = getattr(transport, "_pool", None)
    if pool is not None:
        backend = pool._network_backend  # noqa: SLF001 - a transport takes a pool's other options, but not this one
        pool._network_backend = backend if isinstance(backend, _TimedNetwork) else _TimedNetwork(backend)  # noqa: SLF001
    return transport


class _TimedNetwork:
    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def connect_tcp(self, *arguments: Any, **options: Any) -> _TimedConnection:
        return _TimedConnection(self._backend.connect_tcp(*arguments, **options))

    def connect_unix_socket(self, *arguments: Any, **options: Any) -> _TimedConnection:
        return _TimedConnection(self._backend.connect_unix_socket(*arguments, **options))

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class _TimedConnection:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return bytes(self._stream.read(max_bytes, _remaining(timeout)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _remaining(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> _TimedConnection:
        return _TimedConnection(self._stream.start_tls(ssl_context, server_hostname, _remaining(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _remaining(timeout: float | None) -> float | None:
    deadline: float | None = getattr(_at_work, "deadline", None)
    if deadline is None:
        return timeout
    seconds = max(LEAST_SECONDS, deadline - time.monotonic())
    return seconds if timeout is None else min(timeout, seconds)
