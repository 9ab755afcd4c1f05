"""How many paid calls are in flight at once: as many as allowed, fewer after a 429, none while told to wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rag.errors import ProviderAnswerInvalid, ProviderError, ProviderQuotaExhausted, ProviderUnavailable

Value = TypeVar("Value")

#: Calls in flight when nothing is wrong.
MAXIMUM_IN_FLIGHT = 4
#: Attempts at one call before its document waits in the queue, and the first wait between them, doubled each time.
ATTEMPTS = 4
FIRST_WAIT_SECONDS = 0.5
#: A longer wait than this is left to the queue, where it keeps no worker busy.
LONGEST_WAIT_SECONDS = 20.0

Wait = Callable[[float], None]


class CallGate:
    """Shared by everything that pays the same provider. Thread-safe.

    Additive increase, multiplicative decrease: a refused call halves the limit, a full round of answers adds one.
    """

    def __init__(self, maximum: int = MAXIMUM_IN_FLIGHT) -> None:
        self.maximum = maximum
        self.limit = float(maximum)
        self.in_flight = 0
        self._not_before = 0.0
        self._changed = threading.Condition()

    def call(self, function: Callable[[], Value], *, wait: Wait) -> Value:
        """Make a call when there is room, again after waits that obey the provider's Retry-After.

        `wait` sleeps and raises when the application stops. Raises the last `ProviderError`, whose
        `details["retry_after_seconds"]` says how long the provider asked to wait, where it did.
        """
        for attempt in range(ATTEMPTS):
            try:
                with self._place(wait):
                    return function()
            except (ProviderQuotaExhausted, ProviderUnavailable, ProviderAnswerInvalid) as exc:
                asked = retry_after(exc)
                pause = max(asked, FIRST_WAIT_SECONDS * 2**attempt)
                if isinstance(exc, ProviderQuotaExhausted):
                    self._slow_down(asked)
                if attempt == ATTEMPTS - 1 or pause > LONGEST_WAIT_SECONDS:
                    raise
                wait(pause)
        raise AssertionError("unreachable")

    @contextmanager
    def _place(self, wait: Wait) -> Iterator[None]:
        while True:
            with self._changed:
                pause = self._not_before - time.monotonic()
                if pause <= 0 and self.in_flight < max(1, int(self.limit)):
                    self.in_flight += 1
                    break
                if pause <= 0:
                    self._changed.wait(0.1)
            wait(min(max(pause, 0.0), 0.5))
        try:
            yield
        except BaseException:
            with self._changed:
                self.in_flight -= 1
                self._changed.notify_all()
            raise
        with self._changed:
            self.in_flight -= 1
            self.limit = min(self.maximum, self.limit + 1 / max(self.limit, 1))
            self._changed.notify_all()

    def _slow_down(self, asked: float) -> None:
        with self._changed:
            self.limit = max(1.0, self.limit / 2)
            # A wait too long for here is the document's, not that of the calls of other documents.
            if asked <= LONGEST_WAIT_SECONDS:
                self._not_before = max(self._not_before, time.monotonic() + asked)


def retry_after(error: ProviderError) -> float:
    """Seconds that the provider asked to wait; 0 when it did not say."""
    return float(error.details.get("retry_after_seconds") or 0.0)
