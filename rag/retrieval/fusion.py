"""One order from two searches: pure formulas over ranks and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar
from uuid import UUID

from rag.types import SearchResult

#: The constant of reciprocal rank fusion (source 003; Cormack, Clarke, Büttcher 2009).
RANK_CONSTANT = 60
#: Words at the beginning by which passages that cannot be the same are told apart.
FIRST_WORDS = 3


@dataclass(frozen=True)
class FusionScores:
    """What each of two searches gives its passages, best first; a passage's score is the sum of what it is given."""

    near: Sequence[float]
    matching: Sequence[float]
    #: What a similarity of 1 gives a passage that keywords alone found.
    similarity: float = 0.0


def weighted_fusion(
    similarities: Sequence[float],
    keyword_scores: Sequence[float],
    *,
    vector_weight: float = 0.6,
    keyword_weight: float = 0.4,
    vector_rank_weight: float = 0.3,
    keyword_rank_weight: float = 0.2,
    rank_constant: int = RANK_CONSTANT,
    is_raw: bool = False,
) -> FusionScores:
    """Similarity · 0.6 + 0.3 / (60 + vector rank) and BM25 · 0.4 + 0.2 / (60 + keyword rank).

    Source 003's formula, with BM25 divided by the highest of the query: raw BM25 (10 … 30) would leave the similarity
    no say. With `is_raw` it is as the document has it. Of a passage that keywords alone found the similarity counts
    too.
    """
    highest = 1.0 if is_raw else max(keyword_scores, default=0.0) or 1.0
    return FusionScores(
        near=[
            vector_weight * max(0.0, similarity) + vector_rank_weight / (rank_constant + rank)
            for rank, similarity in enumerate(similarities, 1)
        ],
        matching=[
            keyword_weight * score / highest + keyword_rank_weight / (rank_constant + rank)
            for rank, score in enumerate(keyword_scores, 1)
        ],
        similarity=vector_weight,
    )


def reciprocal_rank_fusion(
    similarities: Sequence[float], keyword_scores: Sequence[float], *, rank_constant: int = RANK_CONSTANT
) -> FusionScores:
    """1 / (60 + vector rank) and 1 / (60 + keyword rank)."""
    return FusionScores(
        near=[1 / (rank_constant + rank) for rank in range(1, len(similarities) + 1)],
        matching=[1 / (rank_constant + rank) for rank in range(1, len(keyword_scores) + 1)],
    )


class Passage(Protocol):
    """A passage found, in whatever form."""

    @property
    def chunk_id(self) -> UUID: ...
    @property
    def document_id(self) -> UUID: ...
    @property
    def title(self) -> str: ...
    @property
    def section(self) -> str: ...
    @property
    def content(self) -> str: ...


Item = TypeVar("Item", bound=Passage)


def without_repeats(found: Sequence[tuple[Item, float]], *, same_beginning: int = 0) -> list[tuple[Item, float]]:
    """Return the passages in their order with their scores, each once.

    With `same_beginning`, passages of one document whose first so many characters are the same are one (source 003:
    document and the first 100).

    Two passages are the same when they have the same text, spaces and case aside, and stand in documents of the same
    title: the same file kept twice, or a page header cut out twice. Near-twin documents keep theirs, because which of
    the two says it is part of the answer.
    """
    starts = [(passage.title.casefold(), _first_words(passage.content)) for passage, _ in found]
    alike = Counter(starts)
    seen: set[tuple[str, str]] = set()
    beginnings: set[tuple[UUID, str]] = set()
    kept = []
    for (passage, score), start in zip(found, starts, strict=True):
        # The whole text is looked at only where another may be the same.
        key = (start[0], _normal(passage.content) if alike[start] > 1 else start[1])
        beginning = (passage.document_id, passage.content[:same_beginning])
        if key in seen or (same_beginning and beginning in beginnings):
            continue
        seen.add(key)
        beginnings.add(beginning)
        kept.append((passage, score))
    return kept


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


def _first_words(text: str) -> str:
    """Return the beginning of `_normal` of a text."""
    return " ".join(text.split(None, FIRST_WORDS)[:FIRST_WORDS]).casefold()


def limited_per_document(results: Sequence[SearchResult], maximum: int) -> list[SearchResult]:
    """Return the results in their order, at most `maximum` of each document; 0 means no limit."""
    if maximum < 1:
        return list(results)
    counts: dict[object, int] = {}
    kept = []
    for result in results:
        counts[result.document_id] = counts.get(result.document_id, 0) + 1
        if counts[result.document_id] <= maximum:
            kept.append(result)
    return kept
