from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from rag.__main__ import command_line
from rag.errors import InvalidInput, NotFound, SettingsError
from rag.evaluation.golden import GoldenQuestion, golden_from_entry
from rag.profiles import profile_of
from rag.records.privacy import Privacy
from rag.services import Services
from rag.storage.database import Database
from rag.types import Collection, Identity, Question, Role

CANARY = "canary-7f3a"
EMAIL = f"{CANARY}@demo.example"


def tables_with(conninfo: str, *texts: str) -> set[str]:
    """Search every row of every table for a text."""
    with psycopg.connect(conninfo) as connection:
        names = connection.execute(
            "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'p') "
            "AND c.relnamespace IN ('public'::regnamespace, 'rag_private'::regnamespace)"
        ).fetchall()
        return {
            name
            for (name,) in names
            for text in texts
            if connection.execute(
                f"SELECT EXISTS (SELECT FROM {name} t WHERE t::text ILIKE %s)",
                (f"%{text}%",),
            ).fetchone()
            == (True,)
        }


def newest_question(database: Database) -> UUID:
    with database.transaction("demo") as connection:
        row = connection.execute("SELECT id FROM chat_logs ORDER BY created_at DESC LIMIT 1").fetchone()
    assert row is not None
    found: UUID = row[0]
    return found


@pytest.fixture
def person(app_services: Services, collection: Collection, database: Database) -> Identity:
    """Somebody who left a word everywhere: asked, rated, asked a person, changed something, and was changed."""
    admin = Identity(account_id=UUID(int=7), tenant_id="demo", email="admin@demo.example", name="Ad", role=Role.ADMIN)
    with database.transaction("demo") as connection:
        connection.execute(
            "INSERT INTO accounts (id, tenant_id, email, name, role, password_hash) "
            "VALUES (%s, 'demo', %s, 'Ad', 'admin', '')",
            (admin.account_id, admin.email),
        )
    with database.transaction(admin) as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, name, role, password_hash) "
            "VALUES ('demo', %s, %s, 'manager', '') RETURNING id",
            (EMAIL, f"Eve {CANARY}"),
        ).fetchone()
        assert row is not None
        connection.execute("UPDATE accounts SET name = %s WHERE id = %s", (f"Eva {CANARY}", row[0]))
    eve = Identity(account_id=row[0], tenant_id="demo", email=EMAIL, name=f"Eva {CANARY}", role=Role.MANAGER)
    live = app_services.answers.ask(Question(text=f"Is there {CANARY} leave?", identity=eve, collection=collection))
    for _ in live.tail(every_seconds=0.01):
        pass
    message = app_services.conversations.messages(eve, live.conversation_id)[-1]
    app_services.feedback.rate(eve, message.id, 0, f"Wrong, {CANARY}!")
    app_services.help_requests.open(eve, message.id, comment=f"Please, {CANARY}")
    app_services.gaps.group("demo")
    # Somebody asks it again with other settings, and keeps it as a test question that a run asks.
    entry = app_services.analytics.question(admin, newest_question(database))
    app_services.evaluations.ask_again(admin, collection, entry.question.question, profile_of(collection))
    golden = [golden_from_entry(entry), GoldenQuestion(question="How much leave is there?")]
    app_services.evaluations.add_golden(admin, collection, golden)
    run = app_services.evaluations.begin(collection, profile_of(collection), golden)
    app_services.evaluations.work(collection, run, admin)
    with database.transaction(eve) as connection:
        connection.execute("UPDATE collections SET language = 'nl'")
        # The Monday of a week that is over: it is summed, too.
        connection.execute("UPDATE chat_logs SET created_at = date_trunc('week', created_at) - interval '14 days'")
    app_services.analytics.days.add_up("demo")
    return eve


