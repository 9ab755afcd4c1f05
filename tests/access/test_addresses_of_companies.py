"""One address, two companies: neither learns of the other, takes the address from it, or keeps its person out."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from argon2 import PasswordHasher

from rag.access.accounts import Accounts
from rag.access.external import ExternalAccounts, ExternalPerson
from rag.access.limits import Browser
from rag.errors import AccessError, InvalidInput, TooManyAttempts, WrongPassword
from rag.storage.database import Database
from rag.types import Account, Identity
from tests.access.front_door import CHEAP, PASSWORD, Access, identity_of

SHARED = "person@example.com"
SQUATTERS = "the squatter's password"


@pytest.fixture
def squatter(access: Access) -> Identity:
    """The administrator of the other company."""
    token = access.accounts.first_admin_link("other")
    assert token is not None
    return identity_of(access.accounts.create_first_admin(token, "admin@other.example", "Other", PASSWORD))


def join(access: Access, admin: Identity, password: str) -> Account:
    """Invited by this administrator, with a password set by whoever has the link."""
    _, link = access.accounts.invite(admin, SHARED, "Person")
    return access.accounts.set_password_by_link(link.partition("token=")[2], password)


def test_an_invitation_says_nothing_of_another_company(access: Access, admin: Identity, squatter: Identity) -> None:
    theirs, _ = access.accounts.invite(squatter, SHARED)
    ours, _ = access.accounts.invite(admin, SHARED)
    assert (theirs.tenant_id, ours.tenant_id) == ("other", "demo")
    with pytest.raises(InvalidInput, match="already"):
        access.accounts.invite(admin, SHARED)


def test_an_address_that_another_company_took_first_signs_in_at_its_own(
    access: Access, admin: Identity, squatter: Identity
) -> None:
    theirs = join(access, squatter, SQUATTERS)
    ours = join(access, admin, PASSWORD)
    assert access.accounts.sign_in(SHARED, PASSWORD).id == ours.id
    assert access.accounts.sign_in(SHARED, SQUATTERS).id == theirs.id
    with pytest.raises(WrongPassword):
        access.accounts.sign_in(SHARED, "neither of the two")


def test_guesses_at_the_one_account_do_not_keep_the_other_out(
    access: Access, admin: Identity, squatter: Identity
) -> None:
    ours = join(access, admin, PASSWORD)
    join(access, squatter, SQUATTERS)
    known = Browser(known_token=access.accounts.know_browser("demo", ours.id), mark="home")
    for number in range(8):
        with pytest.raises((WrongPassword, TooManyAttempts)):
            access.accounts.sign_in(SHARED, "a guess of mine", Browser(mark=f"b{number}", address=f"a{number}"))
    assert access.accounts.sign_in(SHARED, PASSWORD, known).id == ours.id


def test_disabled_in_one_company_is_not_disabled_in_the_other(
    access: Access, admin: Identity, squatter: Identity
) -> None:
    ours, theirs = join(access, admin, PASSWORD), join(access, squatter, PASSWORD)
    access.accounts.change(squatter, theirs.id, is_active=False)
    assert access.accounts.sign_in(SHARED, PASSWORD).id == ours.id
    access.accounts.change(admin, ours.id, is_active=False)
    with pytest.raises(AccessError, match="disabled"):
        access.accounts.sign_in(SHARED, PASSWORD)


def test_a_wish_for_a_new_password_reaches_both(access: Access, admin: Identity, squatter: Identity) -> None:
    join(access, admin, PASSWORD)
    join(access, squatter, SQUATTERS)
    access.accounts.ask_for_password(SHARED)
    for who in (admin, squatter):
        assert {a.email for a in access.accounts.list(who) if a.password_asked_at} == {SHARED}


def test_single_sign_on_finds_the_account_of_its_own_company(
    access: Access, admin: Identity, squatter: Identity, database: Database
) -> None:
    join(access, squatter, SQUATTERS)
    ours, _ = access.accounts.invite(admin, SHARED)
    person = ExternalPerson(issuer="https://sso", subject="1", email=SHARED, tenant_id="demo")
    assert ExternalAccounts(database).admit(person).id == ours.id


class Counting(PasswordHasher):
    """A cheap hasher that counts."""

    verified = 0

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
        Counting.verified += 1
        return CHEAP.verify(hash, password)


def test_one_account_of_an_address_takes_as_many_hashes_as_two(
    access: Access, admin: Identity, squatter: Identity
) -> None:
    hasher = Counting(time_cost=1, memory_cost=8, parallelism=1)
    accounts = Accounts(access.accounts._database, access.sessions, access.settings, hasher=hasher)
    asking = replace(access, accounts=accounts)

    def hashes(email: str) -> int:
        before = Counting.verified
        with pytest.raises(WrongPassword):
            accounts.sign_in(email, "not the password", Browser(mark="b"))
        return Counting.verified - before

    join(asking, squatter, SQUATTERS)
    alone, unknown = hashes(SHARED), hashes("nobody@example.com")
    join(asking, admin, PASSWORD)
    assert (alone, unknown, hashes(SHARED)) == (2, 2, 2)
