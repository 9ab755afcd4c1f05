"""Make one order of several searches: pure formulas over ranks and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: The constant of reciprocal rank fusion (source 003; Cormack, Clarke, Büttcher 2009).
RANK_CONSTANT = 60
#: The constant of reciprocal ranks where meaning and words make one order. With 60 the tenth of both lists would come
#: before the first of one.
MEANING_RANK_CONSTANT = 10
#: What standing out within its language counts beside words and cosine: enough for the best passage of another language
#: to be among the first five where the question's own has no word in common, and too little to displace one that has.
STANDING_WEIGHT = 0.5
#: A question of many words is found by them: so many words count once more, up to so much more.
WORDS_OF_WEIGHT, MOST_WEIGHT_OF_WORDS = 6, 2.0
#: Least similarity of words at which a passage without the question's words has a place in their order: below it, the
#: order is chance, and what is meant should not have to outweigh it.
LEAST_WORDS = 0.12


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


def fused_scores(
    by_words: Sequence[int | None],
    by_meaning: Sequence[int | None],
    by_standing: Sequence[int | None],
    *,
    words_weight: float = 1.0,
) -> list[float]:
    """Return the scores of passages by their ranks in three orders, None where they are not in one; 1 for the first
    of all.
    """
    highest = (words_weight + 1 + STANDING_WEIGHT) / (MEANING_RANK_CONSTANT + 1)
    return [
        (words_weight * _reciprocal(words) + _reciprocal(meaning) + STANDING_WEIGHT * _reciprocal(standing)) / highest
        for words, meaning, standing in zip(by_words, by_meaning, by_standing, strict=True)
    ]


def words_weight(words: int) -> float:
    """Return what the order of the words counts beside that of meaning, by the number of words that carry topic."""
    return 1 + min(MOST_WEIGHT_OF_WORDS, words / WORDS_OF_WEIGHT)


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / (MEANING_RANK_CONSTANT + rank)
