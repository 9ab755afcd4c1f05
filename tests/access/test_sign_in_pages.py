from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from rag.api.form_pages import TEMPLATES, page_of
from rag.api.sign_in import safe_next
from rag.types import Account, Identity
from rag.ui.frame import account_actions
from tests.access.front_door import PASSWORD, Access, AddPerson

ClientOf = Callable[..., TestClient]
HTML = {"accept": "text/html"}


@pytest.fixture
def person(add_person: AddPerson) -> Account:
    return add_person("employee@example.com", name="Kim")


def fields_of(html: str) -> dict[str, str]:
    """Names and values of a page's hidden fields."""
    return {name: unescape(value) for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', html)}


def send(client: TestClient, path: str, query: str = "", **values: str) -> Any:
    """Open a form and send it filled in, as a browser does."""
    hidden = fields_of(client.get(path + query, headers=HTML).text)
    return client.post(path, data={**hidden, **values}, headers={"origin": "http://testserver", **HTML})


def sign_in(client: TestClient, email: str = "employee@example.com", password: str = PASSWORD, query: str = "") -> Any:
    return send(client, "/login", query, email=email, password=password)


def is_signed_in(client: TestClient) -> bool:
    return bool(client.get("/api/me").status_code == 200)


# Signing in and out


def test_signing_in_leads_back_to_where_one_wanted_to_go(client_of: ClientOf, person: Account) -> None:
    client = client_of()
    wanted = client.get("/analytics?group=R%26D&name=휴가", headers=HTML).headers["location"]
    answer = sign_in(client, query=wanted.removeprefix("/login"))
    assert answer.status_code == 303
    assert answer.headers["location"] == "/analytics?group=R%26D&name=%ED%9C%B4%EA%B0%80"
    me = client.get("/api/me")
    assert me.json() == {
        "account_id": str(person.id),
        "tenant_id": "demo",
        "email": "employee@example.com",
        "name": "Kim",
        "role": "employee",
        "user_group": "",
        "scopes": ["chat", "documents:read", "search"],
    }
    assert me.headers["cache-control"] == "no-store"
    assert client.get("/login?next=/documents").headers["location"] == "/documents"


@pytest.mark.parametrize(("base_url", "is_secure"), [("http://testserver", False), ("https://testserver", True)])
def test_cookies_are_closed_to_scripts_and_other_sites(
    client_of: ClientOf, person: Account, base_url: str, is_secure: bool
) -> None:
    client = client_of(base_url=base_url)
    hidden = fields_of(client.get("/login").text)
    answer = client.post("/login", data={**hidden, "email": person.email, "password": PASSWORD})
    cookies = answer.headers.get_list("set-cookie")
    prefix = "__Host-" if is_secure else ""
    names = {f"{prefix}{name}" for name in ("hr_session", "hr_csrf", "hr_known_browser")}
    assert {cookie.partition("=")[0] for cookie in cookies} == names
    for cookie in cookies:
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Path=/" in cookie
        # That somebody has signed in here is known for longer than they are signed in.
        days = 180 if "hr_known_browser=" in cookie else 14
        assert f"Max-Age={days * 24 * 60 * 60}" in cookie
        assert ("Secure" in cookie) is is_secure


def test_a_wrong_password_is_said_and_the_address_kept(client_of: ClientOf, person: Account) -> None:
    client = client_of()
    answer = sign_in(client, password="a wrong password")
    assert answer.status_code == 401
    assert 'role="alert">The e-mail address or the password is not right.' in answer.text
    assert 'value="employee@example.com"' in answer.text
    assert "a wrong password" not in answer.text
    assert not is_signed_in(client)


def test_the_sixth_attempt_says_how_long_to_wait(client_of: ClientOf, person: Account) -> None:
    client = client_of()
    for _ in range(5):
        assert sign_in(client, password="a wrong password").status_code == 401
    answer = sign_in(client)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 10
    assert "Too many wrong passwords. Wait " in answer.text
    assert not is_signed_in(client)


def test_signing_in_again_ends_the_session_before(client_of: ClientOf, access: Access, person: Account) -> None:
    before = access.sessions.start(person)
    client = client_of()
    hidden = fields_of(client.get("/login").text)
    client.cookies.set("hr_session", before)
    client.post("/login", data={**hidden, "email": person.email, "password": PASSWORD})
    assert access.sessions.find(before) is None


def test_signing_out_ends_the_session_on_the_server(client_of: ClientOf, access: Access, person: Account) -> None:
    token = access.sessions.start(person)
    client = client_of(token)
    second_tab = client_of(token)
    answer = send(client, "/logout")
    assert answer.headers["location"] == "/login?signed-out=1"
    assert access.sessions.find(token) is None
    assert not is_signed_in(second_tab)
    assert "You are signed out." in client.get("/login?signed-out=1").text


def test_who_was_signed_out_reads_why(client_of: ClientOf, access: Access, person: Account) -> None:
    ended, draft = (
        "You were signed out, because this session was ended elsewhere",
        "If you had begun to write a question",
    )
    token = access.sessions.start(person)
    access.sessions.end(token)
    assert ended in client_of(token).get("/login").text
    page = client_of().get("/login?ended=1").text
    assert ended in page
    assert draft in page
    assert "signed out" not in client_of().get("/login").text


def test_the_sign_out_button_of_a_page_works_at_one_click(client_of: ClientOf, person: Account) -> None:
    client = client_of()
    sign_in(client)
    hidden = fields_of(account_actions(client.cookies["hr_csrf"]))
    assert client.post("/logout", data=hidden).headers["location"] == "/login?signed-out=1"


# Forms from elsewhere


@pytest.mark.parametrize("csrf", [None, "", "A" * 43, "é"])
@pytest.mark.parametrize("path", ["/login", "/welcome", "/set-password", "/account/password", "/logout"])
def test_a_form_without_our_token_does_nothing(
    client_of: ClientOf, access: Access, person: Account, admin: Identity, path: str, csrf: str | None
) -> None:
    token = access.sessions.start(person)
    link = access.accounts.password_link(admin, person.id).partition("token=")[2]
    client = client_of(token)
    client.get("/logout")
    values = {
        "email": person.email,
        "current": PASSWORD,
        "password": "another good password",
        "token": link,
        "name": "X",
    }
    answer = client.post(path, data=values if csrf is None else {**values, "csrf": csrf})
    assert answer.status_code == 403
    assert "open for too long" in answer.text
    assert is_signed_in(client)
    access.accounts.sign_in(person.email, PASSWORD)
    access.accounts.account_of_link(link)


def test_an_empty_token_does_not_equal_an_empty_cookie(client_of: ClientOf, person: Account) -> None:
    client = client_of()
    values = {"csrf": "", "email": person.email, "password": PASSWORD}
    assert client.post("/login", data=values, headers={"cookie": "hr_csrf="}).status_code == 403


def test_another_site_cannot_sign_anybody_in(client_of: ClientOf, person: Account) -> None:
    client = client_of()
    hidden = fields_of(client.get("/login").text)
    values = {**hidden, "email": person.email, "password": PASSWORD}
    assert client.post("/login", data=values, headers={"origin": "https://evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "content", [b"csrf=" + b"x" * 10**6, b"&".join([b"a=b"] * 1000), b"\xff\xfe=%ff&csrf=%ff", b""]
)
def test_an_abusive_form_is_refused(client_of: ClientOf, person: Account, content: bytes) -> None:
    client = client_of()
    client.get("/login")
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/login", content=content, headers=headers).status_code == 403
    assert client.post("/login", files={"email": content}).status_code == 403


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "/ok\r\nSet-Cookie: a=b",
        "javascript:alert(1)",
        "evil.example",
        "",
        "/login?next=/login",
        "/logout",
        "/" + "x" * 3000,
    ],
)
def test_next_never_leads_away(client_of: ClientOf, person: Account, target: str) -> None:
    assert safe_next(target) == "/"
    client = client_of()
    hidden = fields_of(client.get("/login", params={"next": target}).text)
    assert hidden["next"] == "/"
    answer = client.post("/login", data={**hidden, "next": target, "email": person.email, "password": PASSWORD})
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize("target", ["/", "/documents", "/analytics?a=b&c=//d", "/휴가#x"])
def test_next_leads_to_pages_of_ours(target: str) -> None:
    assert safe_next(target) == target


