"""Let a few answers at a time work on this machine; while one waits for a provider, another goes on.

Python runs one thread at a time. Where fifty questions arrive within a second, each of them took a fiftieth of it: all
came to their provider late, and the text of answers under way waited behind all of them. In turns, the first questions
are on their way at once, and readers and pages wait for a few threads in place of fifty. Waiting for a provider holds
no turn.
"""

from __future__ import annotations

from threading import BoundedSemaphore, local

AT_ONCE = 2
#: Nobody waits longer for a turn: one who holds it may wait for a database that does not answer.
LONGEST_SECONDS = 1.0


class Turns:
    """Hands out turns to threads, at most one to each. Thread-safe."""

    def __init__(self, at_once: int = AT_ONCE, longest_seconds: float = LONGEST_SECONDS) -> None:
        self._free = BoundedSemaphore(at_once)
        self._longest_seconds = longest_seconds
        self._mine = local()

    def take(self) -> None:
        """Wait for a turn; does nothing in a thread that has one, and goes on without one after `longest_seconds`."""
        if not getattr(self._mine, "is_held", False):
            self._mine.is_held = self._free.acquire(timeout=self._longest_seconds)

    def give(self) -> None:
        """Let another go on; does nothing in a thread without a turn."""
        if getattr(self._mine, "is_held", False):
            self._mine.is_held = False
            self._free.release()
