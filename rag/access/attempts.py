"""How long a wrong password makes the next one wait.

The first five cost nothing; from then on the wait doubles up to five minutes, long enough to make guessing hopeless
and short enough that nobody can lock a colleague out for the day. A day without a wrong password clears the count.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from rag.errors import TooManyAttempts

FREE_ATTEMPTS = 5
FIRST_WAIT_SECONDS = 10
LONGEST_WAIT_SECONDS = 300
FORGOTTEN_AFTER_SECONDS = 24 * 60 * 60
MAXIMUM_STRANGERS = 10_000
#: How often a new password may be asked for within a quarter of an hour: for one address, and for all together.
WISHES_FOR_ONE, WISHES_FOR_ALL, WISHES_WITHIN_SECONDS = 3, 120, 15 * 60


def next_attempt(failed_attempts: int, seconds_since: float) -> int:
    """The count with this attempt in it. Raises `TooManyAttempts` naming the seconds when it comes too early."""
    if seconds_since >= FORGOTTEN_AFTER_SECONDS:
        return 1
    wait_seconds = 0.0
    if failed_attempts >= FREE_ATTEMPTS:
        doublings = min(failed_attempts - FREE_ATTEMPTS, 10)
        wait_seconds = min(FIRST_WAIT_SECONDS * 2**doublings, LONGEST_WAIT_SECONDS) - seconds_since
    if wait_seconds > 0:
        seconds = math.ceil(wait_seconds)
        shown = f"{seconds} second{'s' if seconds != 1 else ''}"
        raise TooManyAttempts(f"Too many wrong passwords. Wait {shown} and try again.", wait_seconds=seconds)
    return failed_attempts + 1


class Strangers:
    """The same for addresses without an account, so that waiting does not tell who has one. In memory and bounded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._attempts: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def count(self, email: str) -> None:
        """Count an attempt. Raises `TooManyAttempts` as `next_attempt` does."""
        with self._lock:
            now = self._clock()
            failed, at = self._attempts.get(email, (0, now))
            self._attempts[email] = (next_attempt(failed, now - at), now)
            self._attempts.move_to_end(email)
            while len(self._attempts) > MAXIMUM_STRANGERS:
                self._attempts.popitem(last=False)


class Wishes:
    """How often a new password is asked for, of addresses with and without an account alike. In memory and bounded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: deque[tuple[float, str]] = deque()

    def count(self, email: str) -> None:
        """Count a wish. Raises `TooManyAttempts` naming the seconds when there were too many lately."""
        with self._lock:
            now = self._clock()
            while self._asked and now - self._asked[0][0] >= WISHES_WITHIN_SECONDS:
                self._asked.popleft()
            same = [at for at, address in self._asked if address == email]
            if len(same) >= WISHES_FOR_ONE or len(self._asked) >= WISHES_FOR_ALL:
                first = same[0] if len(same) >= WISHES_FOR_ONE else self._asked[0][0]
                seconds = math.ceil(first + WISHES_WITHIN_SECONDS - now)
                message = f"This was asked for too often. Wait {math.ceil(seconds / 60)} min and try again."
                raise TooManyAttempts(message, wait_seconds=seconds)
            self._asked.append((now, email))