# The first administrator


def test_the_first_administrator_signs_up_and_is_signed_in(client_of: ClientOf, access: Access) -> None:
    client = client_of()
    query = f"?token={access.accounts.first_admin_link()}"
    assert send(client, "/welcome", query, name="Ada", email="ada@example.com", password="short").status_code == 422
    answer = send(client, "/welcome", query, name="Ada", email="ada@example.com", password=PASSWORD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert client.get("/api/me").json()["role"] == "admin"
    again = client_of().get("/welcome" + query)
    assert again.status_code == 401
    assert "has been used or has expired" in again.text


def test_two_clicks_on_one_link_make_one_administrator(client_of: ClientOf, access: Access) -> None:
    token = access.accounts.first_admin_link()
    clients = [client_of(), client_of()]
    forms = [fields_of(client.get(f"/welcome?token={token}").text) for client in clients]

    def click(number: int) -> int:
        values = {**forms[number], "name": "Ada", "email": f"ada{number}@example.com", "password": PASSWORD}
        return clients[number].post("/welcome", data=values).status_code

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(click, range(2))) == [303, 401]


@pytest.mark.parametrize("path", ["/welcome", "/set-password"])
def test_an_invented_link_is_explained(client_of: ClientOf, path: str) -> None:
    for query in ("", "?token=", "?token=x", "?token=%00", "?token=%ff"):
        answer = client_of().get(path + query)
        assert answer.status_code == 401
        assert "This link does not work" in answer.text


