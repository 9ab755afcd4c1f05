"""Read and write documents, pages and chunks in the database, and remove files without a document.

Row-level security forbids COPY. A statement for each row is slow, and a temporary table writes everything twice.
Therefore a batch is inserted by a single statement with binary arrays.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

import numpy as np
from pgvector import HalfVector
from psycopg import Connection
from psycopg.types.json import Jsonb
from psycopg.types.numeric import Int4

from rag.errors import RagError
from rag.storage.database import Database, queries
from rag.storage.files import Originals
from rag.text.tokens import estimate_tokens
from rag.types import (
    Chunk,
    Collection,
    Document,
    DocumentPage,
    DocumentStatus,
    FloatMatrix,
    Page,
    Section,
    Step,
    Who,
    sections_from_json,
    storable,
)

#: About three megabytes of vectors and text per statement.
ROWS_PER_STATEMENT = 500


def find_document(database: Database, who: Who, document_id: UUID) -> Document | None:
    documents = _find(database, who, {"document_id": document_id})
    return documents[0] if documents else None


def find_documents(database: Database, who: Who, collection_id: UUID | None = None) -> list[Document]:
    """Return the documents in a collection, or in all collections, newest first. Each version counts separately."""
    return _find(database, who, {"collection_id": collection_id})


def find_versions(database: Database, who: Who, original_id: UUID | None) -> list[Document]:
    """Return a document's versions, newest first."""
    return _find(database, who, {"original_id": original_id})


def find_copies(database: Database, collection: Collection, sha256: str) -> list[Document]:
    """Return the collection's documents with this SHA-256, newest first, including superseded versions."""
    return _find(database, collection.tenant_id, {"collection_id": collection.id, "sha256": sha256})


