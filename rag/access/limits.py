"""How much one person, or one network address, may ask for at a time: nobody's haste makes the others wait.

Counted in the memory of this process: with several processes behind a proxy each counts what it serves, which bounds
the load of each. What must hold for all together is counted in the database: wrong passwords and requests of API keys.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from rag.errors import TooManyAttempts, TooManyRequests
from rag.settings import Settings
from rag.types import Identity

MINUTE = 60.0
WRONG_WITHIN_SECONDS = 600.0
#: People and addresses remembered; those that have not come for longest are forgotten first.
MOST_KEPT = 20_000
QUESTIONS = "You may ask {most} questions a minute. Wait {wait} and ask again."
REQUESTS = "You may send {most:,} requests a minute. Wait {wait} and try again."
UPLOADS = "You may upload {most:,} MB a minute. Wait {wait} and go on then."
WRONG = "Too many wrong passwords came from your network. Wait {wait} and try again."


class Window:
    """Counts what each one did within the last seconds."""

    def __init__(self, most: int, within_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        #: 0: no limit.
        self.most = most
        self._within = within_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._done: OrderedDict[str, deque[tuple[float, int]]] = OrderedDict()

    def wait_seconds(self, who: str, amount: int = 1) -> float:
        """How long until so much more is possible; 0 when it is now. Counts nothing."""
        with self._lock:
            return self._wait(who, amount)

    def take(self, who: str, amount: int = 1) -> float:
        """Count it if it is possible now; else how long until it is."""
        with self._lock:
            wait = self._wait(who, amount)
            if not wait:
                self._note(who, amount)
            return wait

    def note(self, who: str, amount: int = 1) -> None:
        """Count it whether or not it was possible."""
        with self._lock:
            self._note(who, amount)

    def _wait(self, who: str, amount: int) -> float:
        done = self._done.get(who)
        if not self.most or not done:
            return 0.0
        now = self._clock()
        while done and now - done[0][0] >= self._within:
            done.popleft()
        # What is larger than the whole limit goes through when nothing else was there.
        excess = sum(part for _, part in done) + amount - self.most
        if excess <= 0 or not done:
            return 0.0
        for at, part in done:
            excess -= part
            if excess <= 0:
                return max(at + self._within - now, 0.001)
        return max(done[-1][0] + self._within - now, 0.001)

    def _note(self, who: str, amount: int) -> None:
        if not self.most:
            return
        self._done.setdefault(who, deque()).append((self._clock(), amount))
        self._done.move_to_end(who)
        while len(self._done) > MOST_KEPT:
            self._done.popitem(last=False)


class Limits:
    """The limits of this process. Thread-safe."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._questions = Window(settings.questions_per_minute, MINUTE, clock)
        self._requests = Window(settings.requests_per_minute, MINUTE, clock)
        self._uploads = Window(settings.upload_mb_per_minute, MINUTE, clock)
        self._wrong = Window(settings.wrong_sign_ins_per_address, WRONG_WITHIN_SECONDS, clock)

    def count_question(self, identity: Identity) -> None:
        """Count a question or search of a person; an API key has a limit of its own. Raises `TooManyRequests`."""
        if identity.session_id:
            _require(self._questions, QUESTIONS, str(identity.account_id))

    def count_request(self, identity: Identity) -> None:
        """Count a request of a person to the API. Raises `TooManyRequests`."""
        _require(self._requests, REQUESTS, str(identity.account_id))

    def count_upload(self, identity: Identity, size: int) -> None:
        """Count what somebody uploads, in bytes. Raises `TooManyRequests`."""
        _require(self._uploads, UPLOADS, str(identity.account_id), math.ceil(size / (1024 * 1024)))

    def require_few_wrong(self, address: str) -> None:
        """Raise `TooManyAttempts` where an address sent too many wrong passwords, of whichever accounts, lately."""
        if wait := self._wrong.wait_seconds(address):
            seconds = math.ceil(wait)
            raise TooManyAttempts(WRONG.format(wait=_shown(seconds)), wait_seconds=seconds)

    def note_wrong(self, address: str) -> None:
        """Count a wrong password that came from an address."""
        self._wrong.note(address)


def _require(window: Window, sentence: str, who: str, amount: int = 1) -> None:
    if wait := window.take(who, amount):
        seconds = math.ceil(wait)
        raise TooManyRequests(sentence.format(most=window.most, wait=_shown(seconds)), wait_seconds=seconds)


def _shown(seconds: int) -> str:
    if seconds > 120:
        return f"{math.ceil(seconds / 60)} minutes"
    return "a second" if seconds == 1 else f"{seconds} seconds"
