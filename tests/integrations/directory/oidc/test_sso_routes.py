"""The whole way of a sign-in elsewhere, in a browser's steps, at a provider from PyPI that we did not write."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from rag.access.external import ExternalAccounts
from rag.access.sessions import Sessions
from rag.integrations.directory.oidc.provider import OpenIdProvider
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Role
from tests.access.front_door import Access, AddPerson, at_provider, come_back, tell


@pytest.fixture
def settings(settings: Settings, issuer: str) -> Settings:
    return replace(at_provider(settings, issuer), oidc_roles="hr-admins=admin", oidc_name="Acme <ID>")


@pytest.fixture
def access(access: Access, settings: Settings, database: Database) -> Access:
    return replace(access, single_sign_on=OpenIdProvider(settings, ExternalAccounts(database)))


def test_a_sign_in_elsewhere_ends_in_a_session_that_can_be_ended_here(
    client_of: Callable[..., TestClient], access: Access, issuer: str
) -> None:
    tell(issuer, "p1", email="p1@example.com", email_verified=True, name="P One", groups=["hr-admins"])
    client = client_of()
    away, back = come_back(client, "p1")
    sent = parse_qs(urlsplit(away).query)
    assert sent["code_challenge_method"] == ["S256"]
    assert {"state", "nonce", "code_challenge"} <= sent.keys()
    answer = client.get(back)
    assert (answer.status_code, answer.headers["location"]) == (303, "/analytics")
    assert client.get("/api/me").json()["role"] == "admin"
    identity = access.sessions.find(client.cookies["hr_session"])
    assert identity is not None
    assert identity.role is Role.ADMIN
    Sessions.end(access.sessions, client.cookies["hr_session"])
    assert client.get("/api/me").status_code == 401


def test_an_answer_brought_by_another_browser_signs_nobody_in(
    client_of: Callable[..., TestClient], issuer: str
) -> None:
    tell(issuer, "p2", email="p2@example.com", email_verified=True)
    _, back = come_back(client_of(), "p2")
    victim = client_of()
    answer = victim.get(back)
    assert answer.status_code == 401
    assert "hr_session" not in victim.cookies
    come_back(victim, "p2")
    assert victim.get(back).status_code == 401


def test_an_answer_is_good_once(client_of: Callable[..., TestClient], issuer: str) -> None:
    tell(issuer, "p3", email="p3@example.com", email_verified=True)
    client = client_of()
    _, back = come_back(client, "p3")
    cookie = client.cookies["hr_sso"]
    assert client.get(back).status_code == 303
    client.cookies.set("hr_sso", cookie, domain="testserver.local", path="/sso")
    assert client.get(back).status_code == 401


def test_who_is_not_let_in_is_told_why_on_the_sign_in_page(client_of: Callable[..., TestClient], issuer: str) -> None:
    tell(issuer, "p4", email="p4@elsewhere.example", email_verified=True)
    client = client_of()
    _, back = come_back(client, "p4")
    answer = client.get(back)
    assert answer.status_code == 401
    assert "People with an address at elsewhere.example" in answer.text
    assert 'href="/sso/start' in answer.text


def test_the_page_shows_the_button_and_the_accounts_stay(
    client_of: Callable[..., TestClient], add_person: AddPerson
) -> None:
    page = client_of().get("/login?next=/documents?x=1%26y").text
    assert "Sign in with Acme &lt;ID&gt;" in page
    assert re.search(r'href="/sso/start\?next=/documents%3Fx%3D1%26y"', page)
    assert 'name="password"' in page


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_nobody_is_sent_to_another_site_after(client_of: Callable[..., TestClient], issuer: str, target: str) -> None:
    tell(issuer, "p5", email="p5@example.com", email_verified=True)
    client = client_of()
    _, back = come_back(client, "p5", f"/sso/start?next={target}")
    assert client.get(back).headers["location"] == "/"


@pytest.mark.parametrize("body", ["", "logout_token=", "logout_token=a.b.c"])
def test_a_message_that_is_not_the_providers_is_refused(client_of: Callable[..., TestClient], body: str) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert client_of().post("/sso/logout", content=body, headers=headers).status_code == 400


def test_somebody_asked_again_who_they_are_is_sent_to_the_provider_and_back_to_where_they_were(
    client_of: Callable[..., TestClient], access: Access, database: Database, issuer: str
) -> None:
    tell(issuer, "p6", email="p6@example.com", email_verified=True, groups=["hr-admins"])
    client = client_of()
    client.get(come_back(client, "p6")[1])
    before = client.cookies["hr_session"]
    identity = access.sessions.find(before)
    assert identity is not None
    with database.transaction("demo") as connection:
        connection.execute("UPDATE sessions SET proved_at = now() - interval '1 hour'")
    assert not access.sessions.is_recent(identity)
    start = client.get("/account/confirm?next=/people").headers["location"]
    assert start == "/sso/start?again=1&next=/people"
    away, back = come_back(client, "p6", start)
    sent = parse_qs(urlsplit(away).query)
    assert (sent["prompt"], sent["max_age"]) == (["login"], ["0"])
    answer = client.get(back)
    assert (answer.status_code, answer.headers["location"]) == (303, "/people")
    identity = access.sessions.find(client.cookies["hr_session"])
    assert identity is not None
    assert access.sessions.is_recent(identity)
    assert access.sessions.find(before) is None


def test_where_there_is_single_sign_on_who_has_a_password_is_asked_for_it(
    client_of: Callable[..., TestClient], access: Access, add_person: AddPerson
) -> None:
    client = client_of(access.sessions.start(add_person("word@example.com")))
    assert 'name="password"' in client.get("/account/confirm").text