# Passwords


def test_an_invited_person_chooses_a_password_once(client_of: ClientOf, access: Access, admin: Identity) -> None:
    _, link = access.accounts.invite(admin, "new@example.com", "New")
    client = client_of()
    path, _, query = link.partition("?")
    assert "new@example.com" in client.get(link).text
    weak = send(client, path, "?" + query, password="password123")
    assert weak.status_code == 422
    assert "easy to guess" in weak.text
    assert send(client, path, "?" + query, password=PASSWORD).status_code == 303
    assert client.get("/api/me").json()["email"] == "new@example.com"
    assert client_of().get(link).status_code == 401


def test_changing_the_password_ends_the_session_of_the_other_browser(client_of: ClientOf, person: Account) -> None:
    here, there = client_of(), client_of()
    sign_in(here)
    sign_in(there)
    wrong = send(here, "/account/password", current="a wrong password", password="another good password")
    assert wrong.status_code == 422
    assert "current password is not right" in wrong.text
    right = send(here, "/account/password", current=PASSWORD, password="another good password")
    assert "Your password is changed" in right.text
    assert is_signed_in(here)
    assert not is_signed_in(there)
    assert sign_in(there).status_code == 401
    assert sign_in(there, password="another good password").status_code == 303


def test_a_stranger_changes_no_password(client_of: ClientOf) -> None:
    assert client_of().get("/account/password", headers=HTML).headers["location"] == "/login?next=/account/password"


# The pages themselves


def test_values_are_escaped(client_of: ClientOf, person: Account) -> None:
    hostile = '"><script>alert(1)</script>$title@example.com'
    answer = sign_in(client_of(), email=hostile)
    assert "<script>alert" not in answer.text
    assert "&#34;&gt;&lt;script&gt;" in answer.text


@pytest.mark.parametrize("path", ["/login", "/welcome", "/set-password", "/logout", "/account/password"])
def test_our_pages_are_not_cached_and_load_nothing(
    client_of: ClientOf, access: Access, person: Account, path: str
) -> None:
    answer: httpx2.Response = client_of(access.sessions.start(person)).get(path + "?x=y", headers=HTML)
    assert answer.headers["cache-control"] == "no-store"
    assert not re.findall(r'(?:src|href)="(?!data:|/")', answer.text)
    assert "@import" not in answer.text


def test_every_field_has_a_label_and_every_page_a_heading() -> None:
    for name in TEMPLATES.list_templates():
        html = TEMPLATES.loader.get_source(TEMPLATES, name)[0] if TEMPLATES.loader else ""
        for field in re.findall(r'<input id="(\w+)"', html):
            assert f'<label for="{field}">' in html
    frame = page_of("message", title="A & B", message="<b>", action="/", label="Go")
    assert "<h1>A &amp; B</h1>" in frame
    assert "&lt;b&gt;" in frame
