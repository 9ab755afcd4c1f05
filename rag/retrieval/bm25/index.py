"""Index passages' terms for keyword search, in segments which are merged when they grow."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection

from rag.retrieval.bm25.scoring import Postings, Ranges, blocks_of, postings_in, postings_of
from rag.retrieval.known_by import known_by
from rag.storage.sql import queries
from rag.text.analysers import analyse, analyser_code

#: The highest term number: with a billion numbers, two words seldom share a number.
MAXIMUM_TERM_ID = 1_000_000_000


def tokenize(text: str, language: str) -> list[str]:
    """Split a text into index terms without stopwords. Chunks and questions are split in the same way.

    `language` is an ISO 639-1 code ("nl", "ko", "pt-BR"). Words in an unknown language are not stemmed.
    """
    return analyse(text, language)


def contextual_text(title: str, section: str, content: str) -> str:
    """Return the text which is embedded and indexed for a passage: document title, section path, passage.

    Titles are often the only difference between similar documents. Readers see the passage alone.
    """
    return "\n".join(part for part in (title.strip(), section.strip(), content) if part)


@lru_cache(maxsize=100_000)
def term_id(term: str) -> int:
    """Hash a term to a stable number, 1 … 1,000,000,000; no dictionary is needed."""
    return int.from_bytes(blake2b(term.encode(), digest_size=8).digest(), "big") % MAXIMUM_TERM_ID + 1


def index_document(connection: Connection, *, tenant_id: str, collection_id: UUID, document_id: UUID) -> int:
    """Index a document's chunks in the caller's transaction, and return the chunk count."""
    return index_documents(connection, tenant_id=tenant_id, collection_id=collection_id, document_ids=[document_id])


def index_documents(
    connection: Connection, *, tenant_id: str, collection_id: UUID, document_ids: Sequence[UUID]
) -> int:
    """Index the chunks of a collection's documents in the caller's transaction, and return the chunk count.

    Replaces earlier entries. Writes a segment with all keywords, each chunk's terms in order and, for dense embedders,
    each vector's sign bits. Terms come from `contextual_text` with title and folder, in the document's language,
    else the collection's. A database trigger updates the counts per collection. Other transactions for this collection
    wait until this transaction ends.
    """
    scope: dict[str, Any] = {"tenant_id": tenant_id, "collection_id": collection_id}
    where: dict[str, Any] = {**scope, "document_ids": list(document_ids)}
    with connection.pipeline():
        connection.execute(queries["lock_keywords"], scope)
        remove_documents(connection, tenant_id=tenant_id, document_ids=document_ids)
        rows = connection.execute(queries["chunks_to_index"], where).fetchall()
        if not rows:
            return 0
        number = connection.execute(queries["number_passages"], {**scope, "passages": len(rows)})
        terms = [
            term_ids(contextual_text(known_by(title, folder), section, content), language)
            for _, _, title, folder, section, content, language in rows
        ]
        first_passage = (number.fetchone() or (0,))[0]
        owners = [row[0] for row in rows]
        starts = [n for n, owner in enumerate(owners) if n == 0 or owner != owners[n - 1]]
        spans = list(pairwise([*starts, len(rows)]))
        values = {
            **where,
            "first_passage": first_passage,
            "indexed_ids": [owners[start] for start in starts],
            "languages": [analyser_code(rows[start][-1]) for start in starts],
            "first_passages": [first_passage + start for start in starts],
            "tokens": [sum(map(len, terms[start:end])) for start, end in spans],
            "passages": [end - start for start, end in spans],
            "chunk_ids": [row[1] for row in rows],
            "owner_ids": owners,
            "terms": [packed.tobytes() for packed in terms],
        }
        connection.execute(queries["insert_keywords"], values)
        connection.execute(queries["insert_terms"], values)
        connection.execute(queries["insert_bits"], where)
        add_segment(connection, **scope, postings=postings_of(terms, first_passage))
        compact(connection, **scope)
    return len(rows)


def remove_document(connection: Connection, *, tenant_id: str, collection_id: UUID, document_id: UUID) -> None:
    """Remove a document from the keyword search, in the caller's transaction. The chunks are kept."""
    remove_documents(connection, tenant_id=tenant_id, document_ids=[document_id])


def remove_documents(connection: Connection, *, tenant_id: str, document_ids: Sequence[UUID]) -> None:
    """Remove documents in any collections from the search, in the caller's transaction. The chunks are kept."""
    where = {"tenant_id": tenant_id, "document_ids": list(document_ids)}
    for name in ("delete_keywords", "delete_terms", "delete_bits"):
        connection.execute(queries[name], where)


