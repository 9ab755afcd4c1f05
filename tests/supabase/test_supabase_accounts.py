"""Signing in at Supabase Auth, by the real client against a stand-in, into sessions of ours."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from starlette.applications import Starlette

from rag.access.guard import AuthGuard
from rag.access.identity import AccessServices
from rag.access.sessions import Sessions, token_hash
from rag.access.supabase import SupabaseAccounts
from rag.access.tenants import Tenants
from rag.api.form_pages import FormPages
from rag.errors import (
    AccessError,
    InvalidInput,
    NotAllowed,
    ProviderAnswerInvalid,
    ProviderError,
    ProviderKeyRejected,
    ProviderUnavailable,
    RagError,
    TooManyAttempts,
    WeakPassword,
    WrongPassword,
)
from rag.providers.supabase import SupabaseProject
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import FileStore
from rag.types import Account, Identity, Role
from tests.patience import patient
from tests.standins.supabase import SERVICE, SupabaseStandin

EMAIL, PASSWORD = "person@example.com", "correct horse battery"
TOKEN, USERS = "/auth/v1/token", "/auth/v1/admin/users"


@pytest.fixture
def sessions(database: Database, at_supabase: Settings) -> Sessions:
    return Sessions(database, at_supabase, clock=lambda: time.monotonic() * 1e9)  # keeps nothing


@pytest.fixture
def accounts(
    database: Database, sessions: Sessions, at_supabase: Settings, supabase_project: SupabaseProject
) -> SupabaseAccounts:
    return SupabaseAccounts(database, sessions, at_supabase, supabase_project)


def identity_of(account: Account, session_id: str = "") -> Identity:
    return Identity(
        account_id=account.id,
        tenant_id=account.tenant_id,
        email=account.email,
        name=account.name,
        role=account.role,
        session_id=session_id,
    )


@pytest.fixture
def admin(accounts: SupabaseAccounts) -> Identity:
    token = accounts.first_admin_link()
    assert token is not None
    return identity_of(accounts.create_first_admin(token, "admin@example.com", "Admin", PASSWORD))


def invited(accounts: SupabaseAccounts, admin: Identity, role: Role = Role.EMPLOYEE) -> Account:
    _, link = accounts.invite(admin, EMAIL, "Person", role)
    return accounts.set_password_by_link(link.partition("token=")[2], PASSWORD)


def make_due(database: Database) -> None:
    with database.transaction("demo") as connection:
        connection.execute("UPDATE session_origins SET check_after = now() - interval '1 second'")


def signed_by_another(standin: SupabaseStandin, user: dict[str, Any]) -> str:
    with SupabaseStandin() as another:
        return another.token(user, iss=f"{standin.url}/auth/v1")


def test_a_sign_in_never_changes_what_the_servers_own_client_sends(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin, supabase_project: SupabaseProject
) -> None:
    invited(accounts, admin)
    accounts.sign_in(EMAIL, PASSWORD)
    accounts.renew(standin_secret(accounts))
    standin.bearers.clear()
    supabase_project.server.auth.admin.list_users(page=1, per_page=10)
    supabase_project.server.storage.create_bucket("b", options={"public": False})
    assert {bearer for _, bearer in standin.bearers} == {SERVICE}


@pytest.fixture
def unhurried(database: Database, sessions: Sessions, at_supabase: Settings) -> Iterator[SupabaseAccounts]:
    """Accounts that wait long enough for Supabase to have many requests at once."""
    settings = replace(at_supabase, supabase_timeout_seconds=patient(30.0))
    project = SupabaseProject(settings)
    yield SupabaseAccounts(database, sessions, settings, project)
    project.close()


def people_at_supabase(standin: SupabaseStandin, count: int) -> list[str]:
    addresses = [f"person{number}@example.com" for number in range(count)]
    for address in addresses:
        standin.add_user(address, PASSWORD, tenant="demo", role="employee")
    return addresses


def test_people_who_sign_in_do_not_wait_for_each_others_password_to_be_checked(
    unhurried: SupabaseAccounts, standin: SupabaseStandin
) -> None:
    addresses = people_at_supabase(standin, 12)
    forms = FormPages(lambda: cast(AccessServices, SimpleNamespace(accounts=unhurried)))
    barrier = standin.meet(TOKEN, len(addresses))

    async def sign_in() -> list[Account]:
        return await asyncio.gather(*(forms.with_password(unhurried.sign_in, each, PASSWORD) for each in addresses))

    signed_in = asyncio.run(sign_in())
    assert not barrier.broken
    assert [account.email for account in signed_in] == addresses


def test_people_are_recognised_while_supabase_is_asked_for_others(
    unhurried: SupabaseAccounts, sessions: Sessions, standin: SupabaseStandin, database: Database
) -> None:
    addresses = people_at_supabase(standin, 12)
    started = [token_hash(sessions.start(unhurried.sign_in(each, PASSWORD))) for each in addresses]
    make_due(database)
    guard = AuthGuard(Starlette(), services=lambda: cast(AccessServices, SimpleNamespace(sessions=sessions)))
    barrier = standin.meet(TOKEN, len(addresses))

    async def recognise() -> list[Identity | None]:
        return await asyncio.gather(*(guard._look_up(session_id, sessions) for session_id in started))

    recognised = asyncio.run(recognise())
    assert not barrier.broken
    assert [identity.email for identity in recognised if identity] == addresses


def standin_secret(accounts: SupabaseAccounts) -> bytes:
    account = accounts.sign_in(EMAIL, PASSWORD)
    secret = account.origin.secret  # type: ignore[attr-defined]
    assert isinstance(secret, bytes)
    return secret


@pytest.mark.parametrize("is_legacy", [pytest.param(False, id="jwks"), pytest.param(True, id="shared_secret")])
def test_role_and_tenant_come_from_the_verified_token(
    accounts: SupabaseAccounts, standin: SupabaseStandin, is_legacy: bool
) -> None:
    standin.is_legacy = is_legacy
    standin.add_user(EMAIL, PASSWORD, tenant="other", role="manager")
    account = accounts.sign_in(f" {EMAIL.upper()} ", PASSWORD)
    assert (account.tenant_id, account.role, account.email) == ("other", Role.MANAGER, EMAIL)
    asked = "GET /auth/v1/user" if is_legacy else "GET /auth/v1/.well-known/jwks.json"
    assert standin.calls[asked] == 1


@pytest.mark.parametrize(
    ("stored", "sentence"),
    [
        pytest.param({}, "no organisation", id="no_tenant"),
        pytest.param({"tenant": ""}, "no organisation", id="empty_tenant"),
        pytest.param({"tenant": ["demo"]}, "no organisation", id="tenant_is_no_text"),
        pytest.param({"tenant": "nowhere"}, "not known here", id="unknown_tenant"),
        pytest.param({"tenant": "demo", "role": "owner"}, "a role that is not known", id="unknown_role"),
    ],
)
def test_who_has_no_place_here_is_told_so(
    accounts: SupabaseAccounts, standin: SupabaseStandin, stored: dict[str, Any], sentence: str
) -> None:
    standin.add_user(EMAIL, PASSWORD, **stored)
    with pytest.raises(AccessError, match=sentence):
        accounts.sign_in(EMAIL, PASSWORD)


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda s, u: s.token(u, iss="https://elsewhere.example/auth/v1"), id="another_project"),
        pytest.param(lambda s, u: s.token(u, aud="something"), id="another_use"),
        pytest.param(lambda s, u: s.token(u, exp=int(time.time()) - 10), id="expired"),
        pytest.param(lambda s, u: s.token(u)[:-8] + "AAAAAAAA", id="changed_signature"),
        pytest.param(lambda s, u: signed_by_another(s, u), id="another_key"),
        pytest.param(lambda s, u: "not.a.token", id="no_token"),
    ],
)
def test_a_token_that_is_not_the_projects_lets_nobody_in(
    accounts: SupabaseAccounts, standin: SupabaseStandin, forge: Callable[[SupabaseStandin, dict[str, Any]], str]
) -> None:
    user = standin.add_user(EMAIL, PASSWORD, tenant="demo", role="admin")
    forged = forge(standin, user)
    standin.token = lambda user, **changes: forged  # type: ignore[method-assign]
    with pytest.raises(ProviderAnswerInvalid):
        accounts.sign_in(EMAIL, PASSWORD)


ERRORS = [
    pytest.param(400, {"code": "invalid_credentials"}, WrongPassword, id="wrong_password"),
    pytest.param(400, {"code": "email_not_confirmed"}, AccessError, id="not_confirmed"),
    pytest.param(400, {"code": "user_banned"}, AccessError, id="banned"),
    pytest.param(429, {"code": "over_request_rate_limit"}, ProviderError, id="too_many"),
    pytest.param(403, {"error_code": "user_banned", "msg": "older form"}, AccessError, id="older_form"),
    pytest.param(401, {"code": "no_authorization"}, ProviderKeyRejected, id="wrong_public_key"),
    pytest.param(500, {"code": "unexpected_failure"}, ProviderUnavailable, id="server_error"),
    pytest.param(503, {}, ProviderUnavailable, id="unavailable"),
    pytest.param("timeout", {}, ProviderUnavailable, id="timeout"),
    pytest.param("reset", {}, ProviderUnavailable, id="reset"),
    pytest.param("garbage", {}, ProviderAnswerInvalid, id="makes_no_sense"),
]


@pytest.mark.parametrize(("kind", "body", "error"), ERRORS)
def test_every_fault_of_a_sign_in_is_an_error_of_ours(
    accounts: SupabaseAccounts, standin: SupabaseStandin, kind: int | str, body: dict[str, Any], error: type[RagError]
) -> None:
    standin.add_user(EMAIL, PASSWORD, tenant="demo")
    standin.fail(TOKEN, kind, {"message": "why", **body} if body else {})
    with pytest.raises(error) as caught:
        accounts.sign_in(EMAIL, PASSWORD)
    assert PASSWORD not in str(caught.value)
    assert accounts.sign_in(EMAIL, PASSWORD).email == EMAIL


@pytest.mark.parametrize("kind", ["timeout", "reset", 503, "garbage"])
@pytest.mark.parametrize("path", [USERS, "/auth/v1/.well-known", TOKEN])
def test_a_link_that_met_a_fault_works_again(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin, path: str, kind: int | str
) -> None:
    _, link = accounts.invite(admin, EMAIL, "Person")
    token = link.partition("token=")[2]
    standin.fail(path, kind)
    with pytest.raises(ProviderError):
        accounts.set_password_by_link(token, PASSWORD)
    if path == USERS:
        assert accounts.set_password_by_link(token, PASSWORD).email == EMAIL
    assert accounts.sign_in(EMAIL, PASSWORD).email == EMAIL


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param({"code": "weak_password", "weak_password": {"reasons": ["length"]}}, WeakPassword, id="weak"),
        pytest.param({"code": "same_password"}, InvalidInput, id="same"),
    ],
)
def test_a_new_password_that_supabase_refuses_is_said(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin, body: dict[str, Any], error: type[RagError]
) -> None:
    invited(accounts, admin)
    account = accounts.sign_in(EMAIL, PASSWORD)
    standin.fail("/auth/v1/user", 422, {"message": "why", **body})
    with pytest.raises(error):
        accounts.change_password(identity_of(account), PASSWORD, "another good password")


def test_a_wrong_key_of_the_server_is_named(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin
) -> None:
    _, link = accounts.invite(admin, EMAIL, "Person")
    standin.fail(USERS, 403, {"code": "not_admin", "message": "User not allowed"})
    with pytest.raises(ProviderKeyRejected, match="SUPABASE_SERVICE_ROLE_KEY"):
        accounts.set_password_by_link(link.partition("token=")[2], PASSWORD)


def test_an_invited_person_is_signed_up_with_tenant_and_role(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin
) -> None:
    account = invited(accounts, admin, Role.MANAGER)
    user = next(user for user in standin.users.values() if user["email"] == EMAIL)
    assert user["app_metadata"] == {"provider": "email", "tenant": "demo", "role": "manager"}
    assert (account.role, account.tenant_id) == (Role.MANAGER, "demo")


def test_an_invitation_takes_nobody_from_another_company_at_supabase(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin
) -> None:
    theirs = invited(accounts, admin)
    token = accounts.first_admin_link("other")
    assert token is not None
    squatter = identity_of(accounts.create_first_admin(token, "admin@other.example", "Other", PASSWORD))
    _, link = accounts.invite(squatter, EMAIL, "Person")
    with pytest.raises(InvalidInput, match="Supabase does not accept this address"):
        accounts.set_password_by_link(link.partition("token=")[2], "the squatter's password")
    for number in range(3):
        with pytest.raises(WrongPassword):
            accounts.sign_in(EMAIL, f"the squatter's password {number}")
    assert accounts.sign_in(EMAIL, PASSWORD).id == theirs.id


def test_no_company_squats_the_addresses_of_another_at_supabase(
    accounts: SupabaseAccounts, admin: Identity, database: Database, tmp_path: Path, standin: SupabaseStandin
) -> None:
    """The first to invite an address has it there, so a company with domains of its own can invite no others."""
    Tenants(database, FileStore(tmp_path)).set_domains("other", ["other.example"])
    token = accounts.first_admin_link("other")
    assert token is not None
    with pytest.raises(InvalidInput, match=r"addresses at other\.example"):
        accounts.create_first_admin(token, EMAIL, "Squatter", PASSWORD)
    squatter = identity_of(accounts.create_first_admin(token, "admin@other.example", "Other", PASSWORD))
    for address in (EMAIL, EMAIL.upper(), "person@sub.other.example", "person@example.com@example.com"):
        with pytest.raises(InvalidInput):
            accounts.invite(squatter, address, "Person")
    assert EMAIL not in [user["email"] for user in standin.users.values()]
    ours = invited(accounts, admin)
    assert accounts.sign_in(EMAIL, PASSWORD).id == ours.id


def test_who_has_an_account_at_supabase_already_is_invited_all_the_same(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin
) -> None:
    standin.add_user(EMAIL, "an older password")
    assert invited(accounts, admin).email == EMAIL
    with pytest.raises(WrongPassword):
        accounts.sign_in(EMAIL, "an older password")


def test_a_reset_by_link_ends_every_session(accounts: SupabaseAccounts, admin: Identity, sessions: Sessions) -> None:
    account = invited(accounts, admin)
    token = sessions.start(account)
    link = accounts.password_link(admin, account.id).partition("token=")[2]
    accounts.set_password_by_link(link, "another good password")
    assert sessions.find(token) is None
    assert accounts.sign_in(EMAIL, "another good password").id == account.id


def test_a_changed_password_leaves_this_session_and_ends_the_others(
    accounts: SupabaseAccounts, admin: Identity, sessions: Sessions, database: Database
) -> None:
    here, there = (sessions.start(invited_or_in(accounts, admin)) for _ in range(2))
    identity = sessions.find(here)
    assert identity is not None
    accounts.change_password(identity, PASSWORD, "another good password")
    make_due(database)
    assert sessions.find(here) is not None
    assert sessions.find(there) is None
    with pytest.raises(WrongPassword, match="current password"):
        accounts.change_password(identity, PASSWORD, "a third good password")


def invited_or_in(accounts: SupabaseAccounts, admin: Identity) -> Account:
    known = {account.email for account in accounts.list(admin)}
    return accounts.sign_in(EMAIL, PASSWORD) if EMAIL in known else invited(accounts, admin)


def test_a_session_is_refreshed_when_it_is_time_and_not_before(
    accounts: SupabaseAccounts, admin: Identity, sessions: Sessions, database: Database, standin: SupabaseStandin
) -> None:
    token = sessions.start(invited(accounts, admin))
    before = standin.calls[f"POST {TOKEN}"]
    assert sessions.find(token) is not None
    assert standin.calls[f"POST {TOKEN}"] == before
    for count in (1, 2):
        make_due(database)
        assert sessions.find(token) is not None
        assert sessions.find(token) is not None
        assert standin.calls[f"POST {TOKEN}"] == before + count


@pytest.mark.parametrize("kind", ["timeout", "reset", 503, "garbage"])
def test_trouble_with_asking_signs_nobody_out(
    accounts: SupabaseAccounts,
    admin: Identity,
    sessions: Sessions,
    database: Database,
    standin: SupabaseStandin,
    kind: int | str,
) -> None:
    token = sessions.start(invited(accounts, admin))
    make_due(database)
    standin.fail(TOKEN, kind)
    assert sessions.find(token) is not None


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(lambda s: s.refresh_tokens.clear(), id="signed_out_everywhere"),
        pytest.param(lambda s: s.users.clear(), id="deleted"),
        pytest.param(lambda s: [u.update(ban_duration="1h") for u in s.users.values()], id="banned"),
        pytest.param(lambda s: [u["app_metadata"].clear() for u in s.users.values()], id="tenant_taken_away"),
        pytest.param(
            lambda s: s.fail(TOKEN, 400, {"code": "validation_failed", "message": "why"}), id="token_is_malformed"
        ),
    ],
)
def test_who_is_out_at_supabase_is_out_here(
    accounts: SupabaseAccounts,
    admin: Identity,
    sessions: Sessions,
    database: Database,
    standin: SupabaseStandin,
    leave: Callable[[SupabaseStandin], object],
) -> None:
    token = sessions.start(invited(accounts, admin))
    leave(standin)
    make_due(database)
    assert sessions.find(token) is None
    assert sessions.find_by_id(token_hash(token)) is None


def test_a_role_changed_at_supabase_counts_from_the_next_refresh(
    accounts: SupabaseAccounts, admin: Identity, sessions: Sessions, database: Database, standin: SupabaseStandin
) -> None:
    token = sessions.start(invited(accounts, admin))
    next(user for user in standin.users.values() if user["email"] == EMAIL)["app_metadata"]["role"] = "manager"
    make_due(database)
    identity = sessions.find(token)
    assert identity is not None
    assert identity.role is Role.MANAGER


def test_a_role_changed_here_is_changed_at_supabase_and_a_disabled_person_banned(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin
) -> None:
    account = invited(accounts, admin)
    accounts.change(admin, account.id, role=Role.MANAGER)
    assert accounts.sign_in(EMAIL, PASSWORD).role is Role.MANAGER
    accounts.change(admin, account.id, is_active=False)
    with pytest.raises(AccessError, match="disabled"):
        accounts.sign_in(EMAIL, PASSWORD)
    accounts.change(admin, account.id, is_active=True)
    assert accounts.sign_in(EMAIL, PASSWORD).is_active


def test_a_role_that_supabase_did_not_take_is_not_changed_here(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin
) -> None:
    account = invited(accounts, admin)
    standin.fail(USERS, "reset")
    with pytest.raises(ProviderUnavailable):
        accounts.change(admin, account.id, role=Role.ADMIN)
    assert {person.id: person.role for person in accounts.list(admin)}[account.id] is Role.EMPLOYEE


def test_an_employee_changes_nothing_at_supabase(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin
) -> None:
    employee = identity_of(invited(accounts, admin))
    standin.calls.clear()
    with pytest.raises(NotAllowed):
        accounts.change(employee, admin.account_id, is_active=False)
    assert not standin.calls


def test_signing_out_here_signs_out_there(
    accounts: SupabaseAccounts, admin: Identity, sessions: Sessions, standin: SupabaseStandin
) -> None:
    token = sessions.start(invited(accounts, admin))
    sessions.end(token)
    assert sessions.find(token) is None
    assert standin.calls["POST /auth/v1/logout"] == 1


@pytest.mark.parametrize("kind", ["timeout", "reset", 503])
def test_signing_out_works_though_supabase_does_not(
    accounts: SupabaseAccounts, admin: Identity, sessions: Sessions, standin: SupabaseStandin, kind: int | str
) -> None:
    token = sessions.start(invited(accounts, admin))
    standin.fail("/auth/v1/", kind, times=2)
    sessions.end(token)
    assert sessions.find(token) is None


def test_guessing_is_slowed_before_supabase_is_asked(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin
) -> None:
    invited(accounts, admin)
    asked = standin.calls[f"POST {TOKEN}"]
    seen = 0
    for _ in range(12):
        try:
            accounts.sign_in(EMAIL, "a wrong password")
        except WrongPassword:
            seen += 1
        except TooManyAttempts:
            pass
    assert 0 < seen < 12
    assert standin.calls[f"POST {TOKEN}"] == asked + seen


def test_the_refresh_token_is_not_readable_in_the_database(
    accounts: SupabaseAccounts, admin: Identity, sessions: Sessions, database: Database, standin: SupabaseStandin
) -> None:
    sessions.start(invited(accounts, admin))
    with database.transaction("demo") as connection:
        (secret,) = connection.execute("SELECT secret FROM session_origins").fetchone() or (b"",)
    assert secret
    assert not [token for token in standin.refresh_tokens if token.encode() in bytes(secret)]


def test_an_address_that_is_given_to_somebody_else_does_not_open_the_old_account(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin
) -> None:
    invited(accounts, admin)
    standin.users = {key: user for key, user in standin.users.items() if user["email"] != EMAIL}
    standin.add_user(EMAIL, PASSWORD, tenant="demo", role="admin")
    with pytest.raises(AccessError, match="somebody else"):
        accounts.sign_in(EMAIL, PASSWORD)


def test_a_person_of_one_tenant_cannot_be_moved_into_another(
    accounts: SupabaseAccounts, admin: Identity, standin: SupabaseStandin
) -> None:
    invited(accounts, admin)
    next(user for user in standin.users.values() if user["email"] == EMAIL)["app_metadata"]["tenant"] = "other"
    with pytest.raises(AccessError, match="another organisation"):
        accounts.sign_in(EMAIL, PASSWORD)


def test_somebody_signed_in_proves_again_who_they_are_at_supabase(
    accounts: SupabaseAccounts, admin: Identity, sessions: Sessions, standin: SupabaseStandin
) -> None:
    account = invited(accounts, admin)
    token = sessions.start(account)
    with pytest.raises(WrongPassword):
        accounts.require_password(identity_of(account), "a wrong password")
    for _ in range(8):
        accounts.require_password(identity_of(account), PASSWORD)
    assert standin.calls["POST /auth/v1/logout"] == 8, "no session of the check stays open there"
    assert sessions.find(token) is not None
