"""A lost password where Supabase keeps passwords: its e-mail leads to a page of ours, and tells of nobody else."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import pytest
from httpx2 import Response
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from rag.access.api_keys import ApiKeys
from rag.access.connected_apps import ConnectedApps
from rag.access.guard import AuthGuard
from rag.access.limits import Limits
from rag.access.sessions import Sessions
from rag.access.supabase import SupabaseAccounts
from rag.api.app import routes_to
from rag.api.sign_in import routes
from rag.errors import AccessError, LinkExpired, RagError, WeakPassword, WrongPassword
from rag.providers.supabase import SupabaseProject
from rag.server import API
from rag.settings import Settings
from rag.storage.database import Database
from tests.standins.supabase import SERVICE, SupabaseStandin

EMAIL, PASSWORD, NEW = "person@example.com", "correct horse battery", "another good password"


@pytest.fixture
def sessions(database: Database, at_supabase: Settings) -> Sessions:
    return Sessions(database, at_supabase, clock=lambda: time.monotonic() * 1e9)


@pytest.fixture
def accounts(
    database: Database, sessions: Sessions, at_supabase: Settings, supabase_project: SupabaseProject
) -> SupabaseAccounts:
    return SupabaseAccounts(database, sessions, at_supabase, supabase_project)


def came_by_mail(accounts: SupabaseAccounts, standin: SupabaseStandin) -> tuple[str, str]:
    """What stands behind the # of the link that was sent."""
    accounts.ask_for_password(EMAIL)
    told = parse_qs(standin.mails[EMAIL][1])
    return told["access_token"][0], told["refresh_token"][0]


def test_whatever_supabase_says_to_it_the_answer_is_the_same(
    accounts: SupabaseAccounts, standin: SupabaseStandin
) -> None:
    standin.add_user(EMAIL, PASSWORD, tenant="demo")
    faults: list[tuple[int | str, dict[str, Any]]] = [
        (429, {"code": "over_email_send_rate_limit", "message": "only after 58 seconds"}),
        (500, {"code": "unexpected_failure", "message": "Error sending recovery email"}),
        ("reset", {}),
        ("timeout", {}),
        ("garbage", {}),
    ]
    for kind, body in faults:
        standin.fail("/auth/v1/recover", kind, body)
        accounts.ask_for_password(EMAIL)
        assert not any(fault.times for fault in standin.faults)
    accounts.ask_for_password("nobody@example.com")
    assert standin.mails == {}


def test_the_link_leads_to_the_page_that_sets_a_new_password(
    accounts: SupabaseAccounts, sessions: Sessions, standin: SupabaseStandin, at_supabase: Settings
) -> None:
    standin.add_user(EMAIL, PASSWORD, tenant="demo", role="manager")
    before = sessions.start(accounts.sign_in(EMAIL, PASSWORD))
    account = accounts.set_password_by_mail(*came_by_mail(accounts, standin), NEW)
    assert standin.mails[EMAIL][0] == f"{at_supabase.own_address}/new-password"
    after = sessions.start(account)
    assert sessions.find(before) is None
    assert sessions.find(after) is not None
    assert accounts.sign_in(EMAIL, NEW).id == account.id
    with pytest.raises(WrongPassword):
        accounts.sign_in(EMAIL, PASSWORD)


def test_the_servers_own_client_stays_what_it_is(
    accounts: SupabaseAccounts, standin: SupabaseStandin, supabase_project: SupabaseProject
) -> None:
    standin.add_user(EMAIL, PASSWORD, tenant="demo")
    accounts.set_password_by_mail(*came_by_mail(accounts, standin), NEW)
    standin.bearers.clear()
    supabase_project.server.auth.admin.list_users(page=1, per_page=1)
    assert {bearer for _, bearer in standin.bearers} == {SERVICE}


@pytest.mark.parametrize(
    "proof",
    [
        pytest.param(("", ""), id="nothing"),
        pytest.param(("no token", "r"), id="no_token"),
        pytest.param(("a.b.c", "r"), id="unreadable_token"),
        pytest.param(("", "refresh"), id="refresh_token_only"),
    ],
)
def test_what_is_no_link_of_supabase_sets_nothing(
    accounts: SupabaseAccounts, standin: SupabaseStandin, proof: tuple[str, str]
) -> None:
    standin.add_user(EMAIL, PASSWORD, tenant="demo")
    with pytest.raises(RagError):
        accounts.set_password_by_mail(*proof, NEW)
    assert accounts.sign_in(EMAIL, PASSWORD)


