"""A session that nobody does anything in ends, though its page stays open and asks every few seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from streamlit.proto.BackMsg_pb2 import BackMsg

from rag.access.guard import is_act
from rag.access.sessions import CACHE_SECONDS, Sessions, token_hash
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Account, Identity
from tests.access.front_door import Access, identity_of

IDLE_MINUTES = 30


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, session_idle_minutes=IDLE_MINUTES)


@pytest.fixture
def person(access: Access, admin: Identity) -> Account:
    return access.accounts.list(admin)[0]


def last_act(database: Database, minutes_ago: float) -> None:
    with database.transaction("demo") as connection:
        connection.execute("UPDATE sessions SET last_seen_at = now() - make_interval(secs => %s)", (60 * minutes_ago,))


def minutes_idle(database: Database) -> float:
    with database.transaction("demo") as connection:
        found = connection.execute("SELECT extract(epoch FROM now() - last_seen_at)::float8 / 60 FROM sessions")
        return float((found.fetchone() or (-1.0,))[0])


def test_a_session_ends_when_nothing_was_done_in_it(database: Database, settings: Settings, person: Account) -> None:
    now = [0.0]
    sessions = Sessions(database, settings, clock=lambda: now[0])
    token = sessions.start(person)
    for minutes, is_there in ((IDLE_MINUTES - 1, True), (IDLE_MINUTES + 1, False)):
        last_act(database, minutes)
        now[0] += CACHE_SECONDS
        assert (sessions.find(token) is not None) is is_there
    assert sessions.list(identity_of(person)) == []
    sessions.note_act(token_hash(token))
    assert sessions.find(token) is None, "an act in an old page brings no session back"


def test_the_sign_in_page_says_that_nothing_was_done(
    access: Access, database: Database, person: Account, client_of: Callable[..., TestClient]
) -> None:
    token = access.sessions.start(person)
    last_act(database, IDLE_MINUTES + 1)
    said = f"You were signed out because you were not active for {IDLE_MINUTES} minutes."
    assert said in client_of(token).get("/login?ended=1").text
    access.sessions.end(token)
    with database.transaction("demo") as connection:
        connection.execute("DELETE FROM sessions")
    assert said not in client_of(token).get("/login?ended=1").text


def test_without_a_limit_it_goes_on(database: Database, settings: Settings, person: Account) -> None:
    sessions = Sessions(database, replace(settings, session_idle_minutes=0))
    token = sessions.start(person)
    last_act(database, 5 * 24 * 60)
    assert sessions.find(token) is not None


def test_a_page_that_asks_whether_it_is_signed_in_keeps_nobody_so(
    access: Access, database: Database, person: Account, client_of: Callable[..., TestClient]
) -> None:
    client = client_of(access.sessions.start(person))
    last_act(database, 10)
    assert client.get("/api/me").status_code == 200
    assert minutes_idle(database) > 9
    access.sessions.refresh([session.session_id for session in access.sessions.list(identity_of(person))])
    client.get("/seen")
    assert minutes_idle(database) < 1


def message(*, is_auto: bool) -> dict[str, object]:
    sent = BackMsg()
    sent.rerun_script.is_auto_rerun = is_auto
    return {"type": "websocket.receive", "bytes": sent.SerializeToString()}


def test_what_a_person_does_in_a_page_is_told_from_what_the_page_does() -> None:
    assert is_act(message(is_auto=False))
    assert not is_act(message(is_auto=True))
    for other in ({"bytes": b"\xff\xff\xff"}, {"bytes": b""}, {"text": "hello"}):
        assert not is_act({"type": "websocket.receive", **other})
    assert not is_act({"type": "websocket.disconnect"})


def test_acts_in_an_open_page_are_noted_once_a_minute(access: Access, database: Database, person: Account) -> None:
    now = [0.0]
    sessions = Sessions(database, access.settings, clock=lambda: now[0])
    session_id = token_hash(sessions.start(person))
    assert [sessions.is_act_to_note(session_id) for _ in range(3)] == [True, False, False]
    now[0] += 60
    assert sessions.is_act_to_note(session_id)
    last_act(database, 10)
    sessions.note_act(session_id)
    assert minutes_idle(database) < 1
