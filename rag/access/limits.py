"""Limit requests per person and network address, and delay sign-ins after wrong passwords.

Requests, questions and uploads are counted in memory: each process limits only the requests which it serves. Wrong
passwords and requests with API keys are counted in the database, for all processes together.

The first five wrong passwords cause no delay. Then the delay doubles up to five minutes, long enough to make guessing
hopeless. A day without a wrong password resets the count.

A browser in which the account has signed in before has a separate count. All other browsers share a count and wait in a
queue, in which every browser gets a turn. A stranger who guesses all night therefore delays the owner, but cannot lock
the owner out.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from rag.errors import RagError, TooManyAttempts, TooManyRequests
from rag.settings import Settings
from rag.types import Identity

MINUTE = 60.0
WRONG_WITHIN_SECONDS = 600.0
#: The most people and addresses to remember; the least recently seen are forgotten first.
MOST_REMEMBERED = 20_000
QUESTIONS = "You may ask {most} questions a minute. Wait {wait} and ask again."
REQUESTS = "You may send {most:,} requests a minute. Wait {wait} and try again."
UPLOADS = "You may upload {most:,} MB a minute. Wait {wait} and go on then."
WRONG = "Too many wrong passwords came from your network. Wait {wait} and try again."


class Window:
    """A sliding-window rate limit: each caller may use at most `most` units within `within_seconds`.

    If `most` is 0, there is no limit.
    """

    def __init__(self, most: int, within_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        #: 0: no limit.
        self.most = most
        self._within = within_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._done: OrderedDict[str, deque[tuple[float, int]]] = OrderedDict()

    def wait_seconds(self, who: str, amount: int = 1) -> float:
        """Return the seconds until the caller may use this amount; 0 if allowed now. The amount is not counted."""
        with self._lock:
            return self._wait(who, amount)

    def take(self, who: str, amount: int = 1) -> float:
        """Count the amount and return 0 if the limit allows this; if not, return the seconds to wait."""
        with self._lock:
            wait = self._wait(who, amount)
            if not wait:
                self._note(who, amount)
            return wait

    def note(self, who: str, amount: int = 1) -> None:
        """Count the amount, even above the limit."""
        with self._lock:
            self._note(who, amount)

    def give_back(self, who: str, amount: int = 1) -> None:
        """Undo the caller's latest use of this amount, because the use had no effect."""
        with self._lock:
            done = self._done.get(who, deque())
            for at, part in reversed(done):
                if part == amount:
                    done.remove((at, part))
                    return

    def _wait(self, who: str, amount: int) -> float:
        done = self._done.get(who)
        if not self.most or not done:
            return 0.0
        now = self._clock()
        while done and now - done[0][0] >= self._within:
            done.popleft()
        # An amount above the whole limit is allowed if nothing else was counted.
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
        while len(self._done) > MOST_REMEMBERED:
            self._done.popitem(last=False)


class Limits:
    """Enforce the limits for the requests which this process serves. Thread-safe."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._questions = Window(settings.questions_per_minute, MINUTE, clock)
        self._requests = Window(settings.requests_per_minute, MINUTE, clock)
        self._uploads = Window(settings.upload_mb_per_minute, MINUTE, clock)
        self._wrong = Window(settings.wrong_sign_ins_per_address, WRONG_WITHIN_SECONDS, clock)

    def count_question(self, identity: Identity) -> None:
        """Count a person's question or search, from any program. Raises `TooManyRequests`.

        API keys are not counted here: their limits are stored in `api_keys`.
        """
        if identity.is_person:
            _require(self._questions, QUESTIONS, str(identity.account_id))

    @contextmanager
    def question(self, identity: Identity) -> Iterator[None]:
        """Count a question like `count_question`, but undo this if the `with` block raises a certain error.

        This is a `RagError` with a status below 500: a question refused for its length, for example, can be corrected
        and sent again. Questions with an API key stay counted.
        """
        self.count_question(identity)
        try:
            yield
        except RagError as exc:
            if exc.status < 500 and identity.is_person:
                self._questions.give_back(str(identity.account_id))
            raise

    def count_request(self, identity: Identity) -> None:
        """Count a person's API request. Raises `TooManyRequests`."""
        _require(self._requests, REQUESTS, str(identity.account_id))

    def count_upload(self, identity: Identity, size: int) -> None:
        """Count a person's upload; `size` is in bytes. Raises `TooManyRequests`."""
        _require(self._uploads, UPLOADS, str(identity.account_id), math.ceil(size / (1024 * 1024)))

    def require_few_wrong(self, address: str) -> None:
        """Raise `TooManyAttempts` after too many wrong passwords from a network address in ten minutes.

        Wrong passwords for different accounts are counted together.
        """
        if wait := self._wrong.wait_seconds(address):
            seconds = math.ceil(wait)
            raise TooManyAttempts(WRONG.format(wait=_describe_wait(seconds)), wait_seconds=seconds)

    def note_wrong(self, address: str) -> None:
        """Count a wrong password from a network address."""
        self._wrong.note(address)


