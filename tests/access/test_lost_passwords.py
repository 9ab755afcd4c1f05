"""Somebody who forgot their password: the same answer for every address, and administrators who see who waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from rag.access.limits import MAXIMUM_UNKNOWN, RESETS_FOR_ONE, RESETS_WITHIN_SECONDS, ResetRequests
from rag.errors import LinkExpired, TooManyAttempts
from rag.types import Account, Identity
from tests.access.front_door import PASSWORD, Access, AddPerson

ClientOf = Callable[..., TestClient]
ADDRESSES = ["known@example.com", "nobody@example.com", "disabled@example.com", "no address", "", "x" * 300 + "@a.b"]


def ask(client: TestClient, email: str, **changes: str) -> Any:
    page = client.get("/forgot-password").text
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    headers = {"origin": "http://testserver", "accept": "text/html"}
    return client.post("/forgot-password", data={"csrf": csrf, "email": email, **changes}, headers=headers)


def waiting(access: Access, admin: Identity) -> set[str]:
    return {a.email for a in access.accounts.list(admin) if a.password_asked_at}


@pytest.fixture
def people(access: Access, admin: Identity, add_person: AddPerson) -> dict[str, Account]:
    found = {email: add_person(email) for email in ("known@example.com", "disabled@example.com")}
    access.accounts.change(admin, found["disabled@example.com"].id, is_active=False)
    return found


def test_every_address_gets_the_same_answer(client_of: ClientOf, people: dict[str, Account]) -> None:
    client = client_of()
    answers = {(answer.status_code, answer.text) for address in ADDRESSES for answer in [ask(client, address)]}
    assert len(answers) == 1
    ((status, text),) = answers
    assert status == 200
    assert "No e-mail is sent" in text


def test_the_administrator_sees_who_waits_until_they_have_their_link(
    client_of: ClientOf, access: Access, admin: Identity, people: dict[str, Account]
) -> None:
    for address in ADDRESSES:
        ask(client_of(), address.upper())
    assert waiting(access, admin) == {"known@example.com"}
    link = access.accounts.password_link(admin, people["known@example.com"].id)
    assert waiting(access, admin) == set()
    access.accounts.set_password_by_link(link.partition("token=")[2], "another good password")
    assert access.accounts.sign_in("known@example.com", "another good password")


def test_who_remembers_their_password_waits_no_longer(
    client_of: ClientOf, access: Access, admin: Identity, people: dict[str, Account]
) -> None:
    ask(client_of(), "known@example.com")
    access.accounts.sign_in("known@example.com", PASSWORD)
    assert waiting(access, admin) == set()


def test_a_wish_changes_neither_the_password_nor_the_sessions(
    client_of: ClientOf, access: Access, people: dict[str, Account]
) -> None:
    token = access.sessions.start(people["known@example.com"])
    ask(client_of(), "known@example.com")
    assert access.sessions.find(token) is not None
    assert access.accounts.sign_in("known@example.com", PASSWORD)


@pytest.mark.parametrize("address", ["known@example.com", "nobody@example.com"])
def test_asking_again_and_again_is_slowed_alike(client_of: ClientOf, people: dict[str, Account], address: str) -> None:
    client = client_of()
    answers = [ask(client, address) for _ in range(RESETS_FOR_ONE + 1)]
    assert [answer.status_code for answer in answers] == [200] * RESETS_FOR_ONE + [429]
    assert "too often" in answers[-1].text
    assert int(answers[-1].headers["retry-after"]) > 0


def test_a_form_of_another_site_asks_for_nothing(
    client_of: ClientOf, access: Access, admin: Identity, people: dict[str, Account]
) -> None:
    assert ask(client_of(), "known@example.com", csrf="x" * 43).status_code == 403
    assert waiting(access, admin) == set()


def test_the_limit_is_for_one_address_and_it_ends() -> None:
    now = [0.0]
    wishes = ResetRequests(lambda: now[0])
    for _ in range(RESETS_FOR_ONE):
        wishes.count("a@example.com")
    with pytest.raises(TooManyAttempts) as caught:
        wishes.count("a@example.com")
    assert caught.value.details["wait_seconds"] == RESETS_WITHIN_SECONDS
    now[0] = RESETS_WITHIN_SECONDS
    wishes.count("a@example.com")


def test_strangers_cannot_lock_the_form_for_everybody(
    client_of: ClientOf, access: Access, admin: Identity, people: dict[str, Account]
) -> None:
    stranger = client_of()
    assert {ask(stranger, f"{number}@example.com").status_code for number in range(130)} == {200}
    assert ask(client_of(), "known@example.com").status_code == 200
    assert waiting(access, admin) == {"known@example.com"}


def test_the_memory_of_wishes_is_bounded() -> None:
    wishes = ResetRequests(lambda: 0.0)
    for number in range(MAXIMUM_UNKNOWN + 50):
        wishes.count(f"{number}@example.com")
    assert len(wishes._asked) == MAXIMUM_UNKNOWN


def test_the_sign_in_page_leads_there_and_needs_no_session(client_of: ClientOf) -> None:
    client = client_of()
    assert 'href="/forgot-password"' in client.get("/login").text
    assert client.get("/forgot-password").status_code == 200


def test_no_link_of_an_email_is_taken_where_none_is_sent(client_of: ClientOf, access: Access) -> None:
    client = client_of()
    page = client.get("/new-password").text
    csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
    data = {"csrf": csrf, "access_token": "a.b.c", "refresh_token": "r", "password": "another good password"}
    answer = client.post("/new-password", data=data, headers={"origin": "http://testserver"})
    assert answer.status_code == LinkExpired().status
    assert "hr_session" not in client.cookies


def test_capitals_and_blanks_make_no_other_address(access: Access) -> None:
    for _ in range(RESETS_FOR_ONE):
        access.accounts.count_reset_request(" A@example.com ")
    with pytest.raises(TooManyAttempts):
        access.accounts.count_reset_request("a@EXAMPLE.com")
