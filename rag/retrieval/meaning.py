"""Compare chunks by meaning with the built-in model, across languages, in addition to words.

The model's cosine is about 0.05 higher for chunks in the question's language. This is as much as the usual difference
between an answer and other chunks. Within a language, the order is right. Therefore chunks in other languages are
compared by their distance from the usual cosine in their language.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple
from uuid import UUID

#: For a language with few passages, its usual similarity is averaged with this many passages at the overall usual
#: similarity.
USUAL_PASSAGES = 10

#: The most passages in other languages added to the results by words and cosine. More if the question names a country:
#: most passages of a statute are near, and words decide between them.
FROM_OTHER_LANGUAGES, FROM_NAMED_LANGUAGES = 6, 20
#: Weight of the cosine to the question put into words from the passage's language; the rest is the cosine to the
#: original question, because documents may use other words. From 0.2 to 0.5 the number of cited passages was the same.
OWN_WORDS = 0.5
#: Words for a country and its language, by their beginnings; in scripts without spaces they may occur anywhere. A
#: question with such a word is probably about documents in this language.
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


_PARTS = "|".join(re.escape(part) for parts in COUNTRIES_UNSPACED.values() for part in parts)
_NAMES = (
    "germany|deutschland|duitsland|allemagne|alemania|alemanha|germania|niemczech|france|frankreich|frankrijk|francia"
    "|frança|francji|italy|italien|italië|italie|italia|itália|włoszech|japan|japon|japón|giappone|japonii"
    "|korea|zuid-korea|südkorea|corea|corée|coreia|korei|netherlands|nederland|niederlanden?|pays-bas|países bajos"
    "|paesi bassi|países baixos|holandii"
)
#: "In Korea", where a rule applies; but not "in French", which is a language.
IN_A_COUNTRY = re.compile(
    rf"\b(?:in|en|em|na|w|aux?|nei)\s(?:(?:the|den|de|la|los)\s)?(?:south\s)?(?:{_NAMES})\b"
    rf"|(?:{_PARTS})(?:에서(?:는|의)?|では|で)|在(?:{_PARTS})|في (?:{_PARTS})",
    re.IGNORECASE,
)
#: Strings with letters but without words: an address, an HTML tag.
NO_WORDS = re.compile(
    r"(?:https?://|www\.)\S+|\b[\w-]{1,63}(?:\.[\w-]{2,63}){1,4}/\S*|\S{1,100}@\S{1,100}|</?[a-z][^<>]*>",
    re.IGNORECASE,
)
LETTERS = re.compile(r"[^\W\d_]+")
#: Characters of a question which are checked for words.
WORDED_CHARACTERS = 2_000


#: Characters which are rare in sentences: markup, code, paths. "401(k)", "and/or" and "z.B." do not match.
ODD = re.compile(
    r"[<>{}=*_|\\^~`]|//|/\w*/|[^\W_][;:][^\W_]|[^\W\d_]\((?![^\W\d_]{1,3}\))|[^\W\d_]{4}\.[^\W\d_]|\.\w+/"
)
#: Small letters alternating with capitals or digits: a key or an encoded file, not a word.
JUMBLED = re.compile(r"[a-z][A-Z0-9]+[a-z]+[A-Z0-9]+[a-z]+[A-Z0-9]")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
#: Lowest share of normal pieces with which a text counts as words.
WORDED_SHARE = 0.8


def is_worded(question: str) -> bool:
    """Whether a question consists of words.

    For emoji, digits, an address, a line of code or a repeated letter, the model's vector is arbitrary.
    """
    raw = NO_WORDS.sub(" ", question[:WORDED_CHARACTERS])
    text = unicodedata.normalize("NFKC", raw).casefold()
    bare = "".join(character for character in text if not unicodedata.combining(character))
    # A single character may abbreviate a sentence (U+FDFA stands for four words); a repeated letter is not a word.
    if not all(any(len(set(word)) > 1 for word in LETTERS.findall(form)) for form in (raw.casefold(), bare)):
        return False
    pieces = [piece for piece in raw.split() if LETTERS.search(piece) or ODD.search(piece)]
    # In scripts without spaces, a piece is a whole sentence.
    odd = sum(bool(ODD.search(piece) or JUMBLED.search(piece)) for piece in pieces if not UNSPACED.search(piece))
    return len(pieces) - odd >= WORDED_SHARE * len(pieces)


def is_only_an_address(question: str) -> bool:
    """Whether a question consists only of web addresses or HTML tags."""
    text = question[:WORDED_CHARACTERS]
    return bool(NO_WORDS.search(text)) and not LETTERS.search(NO_WORDS.sub(" ", text))


class MeaningHit(NamedTuple):
    """A chunk near the question in meaning, with its cosine to the question.

    `mean` and `deviation` describe all chunks' cosines in this chunk's language; `passages` counts these chunks.
    """

    chunk_id: UUID
    #: Cosine similarity. The range is narrow: 0.76 … 0.83 for unrelated passages, 0.84 … 0.92 for answers.
    cosine: float
    language: str
    passages: int
    mean: float
    deviation: float


class Cosines(NamedTuple):
    """A chunk's cosines to the original question and to the question with words in the chunk's language."""

    translated: float
    original: float


@dataclass(frozen=True, kw_only=True)
class Usual:
    """The mean and standard deviation of the cosines between a question and all chunks in a language."""

    passages: int
    mean: float
    deviation: float


def usual_by_language(hits: Sequence[MeaningHit]) -> dict[str, Usual]:
    """Return the usual cosine (mean and deviation) by language, for each language with hits."""
    return {hit.language: Usual(passages=hit.passages, mean=hit.mean, deviation=hit.deviation) for hit in hits}


def standings(hits: Sequence[MeaningHit]) -> list[float]:
    """Return each hit's distance from the language's mean cosine, in standard deviations.

    For a language with few chunks, mean and deviation are moved towards the overall values. Otherwise the best of three
    chunks would count like the best of a thousand.
    """
    smoothed = _smooth(usual_by_language(hits))
    return [
        (hit.cosine - smoothed[hit.language].mean) / smoothed[hit.language].deviation
        if smoothed[hit.language].deviation > 0
        else 0.0
        for hit in hits
    ]


def in_order(hits: Sequence[MeaningHit], language: str) -> list[MeaningHit]:
    """Return the hits sorted, best first.

    If some hits are in the question's language, the hits are sorted by cosine. Otherwise they are sorted by distance
    from the mean cosine in their language.
    """
    if any(hit.language == language for hit in hits):
        return sorted(hits, key=lambda hit: (-hit.cosine, hit.chunk_id.int))
    return by_standing(hits)


def by_standing(hits: Sequence[MeaningHit]) -> list[MeaningHit]:
    """Sort hits by their distance from the mean cosine in their language, best first."""
    ordered = sorted(
        zip(hits, standings(hits), strict=True), key=lambda pair: (-pair[1], -pair[0].cosine, pair[0].chunk_id.int)
    )
    return [hit for hit, _ in ordered]


def named_languages(question: str) -> frozenset[str]:
    """Return the languages spoken in the countries which a question names. The documents may be in these languages."""
    text = unicodedata.normalize("NFC", question).casefold()
    words = text.split()
    begun = {name for name, stems in COUNTRIES.items() if any(word.startswith(stems) for word in words)}
    unspaced = {name for name, parts in COUNTRIES_UNSPACED.items() if any(part in text for part in parts)}
    return frozenset(begun | unspaced)


def without_place(question: str) -> str:
    """Return a question without phrases like "in Korea".

    Few documents mention the country for which they apply, and these are no better answers. A question about the
    country itself ("the capital of France") stays unchanged.
    """
    remaining = IN_A_COUNTRY.sub(" ", unicodedata.normalize("NFC", question))
    return " ".join(remaining.split()) if is_worded(remaining) else question


def from_other_languages(
    hits: Sequence[MeaningHit],
    language: str,
    named: Collection[str] = (),
    translated_cosines: Mapping[UUID, Cosines] | None = None,
) -> list[MeaningHit]:
    """Return the hits in other languages, sorted by their distance from the mean cosine in their language.

    Hits in the `named` languages come first. Distances are differences between cosines: in standard deviations, a
    language with few documents would win. `translated_cosines` has each hit's cosines to the question with words
    translated into the hit's language. Translated words raise all cosines, and therefore only change the order within a
    language.
    """
    smoothed = _smooth(usual_by_language(hits))
    foreign_hits = [hit for hit in hits if hit.language != language]
    corrected_cosines = _correct_cosines(foreign_hits, translated_cosines or {})
    return sorted(
        foreign_hits,
        key=lambda hit: (
            hit.language not in named,
            smoothed[hit.language].mean - corrected_cosines.get(hit.chunk_id, hit.cosine),
            hit.chunk_id.int,
        ),
    )


def _correct_cosines(hits: Sequence[MeaningHit], translated_cosines: Mapping[UUID, Cosines]) -> dict[UUID, float]:
    by_language: dict[str, list[MeaningHit]] = {}
    for hit in hits:
        if hit.chunk_id in translated_cosines:
            by_language.setdefault(hit.language, []).append(hit)
    corrected: dict[UUID, float] = {}
    for group in by_language.values():
        cosines = [translated_cosines[hit.chunk_id] for hit in group]
        usual_gain = fmean(cosine.translated - cosine.original for cosine in cosines)
        corrected |= {
            hit.chunk_id: cosine.original + OWN_WORDS * (cosine.translated - cosine.original - usual_gain)
            for hit, cosine in zip(group, cosines, strict=True)
        }
    return corrected


def _smooth(usual: Mapping[str, Usual]) -> dict[str, Usual]:
    total = sum(item.passages for item in usual.values())
    if not total:
        return dict(usual)
    mean = sum(item.passages * item.mean for item in usual.values()) / total
    variance = sum(item.passages * item.deviation**2 for item in usual.values()) / total
    smoothed = {}
    for language, item in usual.items():
        weight = item.passages / (item.passages + USUAL_PASSAGES)
        smoothed[language] = Usual(
            passages=item.passages,
            mean=weight * item.mean + (1 - weight) * mean,
            deviation=math.sqrt(weight * item.deviation**2 + (1 - weight) * variance),
        )
    return smoothed
