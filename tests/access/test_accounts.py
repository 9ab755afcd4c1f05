from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from argon2 import PasswordHasher

from rag.access.accounts import Accounts
from rag.errors import (
    AccessError,
    InvalidInput,
    LinkExpired,
    NotAllowed,
    NotFound,
    TooManyAttempts,
    WeakPassword,
    WrongPassword,
)
from rag.storage.database import Database
from rag.types import Identity, Role
from tests.access.front_door import CHEAP, PASSWORD, Access, AddPerson, identity_of

EMAIL = "employee@example.com"


def wait_over(database: Database, email: str) -> None:
    """As if ten minutes had passed since the last wrong password."""
    with database.transaction("demo") as connection:
        connection.execute(
            "UPDATE accounts SET last_failed_at = last_failed_at - interval '10 minutes' WHERE email = %s", (email,)
        )


def token_of(link: str) -> str:
    return link.partition("token=")[2]


# The first administrator


def test_the_first_link_makes_an_administrator_and_then_there_are_no_more_links(access: Access) -> None:
    token = access.accounts.first_admin_link()
    assert token is not None
    account = access.accounts.create_first_admin(token, " Admin@Example.COM ", "  Ada \n Admin ", PASSWORD)
    assert (account.email, account.name, account.role) == ("admin@example.com", "Ada Admin", Role.ADMIN)
    assert access.accounts.first_admin_link() is None
    assert access.accounts.sign_in("admin@example.com", PASSWORD).id == account.id


def test_a_new_start_voids_the_link_of_the_one_before(access: Access) -> None:
    first, second = access.accounts.first_admin_link(), access.accounts.first_admin_link()
    assert first is not None
    assert second is not None
    with pytest.raises(LinkExpired):
        access.accounts.create_first_admin(first, "a@example.com", "A", PASSWORD)
    access.accounts.require_first_admin_link(second)


def test_two_clicks_at_once_make_one_administrator(access: Access) -> None:
    token = access.accounts.first_admin_link() or ""

    def click(number: int) -> bool:
        try:
            access.accounts.create_first_admin(token, f"admin{number}@example.com", "Admin", PASSWORD)
        except LinkExpired:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(click, range(8))) == 1


def test_a_link_is_not_used_up_by_input_that_is_refused(access: Access) -> None:
    token = access.accounts.first_admin_link() or ""
    with pytest.raises(WeakPassword):
        access.accounts.create_first_admin(token, "admin@example.com", "Admin", "short")
    with pytest.raises(InvalidInput):
        access.accounts.create_first_admin(token, "not an address", "Admin", PASSWORD)
    with pytest.raises(InvalidInput):
        access.accounts.create_first_admin(token, "admin@example.com", " \x00 ", PASSWORD)
    access.accounts.create_first_admin(token, "admin@example.com", "Admin", PASSWORD)


def test_a_link_expires_after_a_day(access: Access, database: Database) -> None:
    token = access.accounts.first_admin_link() or ""
    with database.transaction("demo") as connection:
        found = connection.execute("SELECT expires_at - now() < interval '24 hours 1 minute' FROM one_time_links")
        assert found.fetchall() == [(True,)]
        connection.execute("UPDATE one_time_links SET expires_at = now() - interval '1 second'")
    with pytest.raises(LinkExpired):
        access.accounts.create_first_admin(token, "admin@example.com", "Admin", PASSWORD)


@pytest.mark.parametrize("token", ["", "x", "\x00", "\ud800", "é" * 43])
def test_an_invented_link_is_expired(access: Access, token: str) -> None:
    with pytest.raises(LinkExpired):
        access.accounts.require_first_admin_link(token)
    with pytest.raises(LinkExpired):
        access.accounts.set_password_by_link(token, PASSWORD)


def test_a_link_serves_its_own_purpose_only(access: Access, admin: Identity) -> None:
    _, link = access.accounts.invite(admin, EMAIL)
    with pytest.raises(LinkExpired):
        access.accounts.require_first_admin_link(token_of(link))


def test_tokens_and_passwords_are_stored_as_hashes_only(
    access: Access, admin: Identity, superuser_conninfo: str
) -> None:
    _, link = access.accounts.invite(admin, EMAIL)
    session = access.sessions.start(access.accounts.sign_in(admin.email, PASSWORD))
    with psycopg.connect(superuser_conninfo) as connection:
        stored = str(connection.execute("SELECT accounts::text FROM accounts").fetchall())
        stored += str(connection.execute("SELECT sessions::text FROM sessions").fetchall())
        stored += str(connection.execute("SELECT one_time_links::text FROM one_time_links").fetchall())
    assert not any(secret in stored for secret in (PASSWORD, session, token_of(link)))


# Signing in


def test_a_wrong_password_and_an_unknown_address_look_alike(access: Access, admin: Identity) -> None:
    messages = set()
    for email in (admin.email, "nobody@example.com", "", "not an address", "x" * 5000, "a\x00@example.com"):
        with pytest.raises(WrongPassword) as caught:
            access.accounts.sign_in(email, "a wrong password")
        messages.add(caught.value.message)
    assert len(messages) == 1


