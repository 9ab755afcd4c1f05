"""Tolerance for misspelt words: a word that no document has is read as the one next to it that the found passages have.

No dictionary is kept. The vector search finds passages by parts of words, so that what was meant is among their words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

from rag.retrieval.analysers import without_particle

#: Shorter words are one letter away from too many others.
SHORTEST = 4
#: From this length on a letter may be replaced: "gold" is no slip for "good", nor "Mars" for "ears".
SHORTEST_REPLACED = 5
#: The same in syllables: two with one letter replaced are mostly another word, as "사장" is for "시장".
SHORTEST_REPLACED_KOREAN = 3
_WORD = re.compile(r"[^\W\d_]{4,}")
_HANGUL = re.compile("[가-힣]{2,}")


def is_hangul(word: str) -> bool:
    """Whether a word is written in Korean syllables alone, and has more than one."""
    return _HANGUL.fullmatch(word) is not None


def corrections(unknown: Iterable[str], passages: Iterable[str]) -> dict[str, str]:
    """For each unknown word the likeliest word of the passages that is one slip away, if there is one.

    A slip is a letter too many, missing, wrong or swapped with its neighbour: four of five misspellings (Damerau 1964).
    The letters of Korean are those that its syllables are made of, and the particles of a word stay as they were typed.
    """
    unknown = [word for word in unknown if len(_letters(word)) >= SHORTEST and word.isalpha()]
    if not unknown:
        return {}
    texts = [passage.lower() for passage in passages]
    korean = [word for word in unknown if is_hangul(word)]
    others = [word for word in unknown if not is_hangul(word)]
    return _nearest_words(others, texts) | _nearest_korean_words(korean, texts)


def _nearest_words(unknown: list[str], texts: list[str]) -> dict[str, str]:
    counts = Counter(word for text in texts for word in _WORD.findall(text)) if unknown else Counter()
    found = {}
    for word in unknown:
        close = {o: n for o, n in counts.items() if abs(len(o) - len(word)) <= 1 and is_one_slip_away(word, o)}
        if close:
            found[word] = _likeliest(word, close)
    return found


def _nearest_korean_words(unknown: list[str], texts: list[str]) -> dict[str, str]:
    counts = Counter(word for text in texts for word in _HANGUL.findall(text)) if unknown else Counter()
    found = {}
    for word in unknown:
        stem = without_particle(word)
        close: Counter[str] = Counter()
        for written, n in counts.items():
            # A slip is within one syllable: the others are the same.
            if sum(map(str.__ne__, stem, written)) == 1 and _is_korean_slip(stem, other := without_particle(written)):
                close[other] += n
        if close:
            found[word] = _likeliest(stem, close) + word[len(stem) :]
    return found


def _is_korean_slip(word: str, other: str) -> bool:
    letters, others = _letters(word), _letters(other)
    is_long_enough = len(word) >= SHORTEST_REPLACED_KOREAN or len(letters) != len(others)
    return is_long_enough and len(word) == len(other) and is_one_slip_away(letters, others)


def _likeliest(word: str, close: Mapping[str, int]) -> str:
    """The beginning of a word is seldom what was mistyped; of equal ones the most frequent."""
    return max(close, key=lambda other: (_shared_start(word, other), close[other], other))


def _letters(word: str) -> str:
    return unicodedata.normalize("NFD", word) if is_hangul(word) else word


def _shared_start(word: str, other: str) -> int:
    shortest = min(len(word), len(other))
    return next((i for i in range(shortest) if word[i] != other[i]), shortest)


def is_one_slip_away(word: str, other: str) -> bool:
    """Whether one letter inserted, left out, replaced or swapped with its neighbour makes one word the other."""
    if word == other or abs(len(word) - len(other)) > 1:
        return False
    shortest = min(len(word), len(other))
    start = _shared_start(word, other)
    end = 0
    while end < shortest - start and word[-1 - end] == other[-1 - end]:
        end += 1
    left, right = word[start : len(word) - end], other[start : len(other) - end]
    if len(left) == len(right) == 1:
        return len(word) >= SHORTEST_REPLACED
    return (len(left) <= 1 and len(right) <= 1) or (len(left) == 2 and left == right[::-1])
