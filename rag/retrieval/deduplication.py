"""Passages that say the same: a document and its older version, or a form printed on many pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from rag.types import SearchResult

#: Words in a row that are compared, and the share of them that near repeats have in common.
SHINGLE_WORDS = 3
SAME = 0.8
_WORD = re.compile(r"\w+")
_FIGURE = re.compile(r"\b[^\W\d]*\d\w*")


def without_near_repeats(results: Sequence[SearchResult]) -> list[SearchResult]:
    """Return the results in their order without those that repeat an earlier one almost word by word.

    Only passages of documents with the same title repeat each other: of near-twin documents, such as two health plans,
    which one says it is part of the answer. Passages with other figures are kept, because those are what changed.
    """
    kept: list[SearchResult] = []
    # By title and figures; only passages that share both have to be taken apart and compared.
    seen: dict[tuple[str, frozenset[str]], list[SearchResult]] = {}
    for result in results:
        alike = seen.setdefault((result.title.casefold(), frozenset(_FIGURE.findall(result.content))), [])
        if any(likeness(shingles(result.content), shingles(other.content)) >= SAME for other in alike):
            continue
        alike.append(result)
        kept.append(result)
    return kept


@lru_cache(maxsize=500)
def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Every three words in a row; all words at once where there are fewer."""
    words = _WORD.findall(text.casefold())
    if len(words) < SHINGLE_WORDS:
        return frozenset([tuple(words)])
    return frozenset(zip(*(words[i:] for i in range(SHINGLE_WORDS)), strict=False))


def likeness(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    """Jaccard's index: what both have of what either has, 0 … 1."""
    # Sets of very different size cannot be alike; this spares most of the comparisons.
    if min(len(one), len(other)) < SAME * max(len(one), len(other)):
        return 0.0
    return len(one & other) / len(one | other)