def _require(window: Window, sentence: str, who: str, amount: int = 1) -> None:
    if wait := window.take(who, amount):
        seconds = math.ceil(wait)
        raise TooManyRequests(sentence.format(most=window.most, wait=_describe_wait(seconds)), wait_seconds=seconds)


def _describe_wait(seconds: int) -> str:
    if seconds > 120:
        return f"{math.ceil(seconds / 60)} minutes"
    return "a second" if seconds == 1 else f"{seconds} seconds"


FREE_ATTEMPTS = 5
FIRST_WAIT_SECONDS = 10
LONGEST_WAIT_SECONDS = 300
FORGOTTEN_AFTER_SECONDS = 24 * 60 * 60
MAXIMUM_UNKNOWN = 10_000
#: How long an attempt is reserved for the browser whose turn it is.
TURN_SECONDS = 300
#: A browser silent for this long is gone.
SILENT_SECONDS = 600
#: The most browsers waiting for an account, in total and per network address: a person who deletes cookies fills only
#: their address's queue.
MOST_WAITING, MOST_WAITING_AT_ADDRESS = 50, 3
#: Requests for a new password within 15 minutes, per e-mail address. There is no common limit: strangers could use it
#: up and block everyone.
RESETS_FOR_ONE, RESETS_WITHIN_SECONDS = 3, 15 * 60


@dataclass(frozen=True, kw_only=True)
class Browser:
    """The data by which a browser is recognised at sign-in: tokens and network address."""

    #: The token stored at a person's sign-in in this browser; "" without a token.
    known_token: str = ""
    #: Distinguishes unknown browsers, for example by the form's token.
    mark: str = ""
    #: Its network address.
    address: str = ""


class Waiting(NamedTuple):
    """A browser waiting in an account's queue for its next attempt."""

    browser: str
    address: str
    seen_at: float


@dataclass(frozen=True, kw_only=True)
class Attempts:
    """An account's count of wrong passwords from unknown browsers, and the queue of browsers waiting to try again."""

    failed: int = 0
    #: Seconds of the clock.
    last_at: float = 0.0
    waiting: tuple[Waiting, ...] = ()

    def after_attempt(self, browser: Browser, now: float) -> tuple[Attempts, float]:
        """Return the state after an attempt, and the seconds to wait.

        If the wait is 0, the password may be checked now, and the attempt already counts as wrong. If not, the browser
        waits in the queue.
        """
        me = Waiting(_hash(browser.address, browser.mark), _hash(browser.address), now)
        failed = 0 if now - self.last_at >= FORGOTTEN_AFTER_SECONDS else self.failed
        opens_at = self.last_at + wait_seconds_after(failed)
        queue = [w for w in self.waiting if w.browser == me.browser or now - w.seen_at < SILENT_SECONDS]
        place = next((i for i, w in enumerate(queue) if w.browser == me.browser), len(queue))
        # A browser missing its turn is skipped after a while.
        turn = math.floor((now - opens_at) / TURN_SECONDS)
        if now >= opens_at and place <= turn:
            rest = tuple(w for w in queue if w.browser != me.browser)
            return replace(self, failed=failed + 1, last_at=now, waiting=rest), 0.0
        if place < len(queue):
            queue[place] = me
        elif len(queue) < MOST_WAITING and [w.address for w in queue].count(me.address) < MOST_WAITING_AT_ADDRESS:
            queue.append(me)
        wait = max(opens_at + place * TURN_SECONDS - now, 1.0)
        return replace(self, failed=failed, waiting=tuple(queue)), wait


