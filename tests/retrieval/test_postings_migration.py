"""A database of the version before packed postings: what was indexed stays findable, with the same scores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import bm25s
import numpy as np
import psycopg
import pytest
from pgvector.psycopg import register_vector
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rag.retrieval.bm25.index import contextual_text, index_document, tokenize
from rag.retrieval.hybrid_search import SearchQuery, keyword_search
from rag.storage.database import Database, sealing_key
from rag.types import Scope
from tests.earlier_database import earlier_database, index_as_before, upgrade
from tests.retrieval.shelf import scores_of
from tests.standins.plain_server import PlainServer

BEFORE = "20261121000500"
#: Words that have no other wording in the product's list: those would count as well.
PASSAGES = [f"{'lantern ' * (1 + n % 4)} for bicycles number {n} {'and cars ' * (n % 3)}" for n in range(60)]


@pytest.fixture
def earlier(server: PlainServer, tmp_path: Path) -> Iterator[str]:
    """The owner's address of a database with the tables as they were."""
    with earlier_database(server, BEFORE, tmp_path) as owner:
        yield owner


def fill(superuser: str) -> tuple[UUID, list[UUID]]:
    """A collection of three documents, indexed as that version did; its id and theirs."""
    with psycopg.connect(superuser, options="-c search_path=public,extensions") as connection:
        register_vector(connection)
        connection.execute("INSERT INTO tenants (id, name) VALUES ('demo', 'Demo')")
        row = connection.execute(
            "INSERT INTO collections (tenant_id, name, embedding_model) VALUES ('demo', 'A', 'm@3') RETURNING id"
        ).fetchone()
        assert row is not None
        documents = []
        for number in range(3):
            document = connection.execute(
                "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, language) "
                "VALUES ('demo', %s, 'Guide', 'g.pdf', %s, 'completed', 'en') RETURNING id",
                (row[0], str(number)),
            ).fetchone()
            assert document is not None
            documents.append(document[0])
            for index, passage in enumerate(PASSAGES[number * 20 : number * 20 + 20]):
                terms = tokenize(contextual_text("Guide", "", passage), "en")
                chunk = connection.execute(
                    "INSERT INTO document_chunks (tenant_id, collection_id, document_id, content, chunk_index) "
                    "VALUES ('demo', %s, %s, %s, %s) RETURNING id, tenant_id, collection_id, document_id",
                    (row[0], document[0], passage, index),
                ).fetchone()
                assert chunk is not None
                index_as_before(connection, chunk, terms, average=9.0 + number)  # as it was on the day
    return row[0], documents


def expected(passages: list[str], question: str) -> list[float]:
    retriever = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    retriever.index([tokenize(contextual_text("Guide", "", p), "en") for p in passages], show_progress=False)
    return sorted((2.5 * np.asarray(retriever.get_scores(tokenize(question, "en")), float)).tolist(), reverse=True)[:10]


def test_what_was_indexed_before_has_the_same_scores_and_can_be_changed(server: PlainServer, earlier: str) -> None:
    name = str(conninfo_to_dict(earlier)["dbname"])
    superuser = make_conninfo(server.superuser, dbname=name)
    collection, documents = fill(superuser)
    assert [name[:14] for name in upgrade(earlier)][:1] == ["20261121000600"]
    database = Database(make_conninfo(server.application, dbname=name), sealing_key(earlier))
    database.open()
    scope = Scope(tenant_id="demo", collection_ids=(collection,))

    def scores(question: str) -> Any:
        found = keyword_search(database, SearchQuery(text=question, language="en"), scope=scope, limit=10)
        return scores_of(found)

    for question in ("lantern", "cars number 17", "bicycles and cars"):
        np.testing.assert_allclose(scores(question), expected(PASSAGES, question), rtol=1e-5)
    with database.transaction("demo") as connection:
        connection.execute("DELETE FROM documents WHERE id = %s", (documents[1],))
        index_document(connection, tenant_id="demo", collection_id=collection, document_id=documents[2])
    left = PASSAGES[:20] + PASSAGES[40:]
    np.testing.assert_allclose(scores("cars number 47"), expected(left, "cars number 47"), rtol=1e-5)
    database.close()


def test_an_empty_database_of_before_is_converted(earlier: str) -> None:
    assert "20261121000600_postings" in upgrade(earlier)
