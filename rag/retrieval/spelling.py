"""Correct misspelt words: replace a word missing from the documents by the nearest word in the found passages.

No dictionary is needed. The vector search finds passages by word parts, so the intended word is among them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from rapidfuzz.distance import OSA
from rapidfuzz.process import cdist

from rag.retrieval.bm25.index import term_id
from rag.retrieval.search_query import QuestionWord, SearchQuery, TermStatistics, asked_words
from rag.text.analysers import analyse, without_particle

#: A single changed letter turns shorter words into too many other words.
SHORTEST = 4
#: From this length on a letter may be replaced: "gold" is no slip for "good", nor "Mars" for "ears".
SHORTEST_REPLACED = 5
#: The same in syllables: a Korean word with two syllables and a replaced letter is mostly a different word, like "사장"
#: and "시장".
SHORTEST_REPLACED_KOREAN = 3
#: Longer strings are not typing errors, and have as many variants with a letter left out as letters.
LONGEST = 40
_WORD = re.compile(r"[^\W\d_]{4,}")
_HANGUL = re.compile("[가-힣]{2,}")


class WrittenPassage(Protocol):
    """A found passage, reduced to its words and their language."""

    @property
    def content(self) -> str: ...
    @property
    def language(self) -> str: ...


def corrected(query: SearchQuery, statistics: TermStatistics, found: Sequence[WrittenPassage]) -> SearchQuery:
    """Return the query with words found nowhere replaced by the passages' nearest words."""
    if not query.correct_spelling:
        return query
    own, analysers = query.language or "en", {passage.language for passage in found}

    def is_known(word: QuestionWord, analyser: str) -> bool:
        terms = word.terms if analyser == own else tuple(analyse(word.text, analyser))
        # A Korean word's first term is the whole word; its syllable pairs occur in other words too.
        whole = terms[:1] if is_hangul(word.text) else terms
        return any(term_id(term) in statistics.chunks_by_term for term in whole)

    unknown = [
        word.text
        for word in asked_words(query.text, query.language, own)
        if not word.synonyms and not any(is_known(word, analyser) for analyser in analysers)
    ]
    meant = corrections(unknown, (r.content for r in found)) if unknown else {}
    if not meant:
        return query
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, meant))})\b", re.IGNORECASE)
    return replace(query, text=pattern.sub(lambda match: meant.get(match.group().lower(), match.group()), query.text))


def is_hangul(word: str) -> bool:
    """Whether a word consists of at least two Korean syllables and nothing else."""
    return _HANGUL.fullmatch(word) is not None


def corrections(unknown: Iterable[str], passages: Iterable[str]) -> dict[str, str]:
    """Map each unknown word to the likeliest word in the passages with a single slip, if any.

    A slip is a letter added, missing, wrong or swapped with its neighbour: 80 % of misspellings (Damerau 1964). Korean
    letters are the parts of syllables, and a word's particles stay as typed.
    """
    unknown = [w for w in unknown if len(w) <= LONGEST and len(_letters(w)) >= SHORTEST and w.isalpha()]
    if not unknown:
        return {}
    texts = [passage.lower() for passage in passages]
    korean = [word for word in unknown if is_hangul(word)]
    others = [word for word in unknown if not is_hangul(word)]
    return _nearest_words(others, texts) | _nearest_korean_words(korean, texts)


def _nearest_words(unknown: list[str], texts: list[str]) -> dict[str, str]:
    counts = Counter(word for text in texts for word in _WORD.findall(text)) if unknown else Counter()
    written = list(counts)
    close = {
        word: {written[i]: counts[written[i]] for i in near if is_one_slip_away(word, written[i])}
        for word, near in zip(unknown, _one_slip_away(unknown, written), strict=True)
    }
    return {word: _likeliest(word, others) for word, others in close.items() if others}


def _nearest_korean_words(unknown: list[str], texts: list[str]) -> dict[str, str]:
    counts = Counter(word for text in texts for word in _HANGUL.findall(text)) if unknown else Counter()
    # A slip is within a single syllable: without it both words are equal.
    by_rest: dict[tuple[str, str], list[str]] = defaultdict(list)
    stems = {word: without_particle(word) for word in unknown}
    for word, stem in stems.items():
        for rest in _rests(stem):
            by_rest[rest].append(word)
    lengths = sorted({len(stem) for stem in stems.values()})
    close: dict[str, Counter[str]] = {word: Counter() for word in unknown}
    for written, n in counts.items():
        near = {
            word
            for length in lengths
            if length <= len(written)
            for rest in _rests(written[:length])
            for word in by_rest.get(rest, ())
        }
        if near:
            other = without_particle(written)
            for word in near:
                if stems[word] != other and _is_korean_slip(stems[word], other):
                    close[word][other] += n
    return {
        word: _likeliest(stems[word], others) + word[len(stems[word]) :] for word, others in close.items() if others
    }


def _rests(word: str) -> list[tuple[str, str]]:
    """Return the parts before and after each syllable in a word."""
    return [(word[:i], word[i + 1 :]) for i in range(len(word))]


def _is_korean_slip(word: str, other: str) -> bool:
    letters, others = _letters(word), _letters(other)
    is_long_enough = len(word) >= SHORTEST_REPLACED_KOREAN or len(letters) != len(others)
    return is_long_enough and len(word) == len(other) and is_one_slip_away(letters, others)


def _likeliest(word: str, close: Mapping[str, int]) -> str:
    """Choose the word with the longest common beginning, which is seldom mistyped; among equals the most frequent."""
    return max(close, key=lambda other: (_shared_start(word, other), close[other], other))


def _letters(word: str) -> str:
    return unicodedata.normalize("NFD", word) if is_hangul(word) else word


def _shared_start(word: str, other: str) -> int:
    shortest = min(len(word), len(other))
    return next((i for i in range(shortest) if word[i] != other[i]), shortest)


def _one_slip_away(unknown: Sequence[str], written: Sequence[str]) -> list[list[int]]:
    """Return, for each unknown word, the positions of written words with a single slip."""
    if not unknown or not written:
        return [[] for _ in unknown]
    distances = cdist(unknown, written, scorer=OSA.distance, score_cutoff=1, dtype=np.uint8)
    return [np.flatnonzero(row == 1).tolist() for row in distances]


def is_one_slip_away(word: str, other: str) -> bool:
    """Whether inserting, removing, replacing or swapping a letter turns a word into the other."""
    if OSA.distance(word, other, score_cutoff=1) != 1:
        return False
    is_replaced = len(word) == len(other) and sorted(word) != sorted(other)
    return not is_replaced or len(word) >= SHORTEST_REPLACED
