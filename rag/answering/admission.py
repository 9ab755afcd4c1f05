"""Answers begin at the pace the process can carry, so that those being read are not held up by those that begin.

Beginning an answer (search, prompt, checks) is a burst of work; all threads of the process share one interpreter. A few
begin at once, and while the process is late, none: who asks then waits a moment for the first word, instead of
everybody for the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Semaphore, Thread

#: How many answers may be before their first word at the same time.
AT_ONCE = 1
#: Later than this, nothing new begins. An idle process is about 0.2 ms late.
LATE_SECONDS = 0.008
LONGEST_WAIT_SECONDS = 20.0
MEASURE_SECONDS = 0.02
#: Weight of the newest measurement in the running mean.
NEWEST = 0.2


class Admission:
    """Lets answers begin one after the other. `lateness_seconds` says how busy the process is."""

    def __init__(self) -> None:
        self._slots = Semaphore(AT_ONCE)
        self._lock = Lock()
        #: Answers under way.
        self.inside = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Running mean of how long a thread, and the loop that sends what pages draw, have to wait for their turn.
        self.lateness_seconds = 0.0

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count the lateness of the server's loop too."""
        self._loop = loop

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Around the whole of an answer: the lateness is measured while there is one."""
        with self._lock:
            self.inside += 1
            if self.inside == 1:
                Thread(target=self._measure, name="answers-admission", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self.inside -= 1

    def try_enter(self) -> bool:
        """Take a place among those that begin, if one is free and the process is not late."""
        return self.lateness_seconds < LATE_SECONDS and self._slots.acquire(blocking=False)

    def enter(self, cancel: Event) -> bool:
        """Wait for a place, at most 20 seconds; False when there was none in that time or `cancel` was set."""
        deadline = time.monotonic() + LONGEST_WAIT_SECONDS
        while not self.try_enter():
            if cancel.wait(0.03) or time.monotonic() > deadline:
                return False
        return True

    def leave(self) -> None:
        """Give the place back: the first word is there, or the end."""
        self._slots.release()

    def _measure(self) -> None:
        while self.inside:
            due = time.monotonic() + MEASURE_SECONDS
            time.sleep(MEASURE_SECONDS)
            if self._loop is not None and not self._loop.is_closed():
                reached = Event()
                self._loop.call_soon_threadsafe(reached.set)
                reached.wait(1.0)
            late = time.monotonic() - due
            self.lateness_seconds += NEWEST * (late - self.lateness_seconds)
        self.lateness_seconds = 0.0
