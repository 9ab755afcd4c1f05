"""What raises a passage beyond its scores: small pure formulas over one question's results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rag.types import SearchResult

#: Terms in the window in which the question's words should stand together: about two sentences.
WINDOW_TERMS = 60
#: How much a boost may add, as a share of the best fused score. Results hardly change between half and double of it.
CLOSENESS_WEIGHT = 0.3
NAME_WEIGHT = 0.15


def closeness(terms: Sequence[str], weights: Mapping[str, float]) -> float:
    """The weight of the question's terms that stand together in the best window of a passage.

    BM25 does not see whether the words of a question stand in one sentence or far apart.
    """
    halves: dict[int, set[str]] = {}
    for position, term in enumerate(terms):
        if term in weights:
            halves.setdefault(position // (WINDOW_TERMS // 2), set()).add(term)
    nothing: set[str] = set()
    return max(
        (sum(weights[term] for term in present | halves.get(half + 1, nothing)) for half, present in halves.items()),
        default=0.0,
    )


def naming(names: Sequence[Collection[str]], question: Collection[str]) -> list[float]:
    """For each name (the terms of a document's title or a section) the share of it that the question says, 0 … 1.

    A term counts by how few of the distinct names have it: "Plus" tells two health plans apart, "plan" does not.
    """
    distinct = {frozenset(name) for name in names}
    frequency = Counter(term for name in distinct for term in name)
    weight = {term: math.log(1 + len(distinct) / count) for term, count in frequency.items()}
    shares = []
    for name in names:
        total = sum(weight[term] for term in set(name))
        shares.append(sum(weight[term] for term in set(name) if term in question) / total if total else 0.0)
    return shares


def boosted(
    results: Sequence[SearchResult],
    *,
    closenesses: Sequence[float],
    title_shares: Sequence[float],
    section_shares: Sequence[float],
) -> list[SearchResult]:
    """The results ordered anew: words that stand together, and a named document or section, raise a passage."""
    if not results:
        return []
    best = max(r.score for r in results)
    highest = max(closenesses) or 1.0
    raised = [
        replace(r, score=r.score + best * (CLOSENESS_WEIGHT * near / highest + NAME_WEIGHT * max(title, section / 2)))
        for r, near, title, section in zip(results, closenesses, title_shares, section_shares, strict=True)
    ]
    return sorted(raised, key=lambda r: (-r.score, str(r.chunk_id)))
