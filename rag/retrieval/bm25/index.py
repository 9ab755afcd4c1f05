"""The keyword index: what its terms are, and how a document comes into it, in the transaction that publishes it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection

from rag.retrieval.bm25.analysers import analyse, analyser_code
from rag.retrieval.bm25.scoring import postings_of
from rag.retrieval.bm25.segments import add_segment, compact
from rag.storage.sql import queries

#: Terms are numbers up to this one: room for a billion words, of which two seldom share a number.
MAXIMUM_TERM_ID = 1_000_000_000


def tokenize(text: str, language: str) -> list[str]:
    """Index terms of a text in its order, stopwords left out; the same for passages and questions.

    `language` is an ISO 639-1 code ("nl", "ko", "pt-BR"); with an unknown one, words stay unstemmed.
    """
    return analyse(text, language)


def contextual_text(title: str, section: str, content: str) -> str:
    """What is embedded and indexed of a passage: document title and section path, then the passage itself.

    Near-twin documents differ in little else than their titles. The passage that people see stays unchanged.
    """
    return "\n".join(part for part in (title.strip(), section.strip(), content) if part)


@lru_cache(maxsize=100_000)
def term_id(term: str) -> int:
    """The number of a term, 1 … 1,000,000,000: a stable hash, so that no dictionary has to be kept."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "big") % MAXIMUM_TERM_ID + 1


def index_document(connection: Connection, *, tenant_id: str, collection_id: UUID, document_id: UUID) -> int:
    """Make a document's passages findable within the caller's transaction; the number of passages.

    Writes their keywords, their terms in order and, for dense embedders, the signs of their vectors; replaces what was
    there. The terms are those of `contextual_text` in the document's language, or the collection's where the document
    has none. Counts per collection follow by trigger. Whoever else publishes in this collection waits for the
    transaction's end.
    """
    scope: dict[str, Any] = {"tenant_id": tenant_id, "collection_id": collection_id}
    where: dict[str, Any] = {**scope, "document_id": document_id}
    with connection.pipeline():
        connection.execute(queries["lock_keywords"], where)
        remove_document(connection, **where)
        rows = connection.execute(queries["chunks_to_index"], where).fetchall()
        if not rows:
            return 0
        number = connection.execute(queries["number_passages"], {**where, "passages": len(rows)})
        language = rows[0][4]
        terms = [term_ids(contextual_text(title, section, content), language) for _, title, section, content, _ in rows]
        first_passage = (number.fetchone() or (0,))[0]
        values = {
            **where,
            "language": analyser_code(language),
            "first_passage": first_passage,
            "tokens": sum(map(len, terms)),
            "chunk_ids": [row[0] for row in rows],
            "terms": [packed.tobytes() for packed in terms],
        }
        connection.execute(queries["insert_keywords"], values)
        connection.execute(queries["insert_terms"], values)
        connection.execute(queries["insert_bits"], where)
        add_segment(connection, **scope, postings=postings_of(terms, first_passage))
        compact(connection, **scope)
    return len(rows)


def remove_document(connection: Connection, *, tenant_id: str, collection_id: UUID, document_id: UUID) -> None:
    """Take a document out of what is searched, within the caller's transaction; its chunks stay."""
    where = {"tenant_id": tenant_id, "collection_id": collection_id, "document_id": document_id}
    for name in ("delete_keywords", "delete_terms", "delete_bits"):
        connection.execute(queries[name], where)


def index_vectors(connection: Connection, *, tenant_id: str, collection_id: UUID, document_id: UUID) -> None:
    """Write the signs of a document's vectors anew, within the caller's transaction; none where they are not dense."""
    where = {"tenant_id": tenant_id, "collection_id": collection_id, "document_id": document_id}
    connection.execute(queries["delete_bits"], where)
    connection.execute(queries["insert_bits"], where)


def term_ids(text: str, language: str) -> NDArray[np.int32]:
    """The ids of a text's terms in their order, four bytes each, lowest first."""
    return np.fromiter(map(term_id, tokenize(text, language)), dtype="<i4")


def packed_terms(terms: Iterable[str]) -> bytes:
    """The ids of terms in their order, four bytes each."""
    return np.fromiter(map(term_id, terms), dtype="<i4").tobytes()


def unpacked_terms(packed: bytes) -> NDArray[np.int32]:
    """The ids that `packed_terms` made."""
    return np.frombuffer(packed, dtype="<i4")
