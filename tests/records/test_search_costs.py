"""Searches of programs in the log: explained where they were paid for, and no questions of people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from psycopg.rows import dict_row

from rag.profiles import HR
from rag.providers.embeddings import generate_embeddings_batch
from rag.records.analytics import Filters, Period, QuestionFilters
from rag.retrieval.bm25.index import index_document
from rag.services import Services, assemble
from rag.settings import Settings
from rag.storage.database import Database
from rag.types import Collection, Identity, Question, Role
from tests.standins.providers import ProviderStandin

MODEL = "openai/text-embedding-3-small@256"
PROFILE = HR.changed(translate_queries=False, reranking=False)


@pytest.fixture
def parts(database: Database, settings: Settings, provider_standin: ProviderStandin) -> Iterator[Services]:
    keyed = replace(settings, openai_api_key="k", openai_base_url=provider_standin.openai_url)
    assembled = assemble(keyed, database)
    yield assembled
    assembled.pipeline.close()
    assembled.providers.close()


@pytest.fixture
def program() -> Identity:
    return Identity(account_id=UUID(int=0), tenant_id="demo", email="", name="program", role=Role.ADMIN)


def shelved(parts: Services, model: str) -> Collection:
    """A collection with a document of one passage."""
    collection = parts.documents.ensure_collection("demo", f"Rules by {model}", "hr", model, "en")
    embedder = parts.providers.embedder_for(model)
    text = "Full-time employees receive 25 vacation days."
    vector = generate_embeddings_batch([text], embedder=embedder).vectors[0]
    with parts.database.transaction("demo") as connection:
        (document_id,) = connection.execute(
            "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status) "
            "VALUES ('demo', %s, 'Leave', 'a.pdf', %s, 'completed') RETURNING id",
            (collection.id, model),
        ).fetchone() or (None,)
        connection.execute(
            "INSERT INTO document_chunks (document_id, tenant_id, collection_id, content, embedding, chunk_index, "
            "embedding_model) VALUES (%s, 'demo', %s, %s, %s::vector::halfvec, 0, %s)",
            (document_id, collection.id, text, vector, model),
        )
        index_document(connection, tenant_id="demo", collection_id=collection.id, document_id=document_id)
    return collection


@pytest.mark.parametrize(
    ("question", "outcome"), [("How many vacation days?", "answered"), ("Zzyzx qwrt?", "no_context")]
)
def test_a_paid_search_is_logged_with_its_cost_and_is_no_question(
    question: str, outcome: str, parts: Services, program: Identity
) -> None:
    collection = shelved(parts, MODEL)
    parts.searches.search(Question(text=question, identity=program, collection=collection), profile=PROFILE)
    with parts.database.transaction("demo") as connection, connection.cursor(row_factory=dict_row) as cursor:
        (log,) = cursor.execute("SELECT * FROM chat_logs").fetchall()
        (paid,) = cursor.execute("SELECT * FROM cost_ledger").fetchall()
    assert (log["kind"], log["question"], log["outcome"]) == ("search", question, outcome)
    assert paid["chat_log_id"] == log["id"]
    assert log["cost"] == paid["cost"] > 0
    assert log["rag_details"]["costs"]["total"] == pytest.approx(float(paid["cost"]))
    today = datetime.now(UTC).date()
    period, everything = Period(today, today), Filters()
    totals = parts.analytics.summary(program, period, everything).current
    assert (totals.questions, totals.ended, totals.no_context) == (0, 0, 0)
    assert totals.cost == paid["cost"]
    assert parts.analytics.unanswered(program, period, everything) == []
    assert parts.analytics.questions(program, period, everything, QuestionFilters()) == []
    (listed,) = parts.analytics.questions(program, period, everything, QuestionFilters(kind="search"))
    assert listed.cost == paid["cost"]
    assert parts.analytics.question(program, listed.id).charges[0].cost == paid["cost"]


def test_a_search_that_costs_nothing_leaves_no_row(parts: Services, program: Identity) -> None:
    collection = shelved(parts, "builtin/lexical@1536")
    parts.searches.search(
        Question(text="How many vacation days?", identity=program, collection=collection), profile=PROFILE
    )
    with parts.database.transaction("demo") as connection:
        assert connection.execute("SELECT count(*) FROM chat_logs").fetchone() == (0,)