def test_five_wrong_passwords_slow_the_sixth_even_if_it_is_right(
    access: Access, admin: Identity, database: Database
) -> None:
    for _ in range(5):
        with pytest.raises(WrongPassword):
            access.accounts.sign_in(admin.email, "a wrong password")
    with pytest.raises(TooManyAttempts, match=r"Wait \d+ seconds"):
        access.accounts.sign_in(admin.email, PASSWORD)
    wait_over(database, admin.email)
    assert access.accounts.sign_in(admin.email, PASSWORD).last_signed_in_at is not None
    with pytest.raises(WrongPassword):
        access.accounts.sign_in(admin.email, "a wrong password")


def test_an_unknown_address_waits_just_the_same(access: Access) -> None:
    for _ in range(5):
        with pytest.raises(WrongPassword):
            access.accounts.sign_in("Nobody@example.com", "a wrong password")
    with pytest.raises(TooManyAttempts):
        access.accounts.sign_in("nobody@example.com ", "a wrong password")


def test_guesses_made_at_once_are_slowed_like_those_made_in_turn(access: Access, admin: Identity) -> None:
    def guess(number: int) -> type[Exception]:
        try:
            access.accounts.sign_in(admin.email, f"wrong password {number}")
        except (WrongPassword, TooManyAttempts) as exc:
            return type(exc)
        raise AssertionError

    with ThreadPoolExecutor(12) as threads:
        outcomes = list(threads.map(guess, range(12)))
    assert outcomes.count(WrongPassword) == 5
    assert outcomes.count(TooManyAttempts) == 7


def test_signing_in_renews_a_hash_of_older_parameters(
    access: Access, admin: Identity, database: Database, superuser_conninfo: str
) -> None:
    stronger = Accounts(database, access.sessions, hasher=PasswordHasher(time_cost=2, memory_cost=16, parallelism=1))
    stronger.sign_in(admin.email, PASSWORD)
    with psycopg.connect(superuser_conninfo) as connection:
        (stored,) = connection.execute("SELECT password_hash FROM accounts").fetchone() or ("",)
    assert "m=16,t=2" in stronger._passwords._open(stored)
    stronger.sign_in(admin.email, PASSWORD)


def test_an_invited_person_cannot_sign_in_before_choosing_a_password(access: Access, admin: Identity) -> None:
    access.accounts.invite(admin, EMAIL)
    for password in ("", "not chosen"):
        with pytest.raises(WrongPassword):
            access.accounts.sign_in(EMAIL, password)


def test_a_disabled_account_is_told_so_only_with_the_right_password(
    access: Access, admin: Identity, add_person: AddPerson
) -> None:
    account = add_person(EMAIL)
    access.accounts.change(admin, account.id, is_active=False)
    with pytest.raises(WrongPassword):
        access.accounts.sign_in(EMAIL, "a wrong password")
    with pytest.raises(AccessError, match="disabled") as caught:
        access.accounts.sign_in(EMAIL, PASSWORD)
    assert not isinstance(caught.value, WrongPassword)


# Changing a password


def test_changing_the_password_ends_the_other_sessions(access: Access, admin: Identity, add_person: AddPerson) -> None:
    account = add_person(EMAIL)
    here, there = access.sessions.start(account), access.sessions.start(account)
    identity = access.sessions.find(here)
    assert identity is not None
    assert access.sessions.find(there) is not None
    access.accounts.change_password(identity, PASSWORD, "another good password")
    assert access.sessions.find(here) is not None
    assert access.sessions.find(there) is None
    with pytest.raises(WrongPassword):
        access.accounts.sign_in(EMAIL, PASSWORD)
    access.accounts.sign_in(EMAIL, "another good password")


def test_changing_the_password_needs_the_old_one_and_counts_wrong_ones(access: Access, admin: Identity) -> None:
    for _ in range(5):
        with pytest.raises(WrongPassword, match="current password"):
            access.accounts.change_password(admin, "a wrong password", "another good password")
    with pytest.raises(TooManyAttempts):
        access.accounts.change_password(admin, PASSWORD, "another good password")


def test_a_set_password_link_works_once_and_ends_all_sessions(
    access: Access, admin: Identity, add_person: AddPerson
) -> None:
    account = add_person(EMAIL)
    session = access.sessions.start(account)
    link = access.accounts.password_link(admin, account.id)
    assert link.startswith("/set-password?token=")
    assert access.accounts.account_of_link(token_of(link)).email == EMAIL
    access.accounts.sign_in(EMAIL, PASSWORD)
    access.accounts.set_password_by_link(token_of(link), "another good password")
    assert access.sessions.find(session) is None
    with pytest.raises(LinkExpired):
        access.accounts.set_password_by_link(token_of(link), "a third good password")


