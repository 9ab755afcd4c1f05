"""The queue before the hashing of passwords: few are hashed at once, and a flood of wrong ones holds nobody up.

Argon2 takes a core and 64 MiB for about 50 ms; more at once would only starve the answers being written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread

from rag.errors import TooManyAttempts

AT_ONCE = 2
#: So many wait, and each so long; who has to leave is told so at once.
MOST_WAITING, LONGEST_WAIT_SECONDS = 16, 4.0
RETRY_SECONDS = 3
CROWDED = f"Many people are signing in at this moment. Wait {RETRY_SECONDS} seconds and try again."
Result = TypeVar("Result")


class PasswordQueue:
    """Runs work in few threads: for browsers that are known first, then for those that came last.

    In a flood whoever came last is still there, and the first ones have given up or are part of it: served in the order
    of their coming, everybody would wait for everything before them.
    """

    def __init__(self, *, at_once: int = AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        self._free = at_once
        self._most_waiting = most_waiting
        self._known: list[asyncio.Future[None]] = []
        self._others: list[asyncio.Future[None]] = []
        # Made within the server's loop.
        self._threads: CapacityLimiter | None = None

    async def run(self, work: Callable[..., Result], *arguments: Any, is_known: bool = False) -> Result:
        """Run `work` in a thread when its turn comes. Raises `TooManyAttempts` when that would take too long."""
        if self._threads is None:
            self._threads = CapacityLimiter(self._free)
        await self._enter(is_known=is_known)
        try:
            return await to_thread.run_sync(work, *arguments, limiter=self._threads)
        finally:
            self._leave()

    async def _enter(self, *, is_known: bool) -> None:
        if self._free:
            self._free -= 1
            return
        place = asyncio.get_running_loop().create_future()
        waiting = self._known if is_known else self._others
        waiting.append(place)
        if len(self._known) + len(self._others) > self._most_waiting:
            longest = (self._others or self._known).pop(0)
            longest.set_exception(crowded())
        try:
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                await place
        except BaseException as exc:
            if place in waiting:
                waiting.remove(place)
            elif place.done() and not place.cancelled() and place.exception() is None:
                self._leave()  # its turn came in the moment in which its browser left
            if isinstance(exc, TimeoutError):
                raise crowded() from exc
            raise

    def _leave(self) -> None:
        self._free += 1
        for waiting, position in ((self._known, 0), (self._others, -1)):
            while waiting:
                place = waiting.pop(position)
                if not place.done():
                    self._free -= 1
                    place.set_result(None)
                    return


def crowded() -> TooManyAttempts:
    """The refusal of somebody whose turn would not come soon."""
    return TooManyAttempts(CROWDED, wait_seconds=RETRY_SECONDS)
