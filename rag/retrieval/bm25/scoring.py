"""Build and score postings: for each term, which chunks contain the term and how often.

Pure functions on bytes and numbers. BM25 has k1 1.5, b 0.75 and Lucene's idf (source 003 in docs/sources.md). Scores
equal the method "lucene" in bm25s, up to the constant factor k1 + 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: A collection's default k1 and b.
K1, B = 1.5, 0.75
#: Term block size: a quarter page, which Postgres keeps inside the row.
BLOCK_BYTES = 1_800
#: The largest length and frequency which a posting can store; higher values are capped.
MAXIMUM_COUNT = 32_767
#: The largest range of passage numbers for which scores are summed in an array with an element per number.
DENSE_SPAN = 1_000_000

INTEGER = np.dtype(">i4")


@dataclass(frozen=True)
class Postings:
    """Postings in parallel arrays, sorted by term and chunk number."""

    terms: NDArray[np.int32]
    passages: NDArray[np.int32]
    #: Passage length in terms · 65536 + term frequency.
    counts: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.terms)


def postings_of(passages: Sequence[NDArray[np.int32]], first_passage: int) -> Postings:
    """Build postings from each chunk's term ids. The first chunk gets the number `first_passage`."""
    lengths = np.array([len(terms) for terms in passages], dtype=np.int64)
    owners = np.repeat(np.arange(len(passages)), lengths)
    terms = np.concatenate([np.empty(0, np.int32), *passages]).astype(np.int64)
    keys, frequencies = np.unique(terms << 32 | owners, return_counts=True)
    owners = keys & 0xFFFFFFFF
    counts = np.minimum(lengths[owners], MAXIMUM_COUNT) << 16 | np.minimum(frequencies, MAXIMUM_COUNT)
    return Postings((keys >> 32).astype(np.int32), (owners + first_passage).astype(np.int32), counts.astype(np.int32))


def blocks_of(postings: Postings) -> Iterator[tuple[int, bytes]]:
    """Yield a segment's blocks, each with its first term. The comment on `keyword_blocks` describes the format."""
    if not len(postings):
        return
    terms, starts, sizes = np.unique(postings.terms, return_index=True, return_counts=True)
    records = np.stack([postings.passages, postings.counts], axis=1)
    term_bytes = 8 + 8 * sizes
    block = (np.cumsum(term_bytes) - term_bytes) // BLOCK_BYTES
    firsts = np.flatnonzero(np.diff(block, prepend=-1)).tolist()
    for first, end in zip(firsts, [*firsts[1:], len(terms)], strict=True):
        until = np.cumsum(sizes[first:end])
        block_records = records[starts[first] : starts[first] + until[-1]]
        values = np.concatenate([[end - first], terms[first:end], until, block_records.ravel()])
        yield int(terms[first]), values.astype(INTEGER).tobytes()


def postings_in(blocks: Iterable[bytes]) -> Postings:
    """Merge postings from the blocks in several segments, sorted by term and passage."""
    terms, records = [np.empty(0, np.int64)], [np.empty((0, 2), np.int64)]
    for data in blocks:
        values = np.frombuffer(data, INTEGER).astype(np.int64)
        count = values[0]
        terms.append(np.repeat(values[1 : 1 + count], np.diff(values[1 + count : 1 + 2 * count], prepend=0)))
        records.append(values[1 + 2 * count :].reshape(-1, 2))
    term, record = np.concatenate(terms), np.concatenate(records)
    order = np.argsort(term << 32 | record[:, 0])
    return Postings(term[order].astype(np.int32), record[order, 0].astype(np.int32), record[order, 1].astype(np.int32))


@dataclass(frozen=True)
class Ranges:
    """Disjoint integer ranges, each from `starts` (inclusive) to `ends` (exclusive)."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> Ranges:
        """Build ranges from pairs (first number, length)."""
        rows = np.array(sorted(ranges), dtype=np.int64).reshape(-1, 2)
        return cls(rows[:, 0], rows[:, 0] + rows[:, 1])

    def holding(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each number, the containing range's index, or -1 if no range contains the number."""
        if not len(self.starts):
            return np.full(len(numbers), -1)
        indexes = np.searchsorted(self.starts, numbers, side="right") - 1
        return np.where(numbers < self.ends[indexes], indexes, -1)


@dataclass(frozen=True)
class Matches:
    """All postings for a question's terms, without removed documents.

    `places` identify chunks: the chunk's number in its collection, plus 2^32 · the collection's position in the scope.
    """

    #: Passage count per term; terms without a passage are missing.
    passages_by_term: Mapping[int, int]
    terms: NDArray[np.int64]
    places: NDArray[np.int64]
    counts: NDArray[np.int64]


