"""How a paid call is to be sent: its idempotency key, and whether the SDK may send it again by itself.

Set around a call by whoever makes it durable, read where requests are written; so no signature in between carries it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Sending:
    #: The same for every attempt at one call: a provider that knows such keys answers and bills it once.
    key: str = ""
    #: Attempts the SDK makes on its own after the first; None leaves it to the operation.
    retries: int | None = None

    def headers(self, part: int) -> dict[str, str]:
        """Headers of one request; a call that is split into several has a key for each."""
        return {"Idempotency-Key": f"{self.key}-{part}"} if self.key else {}


PLAIN = Sending()
_sending: ContextVar[Sending] = ContextVar("sending", default=PLAIN)


@contextmanager
def sending(key: str, *, retries: int | None = None) -> Iterator[None]:
    """Send what is called within as one call with this key."""
    token = _sending.set(Sending(key, retries))
    try:
        yield
    finally:
        _sending.reset(token)


def current_sending() -> Sending:
    return _sending.get()
