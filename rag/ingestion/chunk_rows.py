"""Pages and chunks into their tables.

Row-level security refuses COPY. Measured against it: a statement per row is bound by the number of statements, a
temporary table writes everything twice; whole batches as binary arrays do neither.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pgvector import HalfVector
from psycopg import Connection
from psycopg.types.numeric import Int4

from rag.ingestion.extracted import storable
from rag.money.price_list import estimate_tokens
from rag.storage.database import queries
from rag.types import Chunk, Document, FloatMatrix, Page

#: Some three megabytes of vectors and text in one statement.
ROWS_PER_STATEMENT = 500


def add_pages(connection: Connection, document: Document, pages: Sequence[tuple[Page, str]]) -> None:
    """Write the pages, each with its language, within the caller's transaction."""
    rows = [page_row(document, page, language) for page, language in pages]
    with connection.cursor() as cursor:
        cursor.executemany(queries["add_page"], rows)


def page_row(document: Document, page: Page, language: str) -> dict[str, Any]:
    """A page as its table holds it."""
    return {
        "document_id": document.id,
        "number": page.number,
        "text": storable(page.text),
        "characters": len(page.text),
        "method": page.method,
        "language": language,
        "label": page.label,
        "warnings": list(page.warnings),
    }


def add_chunks(
    connection: Connection,
    document: Document,
    chunks: Sequence[Chunk],
    vectors: FloatMatrix,
    embedding_model: str,
    *,
    tokens: Sequence[int] | None = None,
) -> None:
    """Write chunks with their vectors, shape (chunks, dimensions), within the caller's transaction.

    `tokens` are estimated where they are not given, which takes as long as writing.
    """
    counts = tokens if tokens is not None else [estimate_tokens(chunk.content) for chunk in chunks]
    for first in range(0, len(chunks), ROWS_PER_STATEMENT):
        part = chunks[first : first + ROWS_PER_STATEMENT]
        last = first + len(part)
        columns = {
            "document_id": document.id,
            "collection_id": document.collection_id,
            "embedding_model": embedding_model,
            "contents": [storable(chunk.content) for chunk in part],
            "embeddings": [HalfVector(vector) for vector in vectors[first:last]],
            "indexes": [Int4(chunk.index) for chunk in part],
            "metadata": [json.dumps(dict(chunk.metadata)) if chunk.metadata else "{}" for chunk in part],
            "first_pages": [Int4(chunk.first_page) for chunk in part],
            "last_pages": [Int4(chunk.last_page) for chunk in part],
            "starts": [Int4(chunk.start) for chunk in part],
            "ends": [Int4(chunk.end) for chunk in part],
            "sections": [storable(chunk.section) for chunk in part],
            "tokens": [Int4(count) for count in counts[first:last]],
        }
        connection.execute(queries["add_chunks"], columns)


def add_bare_chunks(connection: Connection, document: Document, chunks: Sequence[Chunk]) -> None:
    """Write chunks without vectors, within the caller's transaction."""
    rows = [
        {
            "document_id": document.id,
            "collection_id": document.collection_id,
            "content": storable(chunk.content),
            "chunk_index": chunk.index,
            "metadata": json.dumps(dict(chunk.metadata)),
            "first_page": chunk.first_page,
            "last_page": chunk.last_page,
            "start": chunk.start,
            "end": chunk.end,
            "section": storable(chunk.section),
            "tokens": estimate_tokens(chunk.content),
        }
        for chunk in chunks
    ]
    with connection.cursor() as cursor:
        cursor.executemany(queries["add_bare_chunk"], rows)


def set_vectors(
    connection: Connection, document: Document, chunks: Sequence[Chunk], vectors: FloatMatrix, embedding_model: str
) -> None:
    """Give stored chunks their vectors, shape (chunks, dimensions), within the caller's transaction."""
    columns = {
        "document_id": document.id,
        "embedding_model": embedding_model,
        "embeddings": [HalfVector(vector) for vector in vectors],
        "indexes": [Int4(chunk.index) for chunk in chunks],
    }
    connection.execute(queries["set_vectors"], columns)


def keep_embedded(
    connection: Connection, document: Document, chunks: Sequence[Chunk], embedding_model: str
) -> frozenset[int]:
    """Indexes of the chunks that are stored with their vector already; rows that are none of these are removed."""
    parameters = {"document_id": document.id, "embedding_model": embedding_model}
    stored = connection.execute(queries["embedded_chunks"], parameters).fetchall()
    wanted = {(chunk.index, chunk.start, chunk.end) for chunk in chunks}
    kept = [index for index, start, end in stored if (index, start, end) in wanted]
    connection.execute(queries["remove_other_chunks"], {**parameters, "kept": kept})
    return frozenset(kept)
