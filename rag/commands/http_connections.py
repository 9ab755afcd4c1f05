"""Close HTTP connections whose request does not arrive completely in time.

uvicorn waits without limit for a slow head or body, and each open connection uses a file descriptor.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: From the connection, or from a further request's first byte, to the end of the request's head.
HEAD_SECONDS = 30.0
#: A body brings this many bytes in this time, or ends. The slowest lines are faster.
BODY_SECONDS, BODY_BYTES = 30.0, 64 * 1024


class HttpConnection(H11Protocol):
    """A uvicorn connection with a time limit for requests. Websockets are exempt.

    The limit does not run while the server is busy with the part of a body it has received.
    """

    head_seconds, body_seconds, body_bytes = HEAD_SECONDS, BODY_SECONDS, BODY_BYTES

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._timer: asyncio.TimerHandle | None = None
        self._is_in_body = False
        #: Bytes since the timer began.
        self._received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        state = self.conn.their_state
        if self.transport.get_protocol() is not self:
            self._calm()
        elif state is h11.IDLE:
            # Between requests uvicorn's timer ends the connection, until the next head's first byte.
            if self._timer is None:
                self._wait(self.head_seconds)
        elif state is h11.SEND_BODY:
            if not self._is_in_body:
                self._wait(self.body_seconds)
            self._is_in_body = True
        else:
            self._calm()
            self._is_in_body = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def _wait(self, seconds: float) -> None:
        self._calm()
        self._received = 0
        self._timer = self.loop.call_later(seconds, self._judge)

    def _calm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _judge(self) -> None:
        self._timer = None
        if self._is_in_body and (self._received >= self.body_bytes or self.flow.read_paused):
            self._wait(self.body_seconds)
        else:
            self.transport.abort()
