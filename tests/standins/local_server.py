"""Servers for tests: each listens on a free port of this machine, in a thread, until its block ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, Self, TypeVar

AnyServer = TypeVar("AnyServer", bound=TCPServer)
#: Seconds between a server's checks whether it must end.
POLL_SECONDS = 0.02


@contextmanager
def serving(server: AnyServer) -> Iterator[AnyServer]:
    """Run a server in a thread until the block ends."""
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class LocalServer(ThreadingHTTPServer):
    """An HTTP server which runs from the start to the end of a `with` block."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._running = serving(self)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    def __enter__(self) -> Self:
        self._running.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._running.__exit__(None, None, None)


class QuietHandler(BaseHTTPRequestHandler):
    """A request handler which logs nothing."""

    # Without this, the body of an answer waits 40 ms until its headers are acknowledged.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        pass