def test_a_new_link_voids_the_one_before_but_not_those_of_others(access: Access, admin: Identity) -> None:
    account, first = access.accounts.invite(admin, EMAIL)
    _, other = access.accounts.invite(admin, "other@example.com")
    second = access.accounts.password_link(admin, account.id)
    with pytest.raises(LinkExpired):
        access.accounts.account_of_link(token_of(first))
    access.accounts.account_of_link(token_of(second))
    access.accounts.account_of_link(token_of(other))


def test_a_link_does_not_open_a_disabled_account(access: Access, admin: Identity) -> None:
    account, link = access.accounts.invite(admin, EMAIL)
    access.accounts.change(admin, account.id, is_active=False)
    with pytest.raises(LinkExpired):
        access.accounts.set_password_by_link(token_of(link), PASSWORD)
    with pytest.raises(InvalidInput, match="disabled"):
        access.accounts.password_link(admin, account.id)


# What administrators do


@pytest.mark.parametrize("role", [Role.EMPLOYEE, Role.MANAGER])
def test_only_administrators_administer(access: Access, add_person: AddPerson, role: Role) -> None:
    account = add_person(EMAIL, role)
    identity = identity_of(account)
    for act in (
        lambda: access.accounts.list(identity),
        lambda: access.accounts.invite(identity, "new@example.com"),
        lambda: access.accounts.password_link(identity, account.id),
        lambda: access.accounts.change(identity, account.id, role="admin"),
    ):
        with pytest.raises(NotAllowed):
            act()


def test_the_role_is_read_again_and_not_believed(access: Access, add_person: AddPerson) -> None:
    forged = replace(identity_of(add_person(EMAIL)), role=Role.ADMIN)
    with pytest.raises(NotAllowed):
        access.accounts.change(forged, forged.account_id, role="admin")


def test_an_address_has_one_account(access: Access, admin: Identity) -> None:
    access.accounts.invite(admin, EMAIL)
    with pytest.raises(InvalidInput, match="already"):
        access.accounts.invite(admin, EMAIL.upper())


@pytest.mark.parametrize("email", ["", "x", "@", "a b@example.com", "a@b@c", "x" * 250 + "@example.com", "a\x00@b.c"])
def test_what_is_no_address_is_refused(access: Access, admin: Identity, email: str) -> None:
    with pytest.raises(InvalidInput, match="e-mail address"):
        access.accounts.invite(admin, email)


def test_people_are_listed_and_changed(access: Access, admin: Identity) -> None:
    account, _ = access.accounts.invite(admin, EMAIL, "김하늘", "manager", "Sales")
    assert [person.name for person in access.accounts.list(admin)] == ["Admin", "김하늘"]
    changed = access.accounts.change(admin, account.id, role="employee", name="Kim Haneul", user_group="")
    assert (changed.name, changed.role, changed.user_group) == ("Kim Haneul", Role.EMPLOYEE, "")
    with pytest.raises(InvalidInput, match="no role"):
        access.accounts.change(admin, account.id, role="owner")


def test_the_only_administrator_stays_one(access: Access, admin: Identity) -> None:
    for change in ({"is_active": False}, {"role": "manager"}):
        with pytest.raises(NotAllowed, match="only active administrator"):
            access.accounts.change(admin, admin.account_id, **change)
    assert access.accounts.change(admin, admin.account_id, name="Ada", role="admin", is_active=True).name == "Ada"


def test_an_administrator_cannot_demote_themselves(access: Access, admin: Identity, add_person: AddPerson) -> None:
    add_person("second@example.com", Role.ADMIN)
    with pytest.raises(NotAllowed, match="Ask another administrator"):
        access.accounts.change(admin, admin.account_id, role="employee")


def test_two_administrators_who_demote_each_other_at_once_leave_one(
    access: Access, admin: Identity, add_person: AddPerson
) -> None:
    second = identity_of(add_person("second@example.com", Role.ADMIN))

    def demote(pair: tuple[Identity, Identity]) -> bool:
        try:
            access.accounts.change(pair[0], pair[1].account_id, role="employee")
        except NotAllowed:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        assert sum(threads.map(demote, [(admin, second), (second, admin)])) == 1


def test_another_tenants_people_are_out_of_reach(access: Access, admin: Identity, database: Database) -> None:
    other = Accounts(database, access.sessions, replace(access.settings, tenant="other"), hasher=CHEAP)
    stranger = identity_of(other.create_first_admin(other.first_admin_link() or "", "x@other.com", "X", PASSWORD))
    assert [person.email for person in access.accounts.list(stranger)] == ["x@other.com"]
    for act in (
        lambda: access.accounts.change(stranger, admin.account_id, is_active=False),
        lambda: access.accounts.password_link(stranger, admin.account_id),
        lambda: access.accounts.change(stranger, uuid4(), name="Y"),
    ):
        with pytest.raises(NotFound):
            act()
    with pytest.raises(NotAllowed):
        access.accounts.change(replace(stranger, tenant_id="demo"), admin.account_id, is_active=False)
