"""How much one person or one address may ask for at a time, and what they are told beyond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from rag.access.guard import AuthGuard
from rag.access.limits import MOST_REMEMBERED, Limits, Window
from rag.errors import InvalidInput, ProviderUnavailable, SettingsError, TooManyAttempts, TooManyRequests
from rag.settings import Settings, load_settings
from rag.types import Identity
from tests.access.front_door import Access, AddPerson, inner_routes


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_window_moves(clock: Clock) -> None:
    window = Window(3, 60, clock)
    for _ in range(3):
        assert window.take("a") == 0
        clock.now += 10
    assert window.take("a") == 30
    assert window.take("b") == 0
    clock.now += 30
    assert window.take("a") == 0
    assert window.take("a") == 10


def test_amounts_count(clock: Clock) -> None:
    window = Window(100, 60, clock)
    assert window.take("a", 80) == 0
    assert window.take("a", 30) == 60
    assert window.take("a", 20) == 0
    clock.now += 60
    # Larger than the whole limit: when nothing else is there, which is told to the second.
    assert window.take("a", 10) == 0
    clock.now += 20
    assert window.take("a", 500) == 40
    clock.now += 40
    assert window.take("a", 500) == 0
    assert window.take("a", 1) == 60


def test_nothing_is_limited_by_0(clock: Clock) -> None:
    window = Window(0, 60, clock)
    assert {window.take("a") for _ in range(1000)} == {0}


def test_the_memory_is_bounded(clock: Clock) -> None:
    window = Window(3, 60, clock)
    for number in range(MOST_REMEMBERED + 50):
        window.take(str(number))
    assert len(window._done) == MOST_REMEMBERED


def test_a_person_asks_so_many_questions_a_minute(admin: Identity, clock: Clock) -> None:
    limits = Limits(Settings(questions_per_minute=30), clock)
    person = replace(admin, session_id="a" * 64)
    for _ in range(30):
        limits.count_question(person)
    with pytest.raises(TooManyRequests, match=r"30 questions a minute\. Wait 60 seconds") as caught:
        limits.count_question(person)
    assert caught.value.details == {"wait_seconds": 60}
    with pytest.raises(TooManyRequests):
        # By a program that acts for them, in Slack or in Teams it is the same person.
        limits.count_question(replace(admin, session_id=""))
    # A key has its own limit, and so has a widget.
    for email in ("key:Intranet", "widget:Intranet"):
        for _ in range(40):
            limits.count_question(replace(admin, session_id="", email=email))


def test_a_refused_question_may_be_asked_again_and_one_that_failed_counts(admin: Identity, clock: Clock) -> None:
    limits = Limits(Settings(questions_per_minute=1), clock)
    person = replace(admin, session_id="a" * 64)
    for _ in range(2):
        with pytest.raises(InvalidInput), limits.question(person):
            raise InvalidInput("This question is too long.")
    with pytest.raises(ProviderUnavailable), limits.question(person):
        raise ProviderUnavailable
    with pytest.raises(TooManyRequests), limits.question(person):
        pass


def test_an_address_sends_so_many_wrong_passwords(clock: Clock) -> None:
    limits = Limits(Settings(wrong_sign_ins_per_address=5), clock)
    for _ in range(5):
        limits.require_few_wrong("192.0.2.1")
        limits.note_wrong("192.0.2.1")
    with pytest.raises(TooManyAttempts, match="Wait 10 minutes"):
        limits.require_few_wrong("192.0.2.1")
    limits.require_few_wrong("192.0.2.2")
    clock.now += 600
    limits.require_few_wrong("192.0.2.1")


def test_an_attempt_that_has_to_wait_uses_up_none_of_its_network(access: Access, add_person: AddPerson) -> None:
    add_person("a@example.com")
    with guarded(access, wrong_sign_ins_per_address=6)("") as client:
        client.get("/login")

        def wrong(email: str) -> tuple[int, bool]:
            form = {"csrf": client.cookies["hr_csrf"], "email": email, "password": "a wrong password"}
            answer = client.post("/login", data=form)
            return answer.status_code, "came from your network" in answer.text

        assert [wrong("a@example.com") for _ in range(9)] == [(401, False)] * 5 + [(429, False)] * 4
        assert wrong("b@example.com") == (401, False)
        assert wrong("c@example.com") == (429, True)


def test_a_limit_below_0_ends_the_start() -> None:
    with pytest.raises(SettingsError, match="RAG_QUESTIONS_PER_MINUTE is -1"):
        load_settings({"RAG_QUESTIONS_PER_MINUTE": "-1"}, None)


def guarded(access: Access, **limits: int) -> Callable[[str], TestClient]:
    """Browsers before an application with these limits."""
    settings = replace(access.settings, **limits)  # type: ignore[arg-type]
    limited = replace(access, settings=settings, limits=Limits(settings))
    guard = Middleware(AuthGuard, services=lambda: limited, recheck_seconds=0.05)
    app = Starlette(routes=inner_routes(limited), middleware=[guard])
    return lambda token: TestClient(app, follow_redirects=False, cookies={"hr_session": token})


def test_a_person_sends_so_many_requests_to_the_api(access: Access, add_person: AddPerson) -> None:
    browser_of = guarded(access, requests_per_minute=3)
    first, second = (access.sessions.start(add_person(f"{name}@example.com")) for name in ("a", "b"))
    with browser_of(first) as client, browser_of(second) as other:
        assert [client.get("/api/seen").status_code for _ in range(4)] == [200, 200, 200, 429]
        refused = client.get("/api/seen")
        assert refused.headers["content-type"] == "application/problem+json"
        assert 0 < int(refused.headers["retry-after"]) <= 60
        assert refused.json()["code"] == "too_many_requests"
        assert "3 requests a minute" in refused.json()["detail"]
        assert other.get("/api/seen").status_code == 200
        assert client.get("/", headers={"accept": "text/html"}).status_code == 200


def test_a_person_opens_so_many_pages(access: Access, add_person: AddPerson) -> None:
    browser_of = guarded(access, pages_at_once=2)
    token = access.sessions.start(add_person("a@example.com"))
    other = access.sessions.start(add_person("b@example.com"))
    page = {"accept": "text/html"}
    with browser_of(token) as client:
        with client.websocket_connect("/_stcore/stream") as one, client.websocket_connect("/_stcore/stream") as two:
            assert (one.receive_json()["role"], two.receive_json()["role"]) == ("employee", "employee")
            with pytest.raises(WebSocketDisconnect), client.websocket_connect("/_stcore/stream"):
                pass
            refused = client.get("/", headers=page)
            assert refused.status_code == 429
            assert refused.text == (
                "You have 2 pages of HR Assistant open. Close some of them, then load this one again."
            )
            assert refused.headers["retry-after"] == "5"
            assert client.get("/api/seen").status_code == 200
            with browser_of(other) as somebody, somebody.websocket_connect("/_stcore/stream") as theirs:
                assert theirs.receive_json()["role"] == "employee"
        assert client.get("/", headers=page).status_code == 200


def test_a_person_uploads_so_much_a_minute(access: Access, admin: Identity) -> None:
    account = next(a for a in access.accounts.list(admin) if a.id == admin.account_id)
    browser_of = guarded(access, upload_mb_per_minute=2)
    with browser_of(access.sessions.start(account)) as client:
        sent = [client.put("/_stcore/upload_file/s/f", content=b"x" * 1024 * 1024) for _ in range(3)]
        assert [answer.status_code for answer in sent] == [200, 200, 429]
        assert "upload 2 MB a minute" in sent[-1].json()["detail"]
        assert client.put("/_stcore/upload_file/s/f", content=b"small").status_code == 200
