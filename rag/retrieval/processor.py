"""Let few questions use the processor at once, so that answers being read come on time.

Threads take the interpreter's lock in turns. Where twenty search and check at the same moment, a thread that passes a
token on waits for all of them, several times; where two do, it hardly waits, and as much gets done in a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Questions of this process that search, or check an answer, at once. One is as good for readers; with more a database
#: that is some way off keeps nobody waiting. From six on tokens are late (`benchmarks/readers.py`).
AT_ONCE = 2
#: Where nobody has ended for so long, those at work wait for something slow: the next need not.
STUCK_SECONDS = 0.5


class ProcessorSlots:
    """Places at the processor. Thread-safe."""

    def __init__(self, at_once: int = AT_ONCE, stuck_seconds: float = STUCK_SECONDS) -> None:
        self._free = at_once
        self._stuck_seconds = stuck_seconds
        #: Places of stuck threads, given to other threads.
        self._written_off = 0
        self._freed = threading.Condition()
        self._freed_at = time.monotonic()
        self._own = threading.local()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold a place. A thread with a place keeps it."""
        if self._has_place:
            yield
            return
        self._take()
        try:
            yield
        finally:
            self._give_back()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Give the place up while something outside this process is waited for."""
        if not self._has_place:
            yield
            return
        self._give_back()
        try:
            yield
        finally:
            self._take()

    @property
    def _has_place(self) -> bool:
        return getattr(self._own, "has_place", False)

    def _take(self) -> None:
        with self._freed:
            while self._free < 1:
                if not self._freed.wait(self._stuck_seconds) and self._is_long_since(self._freed_at):
                    self._written_off += 1
                    self._free += 1
                    self._freed_at = time.monotonic()
            self._free -= 1
        self._own.since = time.monotonic()
        self._own.has_place = True

    def _give_back(self) -> None:
        self._own.has_place = False
        with self._freed:
            if self._written_off and self._is_long_since(self._own.since):
                self._written_off -= 1
                return
            self._free += 1
            self._freed_at = time.monotonic()
            self._freed.notify()

    def _is_long_since(self, moment: float) -> bool:
        return time.monotonic() - moment >= self._stuck_seconds


_places = ProcessorSlots()
working, waiting = _places.working, _places.waiting