def list_documents(
    database: Database,
    who: Who,
    *,
    collection_id: UUID | None = None,
    status: DocumentStatus | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[Document]:
    """Return at most `limit` documents after the first `offset`, newest first, without superseded versions."""
    return _find(
        database,
        who,
        {
            "collection_id": collection_id,
            "status": status,
            "with_superseded": False,
            "limit": limit,
            "offset": offset,
        },
    )


#: All versions of all documents.
ANY_DOCUMENT: Mapping[str, Any] = {
    **dict.fromkeys(("document_id", "collection_id", "sha256", "original_id", "status", "limit")),
    "with_superseded": True,
    "offset": 0,
}


def _find(database: Database, who: Who, conditions: Mapping[str, Any]) -> list[Document]:
    rows = database.fetch_all(who, "find_documents", Document, **{**ANY_DOCUMENT, **conditions})
    return [replace(row, status=DocumentStatus(row.status), step=Step(row.step)) for row in rows]


def find_pages(
    database: Database, who: Who, document_id: UUID, *, limit: int | None = None, offset: int = 0
) -> list[DocumentPage]:
    """Return at most `limit` pages of a document after the first `offset`, in order."""
    part = {"document_id": document_id, "limit": limit, "offset": offset}
    return database.fetch_all(who, "find_pages", DocumentPage, **part)


def find_text(database: Database, who: Who, document_id: UUID) -> tuple[list[Page], tuple[Section, ...]]:
    """Return a document's pages and sections; both are empty if the document does not exist."""
    pages = [page_from_row(row) for row in find_pages(database, who, document_id)]
    return pages, tuple(sections_from_json(database.fetch_value(who, "sections_of_document", document_id=document_id)))


def page_from_row(row: DocumentPage) -> Page:
    return Page(number=row.number, text=row.text, method=row.method, label=row.label, warnings=tuple(row.warnings))


def add_pages(connection: Connection, document: Document, pages: Sequence[tuple[Page, str]]) -> None:
    """Insert pages, each with its language, in the caller's transaction."""
    rows = [page_row(document, page, language) for page, language in pages]
    with connection.cursor() as cursor:
        cursor.executemany(queries["add_page"], rows)


def page_row(document: Document, page: Page, language: str) -> dict[str, Any]:
    """Return the values for a page's database row, by column."""
    return {
        "document_id": document.id,
        "number": page.number,
        "text": storable(page.text),
        "characters": len(page.text),
        "method": page.method,
        "language": language,
        "label": page.label,
        "warnings": list(page.warnings),
        "marks": None if page.marks is None else Jsonb([asdict(mark) for mark in page.marks]),
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
    """Insert chunks with vectors, shape (chunks, dimensions), in the caller's transaction.

    A vector of NaN is missing. Without `tokens`, token counts are estimated, which doubles the time.
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
            "embeddings": halfvecs(vectors[first:last]),
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


def find_bare_chunks(database: Database, document: Document, embedding_model: str) -> list[Chunk]:
    """Return a document's chunks without a vector from this model, in order."""
    parameters = {"document_id": document.id, "embedding_model": embedding_model}
    with database.transaction(document.tenant_id) as connection:
        rows = connection.execute(queries["bare_chunks"], parameters).fetchall()
    return [
        Chunk(index=i, content=content, first_page=first, last_page=last, start=start, end=end, section=section)
        for i, content, first, last, start, end, section in rows
    ]


def halfvecs(vectors: FloatMatrix) -> list[HalfVector | None]:
    """Convert vectors to binary values for Postgres. A vector of NaN becomes `None`."""
    missing = [bool(np.isnan(vector).any()) for vector in vectors]
    return [None if is_missing else HalfVector(vector) for vector, is_missing in zip(vectors, missing, strict=True)]


def add_bare_chunks(connection: Connection, document: Document, chunks: Sequence[Chunk]) -> None:
    """Insert chunks without vectors, in the caller's transaction."""
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
    """Store vectors, shape (chunks, dimensions), for existing chunks, in the caller's transaction."""
    columns = {
        "document_id": document.id,
        "embedding_model": embedding_model,
        "embeddings": halfvecs(vectors),
        "indexes": [Int4(chunk.index) for chunk in chunks],
    }
    connection.execute(queries["set_vectors"], columns)


def keep_embedded(
    connection: Connection, document: Document, chunks: Sequence[Chunk], embedding_model: str
) -> frozenset[int]:
    """Delete stored chunks, except chunks in `chunks` with a vector from this model. Returns the indexes kept."""
    parameters = {"document_id": document.id, "embedding_model": embedding_model}
    stored = connection.execute(queries["embedded_chunks"], parameters).fetchall()
    spans = {(chunk.index, chunk.start, chunk.end) for chunk in chunks}
    indexes = [index for index, start, end in stored if (index, start, end) in spans]
    connection.execute(queries["remove_other_chunks"], {**parameters, "kept": indexes})
    return frozenset(indexes)


def keep_requested(
    connection: Connection, document: Document, chunks: Sequence[Chunk], embedding_model: str
) -> tuple[bool, frozenset[int]]:
    """Store chunks without vectors, unless the same chunks are stored already.

    Returns whether a vector was already requested for every chunk, and the indexes of chunks which have no vector yet.
    """
    key = {"document_id": document.id}
    rows = connection.execute(queries["chunks_asked_for"], key).fetchall()
    stored = {(index, start, end): (model == embedding_model, has_one) for index, start, end, model, has_one in rows}
    spans = {(chunk.index, chunk.start, chunk.end) for chunk in chunks}
    if stored.keys() != spans:
        connection.execute(queries["remove_other_chunks"], {**key, "kept": []})
        add_bare_chunks(connection, document, chunks)
        return not chunks, frozenset()
    is_complete = all(is_requested for is_requested, _ in stored.values())
    return is_complete, frozenset(index for (index, _, _), (_, has_one) in stored.items() if not has_one)


def take_over(
    connection: Connection, document: Document, chunks: Sequence[Chunk], embedding_model: str
) -> frozenset[int]:
    """Copy vectors and tags from the previous version to unchanged chunks, and return these chunks' indexes."""
    parameters = {
        "document_id": document.id,
        "embedding_model": embedding_model,
        "contents": [storable(chunk.content) for chunk in chunks],
        "sections": [storable(chunk.section) for chunk in chunks],
        "indexes": [chunk.index for chunk in chunks],
        "metadata": [json.dumps(dict(chunk.metadata)) for chunk in chunks],
        "first_pages": [chunk.first_page for chunk in chunks],
        "last_pages": [chunk.last_page for chunk in chunks],
        "starts": [chunk.start for chunk in chunks],
        "ends": [chunk.end for chunk in chunks],
    }
    return frozenset(row[0] for row in connection.execute(queries["take_over_chunks"], parameters).fetchall())


log = logging.getLogger("rag.ingestion")


def request_file_removal(connection: Connection, tenant_id: str, file_paths: Sequence[str]) -> None:
    """Queue files for removal, in the transaction which deletes their documents."""
    connection.execute(queries["await_file_removal"], {"file_paths": list(file_paths)})
    connection.execute(queries["enqueue_file_removal"], {"tenant_id": tenant_id})


class FileRemovals:
    """Remove files of deleted documents. Thread-safe, also between processes."""

    def __init__(self, database: Database, files: Originals) -> None:
        self._database = database
        self._files = files

    def run(self, tenant_id: str) -> int:
        """Remove every queued file which no document uses. Returns the number of files which could not be removed.

        They stay queued.
        """
        with self._database.transaction(tenant_id) as connection:
            waiting = [row[0] for row in connection.execute(queries["waiting_file_removals"]).fetchall()]
        return sum(not self._remove(tenant_id, file_path) for file_path in waiting)

    def _remove(self, tenant_id: str, file_path: str) -> bool:
        parameters = {"file_path": file_path}
        try:
            with self._database.transaction(tenant_id) as connection:
                # An upload of the same content waits here, or needs the file again by now.
                connection.execute(queries["lock_stored_file"], parameters)
                used = connection.execute(queries["file_is_used"], parameters).fetchone()
                if not (used and used[0]):
                    self._files.delete(tenant_id, file_path)
                connection.execute(queries["finish_file_removal"], parameters)
        except (RagError, OSError) as exc:
            log.warning("A file could not be removed and is tried again: %s", exc)
            self._database.execute(tenant_id, "note_file_removal_failed", **parameters, error=str(exc)[:500])
            return False
        return True
