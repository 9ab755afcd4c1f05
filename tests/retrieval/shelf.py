"""Documents in the database the way ingestion leaves them, without ingestion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from rag.ingestion.chunking import chunk_document
from rag.ingestion.loaders.pdf import load_pdf
from rag.providers import Embedder
from rag.retrieval.bm25.index import contextual_text, index_document
from rag.storage.database import Database
from rag.types import Collection, Scope, SearchResult


@dataclass
class Shelf:
    """Adds documents to a collection and takes them away."""

    database: Database
    collection: Collection
    embedder: Embedder

    @property
    def scope(self) -> Scope:
        return Scope(tenant_id=self.collection.tenant_id, collection_ids=(self.collection.id,))

    def add(
        self,
        title: str,
        passages: Sequence[str],
        *,
        language: str = "en",
        status: str = "completed",
        section: str = "",
        metadata: dict[str, Any] | None = None,
        of_passages: Sequence[dict[str, Any]] = (),
    ) -> UUID:
        """Store a document with one passage per page, embedded and indexed, each with its own metadata; its id."""
        tenant, collection = self.collection.tenant_id, self.collection.id
        vectors = self.embedder.embed(
            [contextual_text(title, section, p) for p in passages], purpose="document"
        ).vectors
        with self.database.transaction(tenant) as connection:
            row = connection.execute(
                "INSERT INTO documents "
                "(tenant_id, collection_id, title, file_name, sha256, status, language, metadata) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING id",
                (tenant, collection, title, f"{title}.pdf", str(uuid4()), status, language, Jsonb(metadata or {})),
            ).fetchone()
            assert row is not None
            for index, (passage, vector) in enumerate(zip(passages, vectors, strict=True)):
                connection.execute(
                    "INSERT INTO document_chunks (tenant_id, collection_id, document_id, content, embedding, "
                    "embedding_model, chunk_index, first_page, last_page, section, metadata) "
                    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                    (tenant, collection, row[0], passage, HalfVector(vector), self.embedder.id, index, index + 1,
                     index + 1, section, Jsonb(of_passages[index] if of_passages else {})),
                )  # fmt: skip
            index_document(connection, tenant_id=tenant, collection_id=collection, document_id=row[0])
        return UUID(str(row[0]))

    def add_pdf(self, content: bytes, *, title: str, file_name: str, language: str) -> UUID:
        """Store a PDF cut as the profile `hr` cuts it; its id."""
        extracted = load_pdf(content)
        chunks = chunk_document(extracted.pages, extracted.sections)
        vectors = self.embedder.embed(
            [contextual_text(title, c.section, c.content) for c in chunks], purpose="document"
        ).vectors
        tenant, collection = self.collection.tenant_id, self.collection.id
        with self.database.transaction(tenant) as connection:
            row = connection.execute(
                "INSERT INTO documents (tenant_id, collection_id, title, file_name, sha256, status, language) "
                "VALUES (%s, %s, %s, %s, %s, 'completed', %s) RETURNING id",
                (tenant, collection, title, file_name, str(uuid4()), language),
            ).fetchone()
            assert row is not None
            connection.cursor().executemany(
                "INSERT INTO document_chunks (tenant_id, collection_id, document_id, content, embedding, "
                "embedding_model, chunk_index, first_page, last_page, section, start_character, end_character) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [
                    (tenant, collection, row[0], c.content, HalfVector(v), self.embedder.id, c.index, c.first_page,
                     c.last_page, c.section, c.start, c.end)
                    for c, v in zip(chunks, vectors, strict=True)
                ],
            )  # fmt: skip
            index_document(connection, tenant_id=tenant, collection_id=collection, document_id=row[0])
        return UUID(str(row[0]))

    def remove(self, document_id: UUID) -> None:
        with self.database.transaction(self.collection.tenant_id) as connection:
            connection.execute("DELETE FROM documents WHERE id = %s", (document_id,))


def scores_of(found: Sequence[SearchResult]) -> Any:
    """The keyword scores of hits, each of which has one."""
    assert all(hit.keyword_score is not None for hit in found)
    return np.array([hit.keyword_score for hit in found], dtype=float)
