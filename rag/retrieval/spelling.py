"""Tolerance for misspelt words: a word that no document has is read as the one next to it that the found passages have.

No dictionary is kept. The vector search finds passages by parts of words, so that what was meant is among their words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

#: Shorter words are one letter away from too many others.
SHORTEST = 4
#: From this length on a letter may be replaced: "gold" is no slip for "good", nor "Mars" for "ears".
SHORTEST_REPLACED = 5
_WORD = re.compile(r"[^\W\d_]{4,}")


def corrections(unknown: Iterable[str], passages: Iterable[str]) -> dict[str, str]:
    """For each unknown word the likeliest word of the passages that is one slip away, if there is one.

    A slip is a letter too many, missing, wrong or swapped with its neighbour: four of five misspellings (Damerau 1964).
    """
    unknown = [word for word in unknown if len(word) >= SHORTEST and word.isalpha()]
    if not unknown:
        return {}
    counts = Counter(word for passage in passages for word in _WORD.findall(passage.lower()))
    found = {}
    for word in unknown:
        close = [other for other in counts if abs(len(other) - len(word)) <= 1 and is_one_slip_away(word, other)]
        if close:
            # The beginning of a word is seldom what was mistyped.
            found[word] = max(close, key=lambda other: (_shared_start(word, other), counts[other], other))
    return found


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
