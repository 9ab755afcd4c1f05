"""Postings in the database: a segment for each document, segments of like size written together into a larger one.

All of it happens within the transaction that publishes a document, under the collection's lock, so that a reader sees
a document wholly or not at all, and nothing has to run in the background.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from psycopg import Connection

from rag.retrieval.bm25.scoring import Postings, Ranges, blocks_of, postings_in
from rag.storage.sql import queries

#: So many segments of one size become one of the next. A question reads at most seven of each size.
FAN_OUT = 8
#: Postings from which a segment is of the next size; a document of 20 chunks of 1000 characters has 2,000. Those of the
#: last size, from some 2,500 passages on, are not written together any more: that would take seconds.
SIZES = (4_096, 32_768, 262_144)
#: Removed passages are taken out of their segments when they are more than this part of the others …
REMOVED_SHARE = 0.2
#: … in at least so many documents, or when so many documents have to be looked past.
REMOVED_DOCUMENTS = (16, 2_000)


class Segment(NamedTuple):
    id: int
    first_passage: int
    last_passage: int
    postings: int

    @property
    def size(self) -> int:
        """0 for that of one document, one more for each fan-out."""
        return bisect_right(SIZES, self.postings)


def add_segment(connection: Connection, *, tenant_id: str, collection_id: UUID, postings: Postings) -> None:
    """Write a segment, within the caller's transaction; nothing where there are no postings."""
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
    """Write segments together where there are enough of one size, and without removed passages where they are many.

    Within a transaction that holds the collection's lock (`lock_keywords`).
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
    """One segment instead of several; without passages that were removed, whose tombstones go with them."""
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
    # All postings of a document are in one segment: those that were left out were the last.
    gone = removed.starts[np.unique(holding[~alive])]
    if len(gone):
        connection.execute(queries["delete_tombstones"], {**where, "first_passages": gone.tolist()})