def index_vectors(connection: Connection, *, tenant_id: str, collection_id: UUID, document_id: UUID) -> None:
    """Write the sign bits for a document's dense vectors again, in the caller's transaction."""
    where = {"tenant_id": tenant_id, "collection_id": collection_id, "document_ids": [document_id]}
    connection.execute(queries["delete_bits"], where)
    connection.execute(queries["insert_bits"], where)


def term_ids(text: str, language: str) -> NDArray[np.int32]:
    """Return the term ids of a text in order, as little-endian 32-bit integers."""
    return np.fromiter(map(term_id, tokenize(text, language)), dtype="<i4")


def packed_terms(terms: Iterable[str]) -> bytes:
    """Pack term ids in order into bytes, four for each."""
    return np.fromiter(map(term_id, terms), dtype="<i4").tobytes()


def unpacked_terms(packed: bytes) -> NDArray[np.int32]:
    """Return the term ids from the bytes which `packed_terms` returned."""
    return np.frombuffer(packed, dtype="<i4")


#: Merge this many segments into the next size. A question reads at most seven segments per size.
FAN_OUT = 8
#: Posting counts at which a segment has the next size; a document with 20 chunks, 1000 characters each, has 2,000.
#: Segments in the last size (2,500 passages and more) are not merged, because merging takes seconds.
SIZES = (4_096, 32_768, 262_144)
#: A segment is rewritten without removed passages when these exceed this share of the remaining passages …
REMOVED_SHARE = 0.2
#: … in at least 16 documents, or when a search has to skip 2,000 documents.
REMOVED_DOCUMENTS = (16, 2_000)


class Segment(NamedTuple):
    id: int
    first_passage: int
    last_passage: int
    postings: int

    @property
    def size(self) -> int:
        """Return the size class: 0 for a single document's segment, higher after each merge."""
        return bisect_right(SIZES, self.postings)


def add_segment(connection: Connection, *, tenant_id: str, collection_id: UUID, postings: Postings) -> None:
    """Write a segment in the caller's transaction. Empty `postings` are not written."""
    blocks = list(blocks_of(postings))
    if not blocks:
        return
    connection.execute(
        queries["insert_segment"],
        {
            "tenant_id": tenant_id,
            "collection_id": collection_id,
            "first_passage": int(postings.passages.min()),
            "last_passage": int(postings.passages.max()),
            "postings": len(postings),
            "first_terms": [term for term, _ in blocks],
            "data": [data for _, data in blocks],
        },
    )


def compact(connection: Connection, *, tenant_id: str, collection_id: UUID) -> None:
    """Merge segments if enough have the same size, and rewrite segments with many removed passages.

    The caller's transaction must hold the collection's lock (`lock_keywords`).
    """
    where = {"tenant_id": tenant_id, "collection_id": collection_id}
    segments = [Segment(*row) for row in connection.execute(queries["segments"], where).fetchall()]
    for size in range(len(SIZES)):
        alike = [segment for segment in segments if segment.size == size]
        if len(alike) >= FAN_OUT:
            _write_together(connection, where, alike)
            segments = [Segment(*row) for row in connection.execute(queries["segments"], where).fetchall()]
    removed = connection.execute(queries["removed_passages"], where).fetchall()
    if not removed:
        return
    fewest, most = REMOVED_DOCUMENTS
    total = connection.execute(queries["keyword_total"], where).fetchone()
    share = sum(passages for _, passages in removed) / max(1, total[0] if total else 0)
    if len(removed) > most or (len(removed) >= fewest and share > REMOVED_SHARE):
        for segment in segments:
            if any(first <= segment.last_passage and first + n > segment.first_passage for first, n in removed):
                _write_together(connection, where, [segment])


def _write_together(connection: Connection, where: dict[str, Any], segments: Sequence[Segment]) -> None:
    """Merge segments, and drop the chunks removed from the search."""
    parameters = {**where, "segment_ids": [segment.id for segment in segments]}
    blocks = connection.execute(queries["take_blocks"], parameters, binary=True).fetchall()
    connection.execute(queries["delete_segments"], parameters)
    postings = postings_in(data for (data,) in blocks)
    removed = Ranges.of(connection.execute(queries["removed_passages"], where).fetchall())
    holding = removed.holding(postings.passages.astype(np.int64))
    alive = holding < 0
    add_segment(
        connection,
        **where,
        postings=Postings(postings.terms[alive], postings.passages[alive], postings.counts[alive]),
    )
    # A document's postings are all in a single segment, so their tombstones are no longer needed.
    first_passages = removed.starts[np.unique(holding[~alive])]
    if len(first_passages):
        connection.execute(queries["delete_tombstones"], {**where, "first_passages": first_passages.tolist()})
