"""Limit how many questions use the processor at a time, so that answers in progress are streamed without delay.

Threads take turns with the interpreter lock. If twenty threads search and check, a thread which passes on a token waits
several times for all of them. With two threads the wait is short, and the throughput is the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: How many questions in this process search, or check an answer, at a time. 1 is equally good for readers; 2 avoid
#: waiting for a distant database. From 6 on, tokens are late (`benchmarks/readers.py`).
AT_ONCE = 2
#: If no question ended for this long, the active ones wait for a slow service and need not hold up the next.
STUCK_SECONDS = 0.5


class ProcessorSlots:
    """Slots for threads which use the processor. Thread-safe."""

    def __init__(self, at_once: int = AT_ONCE, stuck_seconds: float = STUCK_SECONDS) -> None:
        self._free = at_once
        self._stuck_seconds = stuck_seconds
        #: Slots taken from stuck threads and given to other threads.
        self._written_off = 0
        self._freed = threading.Condition()
        self._freed_at = time.monotonic()
        self._own = threading.local()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold a slot inside the `with` block. A thread which already holds a slot takes no second one."""
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
        """Release this thread's slot inside the `with` block, while the thread waits for something outside this
        process.
        """
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
