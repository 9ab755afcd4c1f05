"""Passwords: which are accepted, and how they are kept (argon2id, parameters of argon2-cffi's RFC 9106 profile)."""

from __future__ import annotations

import secrets
import unicodedata

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from rag.errors import WeakPassword

MINIMUM_CHARACTERS = 10
MAXIMUM_CHARACTERS = 1024
#: Stored for an account that has not chosen a password yet; no password matches it.
NOT_CHOSEN = "not chosen"
#: The commonest of ten characters and more in published lists of leaked passwords.
# fmt: off
COMMONEST = frozenset([
    "0000000000", "0123456789", "0987654321", "1029384756", "1111111111", "11111111111", "1122334455", "1212121212",
    "1231231231", "123123123123", "1234567890", "1234567891", "12345678910", "123456789a", "123456789abc",
    "123456789q", "147258369a", "1q2w3e4r5t", "1q2w3e4r5t6y", "1qaz2wsx3edc", "9876543210", "a123456789",
    "abc1234567", "abcd123456", "abcdefghij", "abcdefghijk", "admin12345", "admin123456", "adminadmin",
    "administrator", "asdfghjkl1", "asdfghjkl;", "baseball123", "basketball", "changeme12", "changeme123",
    "company123", "computer12", "default123", "dragon1234", "football123", "iloveyou12", "iloveyou123",
    "iloveyou1234", "internet12", "jennifer12", "letmein123", "letmeinnow", "liverpool1", "manchester",
    "michael123", "monkey1234", "my-password", "mypassword", "p@ssw0rd12", "p@ssw0rd123", "p@ssword123",
    "passw0rd12", "password1!", "password10", "password12", "password123", "password123!", "password1234",
    "password12345", "princess12", "princess123", "q1w2e3r4t5", "q1w2e3r4t5y6", "qazwsxedc1", "qazwsxedcrfv",
    "qwerty1234", "qwerty12345", "qwerty123456", "qwertyuiop", "qwertyuiop123", "rootroot12", "secret1234",
    "starwars12", "summer2024", "summer2025", "summer2026", "sunshine12", "sunshine123", "superadmin", "superman12",
    "superman123", "temporary1", "trustno1234", "welcome123", "welcome1234", "welcome2024", "welcome2025",
    "welcome2026", "whatever12", "winter2024", "winter2025", "winter2026", "zxcvbnm123",
])
# fmt: on


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
    plain = normal.casefold().strip()
    if len(normal) < MINIMUM_CHARACTERS:
        raise WeakPassword(f"Choose a password of at least {MINIMUM_CHARACTERS} characters.")
    if len(password) > MAXIMUM_CHARACTERS:
        raise WeakPassword(f"Choose a password of at most {MAXIMUM_CHARACTERS:,} characters.")
    if plain in (email.casefold(), email.casefold().partition("@")[0]):
        raise WeakPassword("Choose a password that is not your e-mail address.")
    if plain in COMMONEST or len(set(plain)) < 3:
        raise WeakPassword("This password is among the first that are guessed. Choose another.")


def _normal(password: str) -> bytes:
    """The same bytes whichever way a keyboard composes its letters (NIST SP 800-63B, 5.1.1.2)."""
    return unicodedata.normalize("NFKC", password[: MAXIMUM_CHARACTERS + 1]).encode("utf-8", "surrogatepass")