def matches_in(blocks: Iterable[tuple[int, int, bytes]], removed: Ranges) -> Matches:
    """Collect the postings for a question's terms from blocks (collection position, term, bytes).

    Postings in the chunk ranges `removed` are left out.
    """
    records, offsets, terms, sizes = list[bytes](), list[int](), list[int](), list[int]()
    # Sorted, because the order decides how a sum is rounded.
    for position, query_term, data in sorted(blocks, key=lambda block: block[:2]):
        start, end = _records_of(query_term, data)
        if start < end:
            records.append(data[start:end])
            offsets.append(position << 32)
            terms.append(query_term)
            sizes.append((end - start) // 8)
    both = np.frombuffer(b"".join(records), INTEGER).reshape(-1, 2).astype(np.int64)
    part = np.repeat(np.arange(len(sizes)), sizes)
    places, counts = both[:, 0] + np.array(offsets, np.int64)[part], both[:, 1]
    if len(removed.starts):
        alive = removed.holding(places) < 0
        part, places, counts = part[alive], places[alive], counts[alive]
    passages: Counter[int] = Counter()
    for term, number in zip(terms, np.bincount(part, minlength=len(terms)).tolist(), strict=True):
        if number:
            passages[term] += number
    return Matches(passages, np.array(terms, np.int64)[part], places, counts)


def _records_of(term: int, block: bytes) -> tuple[int, int]:
    """Return a term's start and end position in a block, in bytes. Both are equal if the block lacks the term."""
    count = int.from_bytes(block[:4], "big")
    after, encoded_term = 4 + 4 * count, term.to_bytes(4, "big")
    at = block.find(encoded_term, 4, after)
    while at > 0 and at % 4:  # The match spans two neighbouring terms.
        at = block.find(encoded_term, at + 1, after)
    if at < 0:
        return 0, 0

    def until(place: int) -> int:
        return after + 4 * count + 8 * int.from_bytes(block[place : place + 4], "big")

    return until(at + 4 * count - 4) if at > 4 else after + 4 * count, until(at + 4 * count)


@dataclass(frozen=True, kw_only=True)
class Bm25:
    """BM25's parameters: how many chunks are searched, the average chunk length in terms, k1 and b."""

    chunks: float
    average_length: float
    k1: float = K1
    b: float = B


def best_of(
    matches: Matches,
    formula: Bm25,
    *,
    allowed: Ranges | None,
    limit: int,
    weights: Mapping[int, float] | None = None,
) -> list[tuple[int, float]]:
    """Return (place, BM25 score) for the best chunks, best first.

    Chunks with equal scores are in indexing order. `allowed` restricts the chunks, but the idf is still computed over
    the whole scope. `weights` are by term, by default 1.
    """
    terms, places, counts = matches.terms, matches.places, matches.counts
    if allowed is not None:
        among = allowed.holding(places) >= 0
        terms, places, counts = terms[among], places[among], counts[among]
    if not len(places):
        return []
    distinct_terms = sorted(matches.passages_by_term)
    counted = weights or {}
    idfs = np.array(
        [
            counted.get(t, 1.0) * inverse_document_frequency(matches.passages_by_term[t], formula.chunks)
            for t in distinct_terms
        ]
    )
    frequencies = (counts & 0xFFFF).astype(np.float64)
    k1, b = formula.k1, formula.b
    norms = k1 * (1 - b) + (k1 * b / formula.average_length) * (counts >> 16)
    shares = idfs[np.searchsorted(distinct_terms, terms)] * (frequencies * (k1 + 1) / (frequencies + norms))
    least = int(places.min())
    if int(places.max()) - least < DENSE_SPAN:
        scores = np.bincount(places - least, shares)
        named = None
    else:
        named, position = np.unique(places, return_inverse=True)
        scores = np.bincount(position, shares)
    if limit < len(scores):
        # Keep all places which tie with the last; the sort below decides between them.
        least_score = np.partition(scores, -limit)[-limit]
        candidates = np.flatnonzero(scores >= max(least_score, np.finfo(float).tiny))
    else:
        candidates = np.flatnonzero(scores > 0)
    chosen = candidates[np.argsort(-scores[candidates], kind="stable")[:limit]]
    at = chosen + least if named is None else named[chosen]
    return list(zip(at.tolist(), scores[chosen].tolist(), strict=True))


def inverse_document_frequency(chunks_with_term: float, chunks: float) -> float:
    """Return Lucene's idf: ln(1 + (N - n + 0.5) / (n + 0.5)), never negative."""
    return math.log(1 + (chunks - chunks_with_term + 0.5) / (chunks_with_term + 0.5))
