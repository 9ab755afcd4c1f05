"""Fixtures for answering with scripted models on a real database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import pytest
from psycopg.rows import dict_row

from rag.answering.jobs import LiveAnswers
from rag.answering.live_answer import LiveAnswer
from rag.answering.pipeline import Answerer
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.records.conversations import Conversations
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question
from tests.answering.scripted import (
    FixedRetriever,
    ScriptedModel,
    ScriptedProviders,
    add_account,
    add_document,
    passage,
)


@dataclass
class Desk:
    """All parts needed to answer a question, with helpers to ask and to read tables."""

    database: Database
    collection: Collection
    identity: Identity
    model: ScriptedModel
    providers: ScriptedProviders
    retriever: FixedRetriever
    answerer: Answerer
    answers: LiveAnswers
    conversations: Conversations

    def rows(self, table: str) -> list[dict[str, Any]]:
        statements = {
            "chat_logs": "SELECT * FROM chat_logs ORDER BY created_at",
            "cost_ledger": "SELECT * FROM cost_ledger ORDER BY created_at",
            "messages": "SELECT * FROM messages ORDER BY created_at",
            "paid_calls": "SELECT * FROM paid_calls ORDER BY sent_at",
        }
        with self.database.transaction("demo") as connection, connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(statements[table]).fetchall()

    def question(self, text: str) -> Question:
        return Question(text=text, identity=self.identity, collection=self.collection)

    def ask(self, text: str, **choices: Any) -> LiveAnswer:
        return self.answers.ask(self.question(text), **choices)

    def another_process(self) -> LiveAnswers:
        return LiveAnswers(self.answerer, self.conversations, self.database)


@pytest.fixture
def identity(database: Database) -> Identity:
    return add_account(database, "demo", "somebody@example.org")


@pytest.fixture
def document_id(database: Database, collection: Collection) -> UUID:
    return add_document(database, collection, "Employees have 25 days of vacation. They are booked in June.")


@pytest.fixture
def desk(
    database: Database, collection: Collection, identity: Identity, settings: Settings, document_id: UUID
) -> Iterator[Desk]:
    model = ScriptedModel()
    providers = ScriptedProviders(chat=model)
    retriever = FixedRetriever(
        citations=(
            passage(1, "Employees have 25 days of vacation.", document_id=document_id),
            passage(2, "Vacation is booked in June.", document_id=document_id),
        )
    )
    answerer = Answerer(cast(Retriever, retriever), cast(Providers, providers), ChatLogs(database), settings)
    conversations = Conversations(database)
    answers = LiveAnswers(answerer, conversations, database)
    yield Desk(database, collection, identity, model, providers, retriever, answerer, answers, conversations)
    answers.stop_all()