def test_a_person_is_exported_and_erased_from_every_table_with_a_receipt(
    app_services: Services, person: Identity, superuser_conninfo: str, owner_conninfo: str, database: Database
) -> None:
    where = tables_with(superuser_conninfo, CANARY, str(person.account_id))
    assert where >= {
        "accounts", "audit_log", "chat_logs", "conversations", "evaluation_runs", "feedback", "golden_questions",
        "help_requests", "messages", "question_days", "question_weeks",
    }  # fmt: skip
    exported = json.loads(app_services.privacy.export("demo", EMAIL.upper()))
    assert exported["account"]["email"] == EMAIL
    assert "password_hash" not in exported["account"]
    assert CANARY in exported["questions"][0]["question"]
    assert CANARY in exported["conversations"][0]["messages"][0]["content"]
    assert exported["ratings"][0]["comment"] == f"Wrong, {CANARY}!"
    assert exported["asked_a_person"][0]["comment"] == f"Please, {CANARY}"
    assert CANARY in exported["golden_questions"][0]["question"]
    assert exported["acts"]

    receipt = app_services.privacy.erase("demo", EMAIL)

    assert tables_with(superuser_conninfo, CANARY) == set()
    # The receipt is found again by the account's former id, and by nothing else.
    assert tables_with(superuser_conninfo, str(person.account_id)) == {"erasures"}
    assert (receipt.counts["account"], receipt.counts["questions"], receipt.counts["conversations"]) == (1, 1, 1)
    assert [kept.counts for kept in app_services.privacy.receipts("demo")] == [receipt.counts]
    with database.transaction("demo") as connection:
        kept = connection.execute("SELECT total_ms > 0, outcome <> '', rag_details ? 'timing' FROM chat_logs")
        assert kept.fetchall() == [(True, True, True)] * 4
    # What was measured stays, and of others their texts too.
    (run,) = app_services.evaluations.runs("demo")
    assert [result.outcome != "" for result in app_services.evaluations.results("demo", run.id)] == [True, True]
    questions = app_services.evaluations.questions("demo", run.id)
    assert [question.question for question in questions] == ["erased 1", "How much leave is there?"]
    (kept_golden,) = app_services.evaluations.golden("demo", run.collection_id).values()
    assert kept_golden.question == "How much leave is there?"
    with pytest.raises(NotFound):
        app_services.privacy.export("demo", EMAIL)
    with pytest.raises(NotFound):
        app_services.privacy.erase("other", EMAIL)
    assert app_services.privacy.receipts("other") == []


def test_an_export_is_for_its_owners_eyes_and_replaces_nothing(
    app_services: Services, person: Identity, tmp_path: Path
) -> None:
    path = tmp_path / "eve.json"
    arguments = command_line().parse_args(["privacy", "export", EMAIL, str(path)])
    arguments.run(arguments, app_services.settings)
    assert path.stat().st_mode & 0o777 == 0o600
    assert CANARY in path.read_text("utf-8")
    with pytest.raises(SettingsError, match="is there already"):
        arguments.run(arguments, app_services.settings)
    assert [found.name for found in tmp_path.iterdir() if "eve" in found.name] == ["eve.json"]


def test_texts_are_forgotten_after_the_time_that_the_company_keeps_them(
    app_services: Services, person: Identity, superuser_conninfo: str, database: Database
) -> None:
    privacy = Privacy(database)
    assert privacy.forget_old("demo") == {}
    with pytest.raises(InvalidInput, match="at least 7 days"):
        privacy.set_retention_days("demo", 6)
    privacy.set_retention_days("demo", 30)
    assert privacy.retention_days("demo") == 30
    assert sum(privacy.forget_old("demo").values()) == 0
    before = datetime.now(UTC) - timedelta(days=31)
    with database.transaction("demo") as connection:
        for table, column in (
            ("chat_logs", "created_at"), ("feedback", "created_at"), ("help_requests", "created_at"),
            ("conversations", "updated_at"),
        ):  # fmt: skip
            connection.execute(f"UPDATE {table} SET {column} = %s", (before,))

    forgotten = privacy.forget_old("demo")

    # The question, and the one that somebody asked again; test questions, and what runs asked, are the company's.
    assert forgotten["questions"] == 2
    assert forgotten["conversations"] == forgotten["ratings"] == 1
    left = {"accounts", "audit_log", "golden_questions", "evaluation_runs", "chat_logs"}
    assert tables_with(superuser_conninfo, CANARY) == left
    with database.transaction("demo") as connection:
        texts = connection.execute("SELECT kind FROM chat_logs WHERE question ILIKE %s", (f"%{CANARY}%",)).fetchall()
    assert texts == [("evaluation",)]
    assert sum(privacy.forget_old("demo").values()) == 0
    privacy.set_retention_days("demo", None)
    assert privacy.retention_days("demo") is None
