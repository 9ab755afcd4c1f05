"""Combine several searches into a single order, with formulas over ranks and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class FusionRule:
    """The constants in the formulas which combine searches."""

    #: The constant for reciprocal rank fusion (source 003; Cormack, Clarke, Büttcher 2009).
    rank_constant: int = 60
    #: The reciprocal rank constant for combining meaning and words. With 60, a passage in tenth place on both lists
    #: would precede the first passage on a single list.
    meaning_rank_constant: int = 10
    #: Weight of a passage's rank among its language, beside words and cosine. The best passage in a different language
    #: reaches the first five if no passage shares a word with the question, and never displaces a passage with shared
    #: words.
    standing_weight: float = 0.5
    #: The weight of words grows by 1 per this many words in the question, up to a maximum.
    words_of_weight: int = 6
    most_weight_of_words: float = 2.0
    #: Least word similarity for ranking a passage without the question's words. Below it, the order by words is chance.
    least_words: float = 0.12


RULE = FusionRule()


@dataclass(frozen=True, kw_only=True)
class FusionWeights:
    """The weights for vector and keyword search, for scores and for ranks (source 003 in docs/sources.md)."""

    vector: float = 0.6
    keyword: float = 0.4
    vector_rank: float = 0.3
    keyword_rank: float = 0.2
    rank_constant: int = RULE.rank_constant


WEIGHTS = FusionWeights()


@dataclass(frozen=True)
class FusionScores:
    """The scores by rank, for vector hits (`near`) and keyword hits (`matching`). A chunk's score is the sum."""

    near: Sequence[float]
    matching: Sequence[float]
    #: Score per similarity, for a passage found by keyword alone.
    similarity: float = 0.0


def weighted_fusion(
    similarities: Sequence[float],
    keyword_scores: Sequence[float],
    weights: FusionWeights = WEIGHTS,
    *,
    is_raw: bool = False,
) -> FusionScores:
    """Return weighted scores for vector and keyword hits.

    A vector hit gets similarity · 0.6 + 0.3 / (60 + rank), a keyword hit gets BM25 · 0.4 + 0.2 / (60 + rank). This
    formula is from source 003 in docs/sources.md. Raw BM25 (10 to 30) would outweigh the similarity and is divided by
    the highest BM25; `is_raw` keeps raw BM25 like the source. A hit found only by keyword also gets the similarity's
    part of the score.
    """
    highest = 1.0 if is_raw else max(keyword_scores, default=0.0) or 1.0
    return FusionScores(
        near=[
            weights.vector * max(0.0, similarity) + weights.vector_rank / (weights.rank_constant + rank)
            for rank, similarity in enumerate(similarities, 1)
        ],
        matching=[
            weights.keyword * score / highest + weights.keyword_rank / (weights.rank_constant + rank)
            for rank, score in enumerate(keyword_scores, 1)
        ],
        similarity=weights.vector,
    )


def reciprocal_rank_fusion(
    similarities: Sequence[float], keyword_scores: Sequence[float], *, rank_constant: int = RULE.rank_constant
) -> FusionScores:
    """Return 1 / (60 + rank) for each vector and keyword hit. Ranks start at 1."""
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
    """Combine each chunk's ranks into a score: by words, by meaning, and by distance from the language's usual cosine.

    A score of 1 means first place in all three orders. A rank is `None` if the chunk is not in this order.
    """
    highest = (words_weight + 1 + RULE.standing_weight) / (RULE.meaning_rank_constant + 1)
    return [
        (words_weight * _reciprocal(words) + _reciprocal(meaning) + RULE.standing_weight * _reciprocal(standing))
        / highest
        for words, meaning, standing in zip(by_words, by_meaning, by_standing, strict=True)
    ]


def words_weight(words: int) -> float:
    """Return the weight for words relative to meaning. More topic words in the question give a higher weight."""
    return 1 + min(RULE.most_weight_of_words, words / RULE.words_of_weight)


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / (RULE.meaning_rank_constant + rank)
