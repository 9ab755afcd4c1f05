"""Who came in, who was refused, who took something along and who read what another asked is on record, and followed."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from uuid import UUID

import pytest
from psycopg.conninfo import make_conninfo
from starlette.testclient import TestClient

from rag.access.external import ExternalAccounts, ExternalPerson
from rag.commands.records import LATE_NUMBERS, Tail
from rag.errors import AccessError, NotFound, TooManyAttempts, WrongPassword
from rag.records.analytics import Analytics, Filters, Period, QuestionFilters
from rag.records.audit import AuditLog
from rag.storage.database import Database
from rag.storage.migrations import MIGRATIONS
from rag.types import Collection, Identity, Role
from tests.access.front_door import PASSWORD, Access, AddPerson, identity_of
from tests.forked import forked_python
from tests.patience import patient
from tests.standins.plain_server import PlainServer


def actions(database: Database, admin: Identity, kind: str) -> list[tuple[str, str, str]]:
    """Actor, action and target, the oldest first."""
    entries = AuditLog(database).entries(admin, kind=kind)
    return [(entry.actor, entry.action, entry.target) for entry in reversed(entries)]


def test_sign_ins_and_refused_ones_are_on_record(
    access: Access, admin: Identity, database: Database, client_of: Callable[..., TestClient]
) -> None:
    client = client_of()
    client.get("/login")
    form = {"csrf": client.cookies["hr_csrf"], "email": "ADMIN@example.com", "next": "/"}
    assert client.post("/login", data={**form, "password": "not the password"}).status_code == 401
    answer = client.post("/login", data={**form, "password": PASSWORD}, headers={"user-agent": "Firefox"})
    assert answer.status_code == 303
    assert actions(database, admin, "sign-in") == [
        ("admin@example.com", "sign-in refused", "The e-mail address or the password is not right."),
        ("admin@example.com", "sign-in succeeded", "Firefox"),
    ]


def test_a_disabled_person_is_on_record_and_a_flood_is_not(
    access: Access, admin: Identity, add_person: AddPerson, database: Database
) -> None:
    somebody = add_person("somebody@example.com")
    access.accounts.change(admin, somebody.id, is_active=False)
    with pytest.raises(AccessError, match="disabled"):
        access.accounts.sign_in("somebody@example.com", PASSWORD)
    assert [target for *_, target in actions(database, admin, "sign-in")] == [
        "This account is disabled. Ask an administrator to enable it."
    ]
    for _ in range(30):
        with pytest.raises((WrongPassword, TooManyAttempts)):
            access.accounts.sign_in("somebody@example.com", "not the password")
    assert len(actions(database, admin, "sign-in")) < 10
    with pytest.raises(WrongPassword):
        access.accounts.sign_in("nobody@example.com", PASSWORD)


def test_a_refusal_by_single_sign_on_is_on_record(
    access: Access, admin: Identity, add_person: AddPerson, database: Database
) -> None:
    somebody = add_person("somebody@example.com")
    access.accounts.change(admin, somebody.id, is_active=False)
    person = ExternalPerson(issuer="https://sso", subject="1", email="somebody@example.com", tenant_id="demo")
    with pytest.raises(AccessError):
        ExternalAccounts(database).admit(person)
    assert [action for _, action, _ in actions(database, admin, "sign-in")] == ["sign-in refused"]


def test_an_address_of_two_companies_tells_neither_of_the_other(
    access: Access, admin: Identity, database: Database
) -> None:
    token = access.accounts.first_admin_link("other")
    assert token is not None
    squatter = identity_of(access.accounts.create_first_admin(token, admin.email, "Other", "the squatter's password"))
    access.accounts.sign_in(admin.email, PASSWORD)
    assert actions(database, squatter, "sign-in") == []


def ask(database: Database, who: Identity, collection: Collection) -> UUID:
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO chat_logs (tenant_id, account_id, collection_id, question, answer, outcome) "
            "VALUES ('demo', %s, %s, 'May I?', 'You may.', 'answered') RETURNING id",
            (who.account_id, collection.id),
        ).fetchone()
    assert row is not None
    return UUID(str(row[0]))


def test_reading_what_another_person_asked_is_on_record_once(
    access: Access, admin: Identity, add_person: AddPerson, database: Database, collection: Collection
) -> None:
    employee = identity_of(add_person("somebody@example.com"))
    manager = identity_of(add_person("manager@example.com", Role.MANAGER))
    theirs, own = ask(database, employee, collection), ask(database, admin, collection)
    analytics = Analytics(database)
    for _ in range(3):  # as a page that is drawn again and again
        analytics.question(admin, theirs)
        analytics.question(admin, own)
    analytics.question(manager, theirs)
    with pytest.raises(NotFound):
        analytics.question(admin, UUID(int=1))
    assert actions(database, admin, "conversation") == [
        ("admin@example.com", "conversation read", "somebody@example.com"),
        ("manager@example.com", "conversation read", "somebody@example.com"),
    ]
    (entry, _) = AuditLog(database).entries(admin, kind="conversation")
    assert entry.target_id == str(theirs)


def test_the_analytics_export_is_on_record(access: Access, admin: Identity, database: Database) -> None:
    day = date(2026, 11, 15)
    Analytics(database).export_csv(admin, Period(day, day), Filters(), QuestionFilters())
    assert actions(database, admin, "export") == [
        ("admin@example.com", "export made", "questions of 2026-11-15 to 2026-11-15")
    ]


# Following


def test_an_entry_that_becomes_visible_late_is_followed_too(database: Database, admin: Identity) -> None:
    log = AuditLog(database)
    tail = Tail(log, "demo", from_now=True)
    with database.transaction(admin) as slow:
        slow.execute("UPDATE accounts SET name = 'Slow'")
        log.note(admin, "export made", "quick")
        assert [json.loads(line)["target"] for line in tail.lines()] == ["quick"]
    assert [json.loads(line)["action"] for line in tail.lines()] == ["account changed"]
    assert list(tail.lines()) == []


def test_a_long_log_is_told_whole_and_once(database: Database, admin: Identity) -> None:
    with database.transaction(admin) as connection:
        connection.execute(
            "INSERT INTO audit_log (tenant_id, actor, action) "
            "SELECT 'demo', 'a', 'export made' FROM generate_series(1, %s)",
            (3 * LATE_NUMBERS,),
        )
    numbers = [json.loads(line)["id"] for line in Tail(AuditLog(database), "demo").lines()]
    assert len(numbers) == len(set(numbers)) == 3 * LATE_NUMBERS


def test_the_command_follows_the_logs_of_all_tenants(
    server: PlainServer, database: Database, owner_conninfo: str, admin: Identity, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "DATABASE_URL": make_conninfo(database.conninfo),
        "MIGRATION_DATABASE_URL": owner_conninfo,
        "RAG_DATA_DIR": str(tmp_path),
    }
    log = AuditLog(database)
    log.note(admin, "export made", "before")
    told = subprocess.run(
        [*forked_python(), "-m", "rag", "audit", "--tenant", "demo"],
        env=environment, cwd=MIGRATIONS.parent.parent, capture_output=True, text=True, timeout=patient(120), check=True,
    )  # fmt: skip
    assert json.loads(told.stdout.splitlines()[-1])["target"] == "before"
    command = [sys.executable, "-u", "-m", "rag", "audit", "--follow"]
    with subprocess.Popen(
        command, env=environment, cwd=MIGRATIONS.parent.parent, stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        try:
            # Until it has begun, what is noted is not new to it: so it is noted until the first line comes.
            others = Identity(
                account_id=admin.account_id, tenant_id="other", email="o@other.example", name="O", role=Role.ADMIN
            )
            lines: list[str] = []
            while not lines:
                log.note(others, "export made", "after")
                if select.select([following.stdout], [], [], 0.2)[0]:
                    lines.append(following.stdout.readline())
                assert following.poll() is None
            entry = json.loads(lines[0])
        finally:
            following.terminate()
    assert (entry["tenant"], entry["actor"], entry["action"], entry["target"]) == (
        "other",
        "o@other.example",
        "export made",
        "after",
    )
