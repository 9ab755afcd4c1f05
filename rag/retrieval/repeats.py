"""Passages that say the same: a document and its older version, or a form printed on many pages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.types import SearchResult

#: Words in a row that are compared, and the share of them that near repeats have in common.
SHINGLE_WORDS = 3
SAME = 0.8
_WORD = re.compile(r"\w+")


def without_near_repeats(results: Sequence[SearchResult]) -> list[SearchResult]:
    """The results in their order without those that repeat an earlier one almost word by word.

    Only passages of documents with the same title repeat each other: of near-twin documents, such as two health plans,
    which one says it is part of the answer. Passages with other figures are kept, because those are what changed.
    """
    kept: list[SearchResult] = []
    seen: list[tuple[str, frozenset[str], frozenset[tuple[str, ...]]]] = []
    for result in results:
        words = _WORD.findall(result.content.casefold())
        figures = frozenset(word for word in words if any(map(str.isdigit, word)))
        parts = shingles(words)
        title = result.title.casefold()
        if any(title == t and figures == f and likeness(parts, p) >= SAME for t, f, p in seen):
            continue
        seen.append((title, figures, parts))
        kept.append(result)
    return kept


def shingles(words: Sequence[str]) -> frozenset[tuple[str, ...]]:
    """Every three words in a row; all words at once where there are fewer."""
    last = max(1, len(words) - SHINGLE_WORDS + 1)
    return frozenset(tuple(words[i : i + SHINGLE_WORDS]) for i in range(last))


def likeness(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    """Jaccard's index: what both have of what either has, 0 … 1."""
    # Sets of very different size cannot be alike; this spares most of the comparisons.
    if min(len(one), len(other)) < SAME * max(len(one), len(other)):
        return 0.0
    return len(one & other) / len(one | other)
