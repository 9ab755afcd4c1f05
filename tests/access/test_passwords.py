from __future__ import annotations

import unicodedata

import pytest
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from rag.access.passwords import NOT_CHOSEN, Passwords, decoy, require_good_password
from rag.errors import WeakPassword

CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
EMAIL = "somebody.long@example.com"
KEY = b"of the database"


@pytest.mark.parametrize(
    ("password", "reason"),
    [
        ("", "at least 10"),
        ("nine char", "at least 10"),
        ("비밀번호아홉자다요", "at least 10"),
        ("x" * 1025, "at most"),
        ("Somebody.Long@Example.com", "e-mail"),
        ("somebody.long", "e-mail"),
        ("Password123", "easy to guess"),
        (" qwertyuiop ", "easy to guess"),
        # Blanks do not make a common word of nine characters one of ten that no list has.
        ("password  ", "at least 10"),
        (" 123456789", "at least 10"),
        ("password1\u3000\u00a0", "at least 10"),
        ("aaaaaaaaaaaaa", "easy to guess"),
        ("ababababababab", "easy to guess"),
        # Of the list of leaked passwords, in the case it has them in and in another.
        ("mercedesbenz", "easy to guess"),
        ("Mercedesbenz", "easy to guess"),
        ("thunderbird1", "easy to guess"),
        ("snickers123", "easy to guess"),
    ],
)
def test_a_weak_password_is_refused_with_its_reason(password: str, reason: str) -> None:
    with pytest.raises(WeakPassword, match=reason):
        require_good_password(password, email=EMAIL)


@pytest.mark.parametrize(
    "password", ["ten chars!", "correct horse battery", "휴가는 며칠인가요 알려줘", "x1" * 5 + "y"]
)
def test_a_good_password_passes(password: str) -> None:
    require_good_password(password, email=EMAIL)


def test_only_the_password_itself_matches_its_hash() -> None:
    passwords = Passwords(CHEAP, key=KEY)
    stored = passwords.hash("correct horse")
    assert passwords.matches("correct horse", stored)
    assert not passwords.matches("Correct horse", stored)
    assert not passwords.matches("", stored)


@pytest.mark.parametrize("stored", [None, "", NOT_CHOSEN, "$argon2id$damaged"])
def test_nothing_matches_where_no_password_was_chosen(stored: str | None) -> None:
    passwords = Passwords(CHEAP, key=KEY)
    assert not passwords.matches("", stored)
    assert not passwords.matches(NOT_CHOSEN, stored)


def test_a_password_is_the_same_however_its_letters_are_composed() -> None:
    passwords = Passwords(CHEAP, key=KEY)
    stored = passwords.hash(unicodedata.normalize("NFD", "비밀번호를 바꾸세요 é"))
    assert passwords.matches(unicodedata.normalize("NFC", "비밀번호를 바꾸세요 é"), stored)


def test_two_hashes_of_one_password_differ_and_are_argon2id() -> None:
    passwords = Passwords(CHEAP, key=KEY)
    first, second = (passwords._open(passwords.hash("correct horse")) for _ in range(2))
    assert first != second
    assert first.startswith("$argon2id$")


def test_what_is_stored_is_no_hash_to_who_does_not_have_the_key() -> None:
    passwords, others = Passwords(CHEAP, key=KEY), Passwords(CHEAP, key=b"another")
    stored = passwords.hash("correct horse")
    assert "argon2" not in stored
    with pytest.raises(InvalidHashError):
        CHEAP.verify(stored, "correct horse")
    assert not others.matches("correct horse", stored)
    # One of before hashes were encrypted is right, and is replaced.
    earlier = CHEAP.hash("correct horse")
    assert passwords.matches("correct horse", earlier)
    assert passwords.is_outdated(earlier)
    assert not passwords.is_outdated(stored)
    # Who can write to the table gains nothing by a hash of their own, encrypted or not, for another key.
    assert not passwords.matches("correct horse", others.hash("correct horse"))


def test_other_parameters_make_a_hash_outdated() -> None:
    stored = Passwords(CHEAP, key=KEY).hash("correct horse")
    assert not Passwords(CHEAP, key=KEY).is_outdated(stored)
    assert Passwords(PasswordHasher(time_cost=2, memory_cost=8, parallelism=1), key=KEY).is_outdated(stored)


def test_a_password_that_cannot_be_encoded_is_only_wrong() -> None:
    assert not Passwords(CHEAP, key=KEY).matches(
        "\ud800 correct horse", Passwords(CHEAP, key=KEY).hash("correct horse")
    )


def test_what_is_checked_for_an_unknown_account_is_a_hash_like_any_other() -> None:
    """It is drawn and not made, yet checked to its end: what is no hash would be refused at once."""
    for hasher in (CHEAP, PasswordHasher()):
        drawn = decoy(hasher)
        assert not hasher.check_needs_rehash(drawn)
        assert list(map(len, drawn.split("$"))) == list(map(len, hasher.hash("correct horse").split("$")))
        with pytest.raises(VerifyMismatchError):
            hasher.verify(drawn, "correct horse")
    assert decoy(CHEAP) != decoy(CHEAP)
