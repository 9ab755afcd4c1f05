"""Connections whose request does not come, as somebody keeps them open who wants to use up the server."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from websockets.sync.client import connect

from rag.api.middleware import HttpConnection
from tests.patience import patient

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"


class Impatient(HttpConnection):
    head_seconds, body_seconds, body_bytes = 0.4, 0.4, 2000


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the length of the body, read as it comes; below /slowly a while later."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] != "websocket.disconnect":
            if message["type"] == "websocket.receive":
                await send({"type": "websocket.send", "text": message["text"]})
        return
    size, more = 0, True
    if scope["path"] == "/slowly":
        await asyncio.sleep(1)
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    body = str(size).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port() -> Iterator[int]:
    config = uvicorn.Config(echo, port=0, http=Impatient, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    door = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([door],), daemon=True)
    thread.start()
    yield door.getsockname()[1]
    server.should_exit = True
    thread.join()
    door.close()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=patient(20))


def ends(client: socket.socket) -> bool:
    """Whether the server ends the connection without an answer."""
    try:
        return client.recv(1000) == b""
    except ConnectionResetError:
        return True


def drip(client: socket.socket, drop: bytes) -> bool:
    """Send a drop ten times a second until the server ends the connection; False if it never does."""
    for _ in range(int(patient(20) * 10)):
        try:
            client.sendall(drop)
        except OSError:
            return True
        threading.Event().wait(0.1)
    return False


def test_a_connection_without_a_request_ends(port: int) -> None:
    with connected(port) as client:
        assert ends(client)
    with connected(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
        assert ends(client)
    with connected(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nX-Long: ")
        assert drip(client, b"x")


def test_a_body_that_drips_ends(port: int) -> None:
    with connected(port) as client:
        client.sendall(HEAD % 1000)
        assert ends(client)
    with connected(port) as client:
        client.sendall(HEAD % 1_000_000)
        assert drip(client, b"x")


def test_the_next_request_of_a_connection_is_waited_for_as_long(port: int) -> None:
    with connected(port) as client:
        for _ in range(2):
            client.sendall(HEAD % 3 + b"abc")
            assert client.recv(1000).endswith(b"\r\n\r\n3")
        threading.Event().wait(0.8)  # idle between requests
        client.sendall(HEAD % 3 + b"abc")
        assert client.recv(1000).endswith(b"\r\n\r\n3")
        client.sendall(b"GET / HTTP/1.1\r\n")
        assert ends(client)


def test_a_websocket_stays_open_however_little_it_says(port: int) -> None:
    with connect(f"ws://127.0.0.1:{port}/", open_timeout=patient(20)) as client:
        for _ in range(2):
            threading.Event().wait(0.8)  # longer than a head or a body is waited for
            client.send("still here")
            assert client.recv(patient(20)) == "still here"


def test_a_slow_body_and_a_slow_answer_are_waited_for(port: int) -> None:
    with connected(port) as client:
        client.sendall(HEAD % 20_000)
        for _ in range(20):
            client.sendall(b"x" * 1000)
            threading.Event().wait(0.05)
        assert client.recv(1000).endswith(b"\r\n\r\n20000")
    with connected(port) as client:
        # The server reads nothing for a second, which is its own matter.
        client.sendall(HEAD.replace(b"/ ", b"/slowly ") % 5_000_000)
        client.sendall(b"x" * 5_000_000)
        assert client.recv(1000).endswith(b"\r\n\r\n5000000")
