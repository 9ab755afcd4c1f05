"""What passages mean beside the words they hold: similarities of the built-in model, comparable across languages.

The model prefers passages in the question's own language: 0.05 of cosine, which is as much as lies between an answer
and anything. Within a language the order is right, so other languages are compared by how far a passage stands out
there.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

#: The constant of reciprocal ranks where meaning and words make one order. With 60 the tenth of both lists would come
#: before the first of one.
RANK_CONSTANT = 10
#: What standing out within its language counts beside words and cosine: enough for the best passage of another language
#: to be among the first five where the question's own has no word in common, and too little to displace one that has.
STANDING_WEIGHT = 0.5
#: A question of many words is found by them: so many words count once more, up to so much more.
WORDS_OF_WEIGHT, MOST_WEIGHT_OF_WORDS = 6, 2.0
#: Least similarity of words at which a passage without the question's words has a place in their order: below it, the
#: order is chance, and what is meant should not have to outweigh it.
LEAST_WORDS = 0.12
#: A language of few passages is taken to be like the others: as if so many passages of the usual kind were in it.
USUAL_PASSAGES = 10

#: Passages of other languages than the question's that are looked at besides what words and cosine find.
FROM_OTHERS = 6
#: A question that names a country is likely about documents in its language: how words begin that do, by language. In
#: scripts without spaces they may stand anywhere.
COUNTRIES = {
    "de": ("german", "deutsch", "duits", "allemagne", "allemand", "alemania", "alemán", "tedesc", "niemc", "niemiec"),
    "fr": ("france", "french", "frankreich", "französisch", "frankrijk", "frans", "français", "francia", "francj"),
    "it": ("italy", "italian", "itali", "włosk", "włoch"),
    "ja": ("japan", "japon", "giappon", "japoń"),
    "ko": ("korea", "corea", "corée", "coréen", "coreia", "coré"),
    "nl": (
        "netherlands",
        "dutch",
        "nederland",
        "niederländ",
        "niederlande",
        "pays-bas",
        "néerlandais",
        "holand",
        "holl",
    ),
}
COUNTRIES_UNSPACED = {
    "de": ("독일", "ドイツ", "德国", "ألمانيا"),
    "fr": ("프랑스", "フランス", "法国", "فرنسا"),
    "it": ("이탈리아", "イタリア", "意大利", "إيطاليا"),
    "ja": ("일본", "日本", "اليابان"),
    "ko": ("한국", "대한민국", "韓国", "韩国", "كوريا"),
    "nl": ("네덜란드", "オランダ", "荷兰", "هولندا"),
}


class MeaningHit(NamedTuple):
    """A passage near to the question by meaning, with what is usual of passages in its language."""

    chunk_id: UUID
    #: Cosine similarity; narrow: unrelated passages have 0.76 … 0.83, answers 0.84 … 0.92.
    cosine: float
    language: str
    passages: int
    mean: float
    deviation: float


@dataclass(frozen=True, kw_only=True)
class Usual:
    """The similarities of all passages of a language to one question."""

    passages: int
    mean: float
    deviation: float


def usual_by_language(hits: Sequence[MeaningHit]) -> dict[str, Usual]:
    """Return what is usual in each language that has hits."""
    return {hit.language: Usual(passages=hit.passages, mean=hit.mean, deviation=hit.deviation) for hit in hits}


def standings(hits: Sequence[MeaningHit]) -> list[float]:
    """How far each passage stands out from those of its language, in standard deviations.

    Mean and deviation of a language with few passages are drawn towards those of all, so that the best of three is not
    as good as the best of a thousand.
    """
    smoothed = _smoothed(usual_by_language(hits))
    return [
        (hit.cosine - smoothed[hit.language].mean) / smoothed[hit.language].deviation
        if smoothed[hit.language].deviation > 0
        else 0.0
        for hit in hits
    ]


def in_order(hits: Sequence[MeaningHit], language: str) -> list[MeaningHit]:
    """Return the passages best first: by cosine where some are in the question's language, else by how far they stand
    out.
    """
    if any(hit.language == language for hit in hits):
        return sorted(hits, key=lambda hit: (-hit.cosine, hit.chunk_id.int))
    return by_standing(hits)


def by_standing(hits: Sequence[MeaningHit]) -> list[MeaningHit]:
    """Return the passages of all languages by how far each stands out within its own, best first."""
    ordered = sorted(
        zip(hits, standings(hits), strict=True), key=lambda pair: (-pair[1], -pair[0].cosine, pair[0].chunk_id.int)
    )
    return [hit for hit, _ in ordered]


def named_languages(question: str) -> frozenset[str]:
    """Return the languages of the countries that a question names: it may be about documents in these."""
    text = unicodedata.normalize("NFC", question).casefold()
    words = text.split()
    begun = {name for name, stems in COUNTRIES.items() if any(word.startswith(stems) for word in words)}
    held = {name for name, parts in COUNTRIES_UNSPACED.items() if any(part in text for part in parts)}
    return frozenset(begun | held)


def from_other_languages(hits: Sequence[MeaningHit], language: str, named: Collection[str] = ()) -> list[MeaningHit]:
    """Return the passages of other languages than the question's by how far each is above what is usual in its own.

    Where the question names a country, those in its language come first. By the difference and not in deviations:
    these would prefer a language of few documents.
    """
    smoothed = _smoothed(usual_by_language(hits))
    others = [hit for hit in hits if hit.language != language]
    return sorted(
        others, key=lambda hit: (hit.language not in named, smoothed[hit.language].mean - hit.cosine, hit.chunk_id.int)
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
    highest = (words_weight + 1 + STANDING_WEIGHT) / (RANK_CONSTANT + 1)
    return [
        (words_weight * _reciprocal(words) + _reciprocal(meaning) + STANDING_WEIGHT * _reciprocal(standing)) / highest
        for words, meaning, standing in zip(by_words, by_meaning, by_standing, strict=True)
    ]


def words_weight(words: int) -> float:
    """Return what the order of the words counts beside that of meaning, by the number of words that carry topic."""
    return 1 + min(MOST_WEIGHT_OF_WORDS, words / WORDS_OF_WEIGHT)


def _reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / (RANK_CONSTANT + rank)


def _smoothed(usual: Mapping[str, Usual]) -> dict[str, Usual]:
    total = sum(item.passages for item in usual.values())
    if not total:
        return dict(usual)
    mean = sum(item.passages * item.mean for item in usual.values()) / total
    variance = sum(item.passages * item.deviation**2 for item in usual.values()) / total
    smoothed = {}
    for language, item in usual.items():
        own = item.passages / (item.passages + USUAL_PASSAGES)
        smoothed[language] = Usual(
            passages=item.passages,
            mean=own * item.mean + (1 - own) * mean,
            deviation=math.sqrt(own * item.deviation**2 + (1 - own) * variance),
        )
    return smoothed
