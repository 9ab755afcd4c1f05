"""One order from two searches: pure formulas over ranks and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol
from uuid import UUID

from rag.types import SearchResult

#: The constant of reciprocal rank fusion (source 003; Cormack, Clarke, Büttcher 2009).
RANK_CONSTANT = 60
#: Words at the beginning by which passages that cannot be the same are told apart.
FIRST_WORDS = 3


class Scored(Protocol):
    """What two searches say of a passage; None where one did not find it."""

    @property
    def similarity(self) -> float | None: ...
    @property
    def vector_rank(self) -> int | None: ...
    @property
    def keyword_score(self) -> float | None: ...
    @property
    def keyword_rank(self) -> int | None: ...


def weighted_scores(
    hits: Sequence[Scored],
    *,
    vector_weight: float = 0.6,
    keyword_weight: float = 0.4,
    vector_rank_weight: float = 0.3,
    keyword_rank_weight: float = 0.2,
    rank_constant: int = RANK_CONSTANT,
) -> list[float]:
    """Similarity · 0.6 + BM25 · 0.4 + 0.3 / (60 + vector rank) + 0.2 / (60 + keyword rank) of each hit.

    Source 003's formula, with BM25 divided by the highest of the query: raw BM25 (10 … 30) would leave the similarity
    no say. A passage that one search did not find gets nothing from it, unless its score there is known.
    """
    highest = max((hit.keyword_score for hit in hits if hit.keyword_score is not None), default=0.0) or 1.0
    return [
        vector_weight * max(0.0, hit.similarity or 0.0)
        + keyword_weight * (hit.keyword_score or 0.0) / highest
        + _rank_bonus(hit.vector_rank, vector_rank_weight, rank_constant)
        + _rank_bonus(hit.keyword_rank, keyword_rank_weight, rank_constant)
        for hit in hits
    ]


def reciprocal_rank_scores(hits: Sequence[Scored], *, rank_constant: int = RANK_CONSTANT) -> list[float]:
    """1 / (60 + vector rank) + 1 / (60 + keyword rank) of each hit."""
    return [
        _rank_bonus(hit.vector_rank, 1.0, rank_constant) + _rank_bonus(hit.keyword_rank, 1.0, rank_constant)
        for hit in hits
    ]


def weighted_fusion(
    results: Sequence[SearchResult],
    *,
    vector_weight: float = 0.6,
    keyword_weight: float = 0.4,
    vector_rank_weight: float = 0.3,
    keyword_rank_weight: float = 0.2,
) -> list[SearchResult]:
    """The results by `weighted_scores`, best first."""
    scores = weighted_scores(
        results,
        vector_weight=vector_weight,
        keyword_weight=keyword_weight,
        vector_rank_weight=vector_rank_weight,
        keyword_rank_weight=keyword_rank_weight,
    )
    return _by_score(results, scores)


def reciprocal_rank_fusion(results: Sequence[SearchResult]) -> list[SearchResult]:
    """The results by `reciprocal_rank_scores`, best first."""
    return _by_score(results, reciprocal_rank_scores(results))


def without_repeats(results: Sequence[SearchResult], *, same_beginning: int = 0) -> list[SearchResult]:
    """The results in their order, each passage once.

    With `same_beginning`, passages of one document whose first so many characters are the same are one (source 003:
    document and the first 100).

    Two passages are the same when they have the same text, spaces and case aside, and stand in documents of the same
    title: the same file kept twice, or a page header cut out twice. Near-twin documents keep theirs, because which of
    the two says it is part of the answer.
    """
    starts = [(result.title.casefold(), _first_words(result.content)) for result in results]
    alike = Counter(starts)
    seen: set[tuple[str, str]] = set()
    beginnings: set[tuple[UUID, str]] = set()
    kept = []
    for result, start in zip(results, starts, strict=True):
        # The whole text is looked at only where another may be the same.
        key = (start[0], _normal(result.content) if alike[start] > 1 else start[1])
        beginning = (result.document_id, result.content[:same_beginning])
        if key in seen or (same_beginning and beginning in beginnings):
            continue
        seen.add(key)
        beginnings.add(beginning)
        kept.append(result)
    return kept


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


def _first_words(text: str) -> str:
    """The beginning of `_normal` of a text."""
    return " ".join(text.split(None, FIRST_WORDS)[:FIRST_WORDS]).casefold()


def limited_per_document(results: Sequence[SearchResult], maximum: int) -> list[SearchResult]:
    """The results in their order, at most `maximum` of each document; 0 means no limit."""
    if maximum < 1:
        return list(results)
    counts: dict[object, int] = {}
    kept = []
    for result in results:
        counts[result.document_id] = counts.get(result.document_id, 0) + 1
        if counts[result.document_id] <= maximum:
            kept.append(result)
    return kept


def _rank_bonus(rank: int | None, weight: float, constant: int) -> float:
    return 0.0 if rank is None else weight / (constant + rank)


def _by_score(results: Sequence[SearchResult], scores: Sequence[float]) -> list[SearchResult]:
    scored = [replace(result, score=score) for result, score in zip(results, scores, strict=True)]
    return sorted(scored, key=lambda result: (-result.score, str(result.chunk_id)))