def wait_seconds_after(failed_attempts: int) -> float:
    """Return the delay before the next password check after this many wrong passwords, in seconds."""
    if failed_attempts < FREE_ATTEMPTS:
        return 0.0
    return min(FIRST_WAIT_SECONDS * 2.0 ** min(failed_attempts - FREE_ATTEMPTS, 10), LONGEST_WAIT_SECONDS)


def next_attempt(failed_attempts: int, seconds_since: float) -> int:
    """Return the number of failed attempts, including this attempt.

    This attempt counts as wrong until it is checked. `failed_attempts` is the number before this attempt, and
    `seconds_since` the time since the last attempt. After a day without a wrong password the count starts again at 1.
    Raises `TooManyAttempts` if the attempt comes too early.
    """
    if seconds_since >= FORGOTTEN_AFTER_SECONDS:
        return 1
    wait_seconds = wait_seconds_after(failed_attempts) - seconds_since
    if wait_seconds > 0:
        raise too_early(wait_seconds)
    return failed_attempts + 1


def too_early(wait_seconds: float) -> TooManyAttempts:
    """Build the error for an attempt made before the delay is over."""
    seconds = math.ceil(wait_seconds)
    shown = f"{seconds} second{'s' if seconds != 1 else ''}" if seconds <= 300 else f"{math.ceil(seconds / 60)} minutes"
    return TooManyAttempts(f"Too many wrong passwords. Wait {shown} and try again.", wait_seconds=seconds)


class UnknownSignIns:
    """Count attempts for addresses without an account, with the same delays as for accounts.

    Delays would otherwise reveal which addresses have accounts. The counts are in memory and limited in number.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._attempts: OrderedDict[str, Attempts] = OrderedDict()

    def count(self, email: str, browser: Browser | None = None) -> None:
        """Count an attempt. Raises `TooManyAttempts` by the same rules as for an account."""
        with self._lock:
            attempts = self._attempts.get(email, Attempts())
            self._attempts[email], wait_seconds = attempts.after_attempt(browser or Browser(), self._clock())
            self._attempts.move_to_end(email)
            while len(self._attempts) > MAXIMUM_UNKNOWN:
                self._attempts.popitem(last=False)
        if wait_seconds:
            raise too_early(wait_seconds)


class ResetRequests:
    """Limit password reset requests for each address, whether or not an account has the address. In memory, bounded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: OrderedDict[str, deque[float]] = OrderedDict()

    def count(self, email: str) -> None:
        """Count a request. Raises `TooManyAttempts`, with the seconds to wait, after too many recent requests."""
        with self._lock:
            now = self._clock()
            same = self._asked.setdefault(email, deque())
            while same and now - same[0] >= RESETS_WITHIN_SECONDS:
                same.popleft()
            if len(same) >= RESETS_FOR_ONE:
                seconds = math.ceil(same[0] + RESETS_WITHIN_SECONDS - now)
                message = f"A new password was requested too often. Wait {math.ceil(seconds / 60)} min and try again."
                raise TooManyAttempts(message, wait_seconds=seconds)
            same.append(now)
            self._asked.move_to_end(email)
            while len(self._asked) > MAXIMUM_UNKNOWN:
                self._asked.popitem(last=False)


def _hash(*parts: str) -> str:
    """Return a short hash to tell browsers apart, so their network addresses are not stored."""
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
