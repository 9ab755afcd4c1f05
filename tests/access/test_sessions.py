from __future__ import annotations

import pytest

from rag.access.sessions import CACHE_SECONDS, MAXIMUM_CACHED, Sessions, token_hash
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Account, Identity, Role
from tests.access.front_door import PASSWORD, Access, AddPerson


@pytest.fixture
def person(add_person: AddPerson) -> Account:
    return add_person("employee@example.com", name="Kim")


def test_a_session_names_its_person(access: Access, person: Account) -> None:
    token = access.sessions.start(person, "Browser\x00 of somebody" + "x" * 500)
    identity = access.sessions.find(token)
    assert identity == Identity(
        account_id=person.id,
        tenant_id="demo",
        email="employee@example.com",
        name="Kim",
        role=Role.EMPLOYEE,
        session_id=token_hash(token),
    )
    assert access.sessions.find_by_id(token_hash(token)) == identity


@pytest.mark.parametrize(
    "token", ["", "x", "A" * 43, "A" * 44, "' OR 1=1 --" + "A" * 32, "\x00" * 43, "é" * 43, "A" * 10**6]
)
def test_an_invented_token_finds_nobody(access: Access, person: Account, token: str) -> None:
    access.sessions.start(person)
    assert access.sessions.find(token) is None
    access.sessions.end(token)


def test_the_id_of_a_session_is_not_its_token(access: Access, person: Account) -> None:
    session_id = token_hash(access.sessions.start(person))
    assert access.sessions.find(session_id) is None
    assert access.sessions.find_by_id("zz") is None


def test_an_ended_session_is_gone_at_once_and_told_of(access: Access, person: Account) -> None:
    token, other = access.sessions.start(person), access.sessions.start(person)
    told: list[str] = []
    access.sessions.on_end(told.append)
    assert access.sessions.find(token)
    access.sessions.end(token)
    assert access.sessions.find_cached(token_hash(token)) is None
    assert access.sessions.find(token) is None
    assert access.sessions.find(other) is not None
    assert told == [token_hash(token)]


def test_a_session_ends_after_its_days(access: Access, person: Account, database: Database) -> None:
    token = access.sessions.start(person)
    with database.transaction("demo") as connection:
        days = connection.execute("SELECT extract(day FROM expires_at - created_at)::int FROM sessions").fetchall()
        assert days == [(access.settings.session_days,)]
        connection.execute("UPDATE sessions SET expires_at = now()")
    assert access.sessions.find(token) is None
    access.sessions.start(person)
    with database.transaction("demo") as connection:
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (1,)


def test_found_sessions_are_kept_for_three_seconds(database: Database, person: Account) -> None:
    now = [100.0]
    sessions = Sessions(database, Settings(), clock=lambda: now[0])
    elsewhere = Sessions(database)
    token = sessions.start(person)
    assert sessions.find(token)
    elsewhere.end(token)
    now[0] += CACHE_SECONDS - 0.1
    assert sessions.find(token)
    now[0] += 0.2
    assert sessions.find(token) is None


def test_what_is_kept_is_bounded(access: Access, person: Account) -> None:
    identity = access.sessions.find(access.sessions.start(person))
    assert identity is not None
    for number in range(MAXIMUM_CACHED):
        access.sessions._cache[f"{number:064}"] = (identity, 10.0**12)
    access.sessions.find(access.sessions.start(person))
    assert len(access.sessions._cache) == MAXIMUM_CACHED


def test_a_session_read_before_its_end_is_not_kept_after(database: Database, person: Account) -> None:
    class EndedWhileRead(Sessions):
        def _read(self, session_id: str, *, is_act: bool) -> Identity | None:
            identity = super()._read(session_id, is_act=is_act)
            self.end(token)
            return identity

    sessions = EndedWhileRead(database)
    token = sessions.start(person)
    sessions.find(token)
    assert sessions.find_cached(token_hash(token)) is None


def test_use_is_noted_at_most_once_a_minute(database: Database, person: Account) -> None:
    now = [0.0]
    sessions = Sessions(database, clock=lambda: now[0])
    token = sessions.start(person)

    def age_after_use(seconds_ago: int) -> int:
        with database.transaction("demo") as connection:
            connection.execute("UPDATE sessions SET last_seen_at = now() - make_interval(secs => %s)", (seconds_ago,))
        now[0] += CACHE_SECONDS
        sessions.find(token)
        with database.transaction("demo") as connection:
            row = connection.execute("SELECT extract(epoch FROM now() - last_seen_at)::int FROM sessions").fetchone()
        return int(row[0]) if row else -1

    assert age_after_use(30) >= 30
    assert age_after_use(90) < 30


def test_a_changed_role_counts_at_once(access: Access, admin: Identity, person: Account) -> None:
    token = access.sessions.start(person)
    assert access.sessions.find(token)
    told: list[str] = []
    access.sessions.on_end(told.append)
    access.accounts.change(admin, person.id, name="Kim Haneul", user_group="Sales")
    found = access.sessions.find(token)
    assert found is not None
    assert (found.name, found.user_group) == ("Kim Haneul", "Sales")
    assert told == []
    access.accounts.change(admin, person.id, role="manager")
    found = access.sessions.find(token)
    assert found is not None
    assert found.role is Role.MANAGER
    assert told == [token_hash(token)]


def test_disabling_ends_every_session_for_good(access: Access, admin: Identity, person: Account) -> None:
    tokens = [access.sessions.start(person) for _ in range(3)]
    assert all(access.sessions.find(token) for token in tokens)
    access.accounts.change(admin, person.id, is_active=False)
    assert not any(access.sessions.find(token) for token in tokens)
    access.accounts.change(admin, person.id, is_active=True)
    assert not any(access.sessions.find(token) for token in tokens)
    assert access.accounts.sign_in(person.email, PASSWORD).is_active


def test_all_sessions_of_a_person_are_listed_and_ended(access: Access, admin: Identity, person: Account) -> None:
    tokens = [access.sessions.start(person, f"Browser {number}") for number in range(3)]
    admins = access.sessions.start(access.accounts.sign_in(admin.email, PASSWORD))
    identity = access.sessions.find(tokens[0])
    assert identity is not None
    assert {session.user_agent for session in access.sessions.list(identity)} == {"Browser 0", "Browser 1", "Browser 2"}
    assert access.sessions.end_all("demo", person.id, except_session_id=identity.session_id) == 2
    assert [session.session_id for session in access.sessions.list(identity)] == [identity.session_id]
    assert access.sessions.find(admins) is not None
