from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from rag.errors import InvalidInput, NotFound
from rag.records.chat_logs import ChatLogs
from rag.records.conversations import MAXIMUM_COMMENT_CHARACTERS, Conversations, Feedback
from rag.storage.database import Database
from rag.types import Collection, Identity, Question, Role


@pytest.fixture
def asker(database: Database) -> Identity:
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO accounts (tenant_id, email, role, password_hash) "
            "VALUES ('demo', 'a@example.org', 'employee', 'x') RETURNING id"
        ).fetchone()
    assert row is not None
    return Identity(account_id=row[0], tenant_id="demo", email="a@example.org", name="", role=Role.EMPLOYEE)


@pytest.fixture
def answer_id(database: Database, collection: Collection, asker: Identity) -> UUID:
    conversation = Conversations(database).create(asker, collection.id, "Talk")
    log_id = ChatLogs(database).open(Question(text="Vacation?", identity=asker, collection=collection))
    with database.transaction("demo") as connection:
        row = connection.execute(
            "INSERT INTO messages (tenant_id, conversation_id, role, content, chat_log_id) "
            "VALUES ('demo', %s, 'assistant', '25 days', %s) RETURNING id",
            (conversation.id, log_id),
        ).fetchone()
    assert row is not None
    return UUID(str(row[0]))


def ratings(database: Database) -> list[Any]:
    with database.transaction("demo") as connection:
        return connection.execute("SELECT rating, comment FROM feedback").fetchall()


def test_a_rating_can_be_changed_and_stays_one(database: Database, asker: Identity, answer_id: UUID) -> None:
    feedback = Feedback(database)
    feedback.rate(asker, answer_id, 0, " Wrong page\x00. ")
    assert ratings(database) == [(0, "Wrong page.")]
    feedback.rate(asker, answer_id, 1)
    assert ratings(database) == [(1, "")]
    (conversation,) = Conversations(database).list(asker)
    assert Conversations(database).messages(asker, conversation.id)[-1].rating == 1


def test_only_the_person_who_asked_can_rate(database: Database, asker: Identity, answer_id: UUID) -> None:
    for nobody in (replace(asker, account_id=uuid4()), replace(asker, tenant_id="other")):
        with pytest.raises(NotFound):
            Feedback(database).rate(nobody, answer_id, 1)
    with pytest.raises(NotFound):
        Feedback(database).rate(asker, uuid4(), 1)
    assert ratings(database) == []


def test_another_rating_is_refused(database: Database, asker: Identity, answer_id: UUID) -> None:
    with pytest.raises(InvalidInput):
        Feedback(database).rate(asker, answer_id, 5)  # type: ignore[arg-type]


def test_a_comment_is_kept_whole_or_refused(database: Database, asker: Identity, answer_id: UUID) -> None:
    feedback, longest = Feedback(database), "x" * MAXIMUM_COMMENT_CHARACTERS
    feedback.rate(asker, answer_id, 0, longest)
    with pytest.raises(InvalidInput, match=r"2,001 characters, and at most 2,000 are kept"):
        feedback.rate(asker, answer_id, 0, longest + "x")
    assert ratings(database) == [(0, longest)]