def test_a_token_of_another_project_sets_nothing(accounts: SupabaseAccounts, standin: SupabaseStandin) -> None:
    user = standin.add_user(EMAIL, PASSWORD, tenant="demo")
    with SupabaseStandin() as another, pytest.raises(LinkExpired):
        accounts.set_password_by_mail(another.token(user, iss=f"{standin.url}/auth/v1"), "r", NEW)
    assert accounts.sign_in(EMAIL, PASSWORD)


def test_a_weak_password_is_refused_and_the_link_works_again(
    accounts: SupabaseAccounts, standin: SupabaseStandin
) -> None:
    standin.add_user(EMAIL, PASSWORD, tenant="demo")
    proof = came_by_mail(accounts, standin)
    with pytest.raises(WeakPassword):
        accounts.set_password_by_mail(*proof, "short")
    assert accounts.set_password_by_mail(*proof, NEW).email == EMAIL


def test_an_expired_link_is_refreshed_or_over(accounts: SupabaseAccounts, standin: SupabaseStandin) -> None:
    user = standin.add_user(EMAIL, PASSWORD, tenant="demo")
    _, refresh_token = came_by_mail(accounts, standin)
    expired = standin.token(user, exp=int(time.time()) - 10)
    assert accounts.set_password_by_mail(expired, refresh_token, NEW).email == EMAIL
    with pytest.raises(LinkExpired):
        accounts.set_password_by_mail(expired, "used up", "a third good password")


def test_who_has_no_place_here_sets_no_password(accounts: SupabaseAccounts, standin: SupabaseStandin) -> None:
    user = standin.add_user(EMAIL, PASSWORD)
    proof = came_by_mail(accounts, standin)
    with pytest.raises(AccessError, match="no organisation"):
        accounts.set_password_by_mail(*proof, NEW)
    assert user["password"] == PASSWORD


def test_the_whole_way_in_a_browsers_steps(
    accounts: SupabaseAccounts, sessions: Sessions, database: Database, at_supabase: Settings, standin: SupabaseStandin
) -> None:
    standin.add_user(EMAIL, PASSWORD, tenant="demo")
    limits = Limits(at_supabase)
    apps = ConnectedApps(database, at_supabase, limits)
    services = Access(at_supabase, accounts, sessions, ApiKeys(database), apps, limits)
    app = Starlette(
        routes=[*routes(lambda: services), *routes_to(API)],
        middleware=[Middleware(AuthGuard, services=lambda: services)],
    )
    with TestClient(app, follow_redirects=False) as browser:

        def send(path: str, **values: str) -> Response:
            csrf = browser.get(path).text.partition('name="csrf" value="')[2].partition('"')[0]
            return browser.post(path, data={"csrf": csrf, **values}, headers={"origin": "http://testserver"})

        known, unknown = (send("/forgot-password", email=email) for email in (EMAIL, "nobody@example.com"))
        assert known.text == unknown.text
        assert "an e-mail with a link is on its way" in known.text
        assert list(standin.mails) == [EMAIL]
        proof = {name: values[0] for name, values in parse_qs(standin.mails[EMAIL][1]).items() if "token" in name}
        weak = send("/new-password", **proof, password="short")
        assert weak.status_code == 422
        assert proof["access_token"] in weak.text
        assert send("/new-password", **proof, password=NEW).status_code == 303
        assert browser.get("/api/me").json()["email"] == EMAIL
        browser.cookies.clear()
        again = send("/new-password", **{**proof, "access_token": "x.y.z"}, password=NEW)
        assert again.status_code >= 400
        assert "hr_session" not in browser.cookies


@dataclass(frozen=True)
class Access:
    """What the guard and the sign-in pages need."""

    settings: Settings
    accounts: SupabaseAccounts
    sessions: Sessions
    api_keys: ApiKeys
    connected_apps: ConnectedApps
    limits: Limits
    single_sign_on: None = None
