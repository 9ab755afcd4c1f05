"""BM25 in the database: a passage's terms as a sparse vector, written in the transaction that publishes it.

The weight of a term is its part of the score without idf, with the average length of the day it was written; the search
recovers the term's frequency from it and scores the best again with today's average. k1 1.5, b 0.75 and Lucene's idf
(source 003; equal to bm25s' method "lucene" up to the constant factor k1 + 1).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import SparseVector
from psycopg import Connection

from rag.retrieval.analysers import analyse
from rag.sql import queries

K1 = 1.5
B = 0.75
#: The most dimensions pgvector's sparsevec has; a term is one of them.
DIMENSIONS = 1_000_000_000
#: The most terms a sparsevec holds is 16,000; a passage with more keeps its most frequent ones.
MAXIMUM_TERMS = 16_000


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
    """The dimension of a term, 1 … 1,000,000,000: a stable hash, so that no dictionary has to be kept."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "big") % DIMENSIONS + 1


def inverse_document_frequency(chunks_with_term: float, chunks: float) -> float:
    """Lucene's idf: ln(1 + (N - n + 0.5) / (n + 0.5)), never negative."""
    return math.log(1 + (chunks - chunks_with_term + 0.5) / (chunks_with_term + 0.5))


def weights_of(terms: Iterable[str], *, length: int, average_length: float) -> dict[int, float]:
    """BM25 without idf, by term id: tf · (k1 + 1) / (tf + k1 · (1 - b + b · length / average_length))."""
    norm = K1 * (1 - B + B * length / average_length)
    counts = Counter(term_id(term) for term in terms)
    return {term: tf * (K1 + 1) / (tf + norm) for term, tf in counts.most_common(MAXIMUM_TERMS)}


def sparse_vector(weights: dict[int, float]) -> SparseVector:
    """Weights by term id as pgvector takes them; Python counts its dimensions from 0, SQL from 1."""
    return SparseVector({term - 1: weight for term, weight in weights.items()}, DIMENSIONS)


def index_document(connection: Connection, *, tenant_id: str, collection_id: UUID, document_id: UUID) -> int:
    """Make a document's passages findable within the caller's transaction; the number of rows written.

    Writes their keywords, their terms in order and, for dense embedders, the signs of their vectors; replaces what was
    there. The terms are those of `contextual_text` in the document's language, or the collection's where the document
    has none. Counts per collection follow by trigger.
    """
    where = {"tenant_id": tenant_id, "collection_id": collection_id, "document_id": document_id}
    with connection.pipeline():
        remove_document(connection, tenant_id=tenant_id, collection_id=collection_id, document_id=document_id)
        passages = connection.execute(queries["chunks_to_index"], where)
        total = connection.execute(queries["keyword_total"], where)
        rows = passages.fetchall()
        if not rows:
            return 0
        language = rows[0][4]
        terms = [tokenize(contextual_text(title, section, content), language) for _, title, section, content, _ in rows]
        chunks, tokens = total.fetchone() or (0, 0)
        average_length = max(1.0, (tokens + sum(map(len, terms))) / (chunks + len(rows)))
        values = {
            **where,
            "language": analyser_code(language),
            "chunk_ids": [row[0] for row in rows],
            "lengths": [len(found) for found in terms],
            "average_length": average_length,
            "weights": [
                sparse_vector(weights_of(found, length=len(found), average_length=average_length)) for found in terms
            ],
            "terms": [packed_terms(found) for found in terms],
        }
        connection.execute(queries["insert_keywords"], values)
        connection.execute(queries["insert_terms"], values)
        index_vectors(connection, tenant_id=tenant_id, collection_id=collection_id, document_id=document_id)
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


def analyser_code(language: str) -> str:
    """A language code as the index keeps it: lower case, without its region."""
    return language.lower().replace("_", "-").split("-")[0]


def packed_terms(terms: Iterable[str]) -> bytes:
    """The ids of terms in their order, four bytes each."""
    return np.fromiter(map(term_id, terms), dtype="<i4").tobytes()


def unpacked_terms(packed: bytes) -> NDArray[np.int32]:
    """The ids that `packed_terms` made."""
    return np.frombuffer(packed, dtype="<i4")
