"""What raises a passage beyond its scores: small pure formulas over one question's results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

#: Terms in the window in which the question's words should stand together: about two sentences.
WINDOW_TERMS = 60
#: How much a boost may add, as a share of the best fused score. Results hardly change between half and double of it.
CLOSENESS_WEIGHT = 0.3
NAME_WEIGHT = 0.15
#: A section tells passages of one document apart where its title cannot, so that the two add up.
SECTION_WEIGHT = 0.2


def closenesses(passages: Sequence[NDArray[np.int32]], weights: Mapping[int, float]) -> list[float]:
    """For each passage, its terms in their order, the weight of the question's terms together in its best window.

    BM25 does not see whether the words of a question stand in one sentence or far apart. Windows begin at every half of
    one; terms that are not of the question count for nothing.
    """
    if not passages or not weights:
        return [0.0] * len(passages)
    ends = np.cumsum([len(terms) for terms in passages])
    terms = np.concatenate(passages)
    # The question has few terms: looking for each is faster than looking each of the passages' terms up.
    places = [np.flatnonzero(terms == term) for term in weights]
    numbers = np.repeat(np.arange(len(weights)), [len(found) for found in places])
    hits = np.concatenate(places)
    owners = np.searchsorted(ends, hits, side="right")
    halves = (hits - np.concatenate([[0], ends])[owners]) // (WINDOW_TERMS // 2)
    present = np.zeros((len(passages), int(halves.max(initial=0)) + 2, len(weights)), dtype=bool)
    present[owners, halves, numbers] = True
    held = (present[:, :-1] | present[:, 1:]) @ np.array(list(weights.values()))
    return list(held.max(axis=1).tolist())


def naming(names: Sequence[Collection[str]], question: Collection[str]) -> list[float]:
    """For each name (the terms of a document's title or a section) the share of it that the question says, 0 … 1.

    A term counts by how few of the distinct names have it: "Plus" tells two health plans apart, "plan" does not. A name
    whose near twin is meant, because the question says what only that one has, has no share in what both have.
    """
    given, said = [frozenset(name) for name in names], frozenset(question)
    distinct = set(given)
    shares = dict.fromkeys(distinct, 0.0)
    if any(not said.isdisjoint(name) for name in distinct):
        frequency = Counter(term for name in distinct for term in name)
        weight = {term: math.log(1 + len(distinct) / count) for term, count in frequency.items()}
        for name in distinct - _with_twin_meant(distinct, said):
            if total := sum(weight[term] for term in name):
                shares[name] = sum(weight[term] for term in name & said) / total
    return [shares[name] for name in given]


def _with_twin_meant(names: Collection[frozenset[str]], question: frozenset[str]) -> set[frozenset[str]]:
    """The names that share half of all their terms with another, of which the question says more and they nothing."""
    said = [(other, other & question) for other in names if not other.isdisjoint(question)]
    return {
        name
        for name in names
        for other, terms in said
        if not terms <= name and (name & question) <= other and 2 * len(name & other) >= len(name | other)
    }


def raised_scores(
    scores: Sequence[float],
    *,
    closenesses: Sequence[float],
    title_shares: Sequence[float],
    section_shares: Sequence[float],
) -> list[float]:
    """The scores with what words that stand together, and a named document or section, raise them by."""
    best, highest = max(scores, default=0.0), max(closenesses, default=0.0) or 1.0
    return [
        score + best * (CLOSENESS_WEIGHT * near / highest + NAME_WEIGHT * title + SECTION_WEIGHT * section)
        for score, near, title, section in zip(scores, closenesses, title_shares, section_shares, strict=True)
    ]


# The factors of the source documents, whose figures stand in the profiles. They multiply scores of at least 0.


def recency_factor(written_on: date, today: date, *, steps: Sequence[tuple[int, float]], older: float) -> float:
    """The factor of a post's age: of the first step of so many days, else `older` (source 000, "Recency boost")."""
    age_days = (today - written_on).days
    return next((factor for days, factor in steps if age_days <= days), older)


def category_factor(categories: Iterable[str], factors: Mapping[str, float]) -> float:
    """The highest factor of a document's categories, 1 for others (source 001, "Category Boost")."""
    return max((factors.get(category.lower(), 1.0) for category in categories), default=1.0)


def year_factor(years: Iterable[int], this_year: int, factors: Sequence[float]) -> float:
    """The factor of this year, last year and so on, 1 for older and undated (source 001, "Recency Boost")."""
    ages = (max(0, this_year - year) for year in years)
    return max((factors[age] if age < len(factors) else 1.0 for age in ages), default=1.0)


def quality_factor(content: str, *, least_words: int, most_words: int, factor: float) -> float:
    """The factor of passages of medium length, 1 for others (source 001, "Chunk Quality Boost")."""
    return factor if least_words <= len(content.split()) <= most_words else 1.0


def multi_signal_score(score: float, *, category: float, year: float, quality: float) -> float:
    """score × category × year × quality (source 001, "Re-ranking Formula": 0.85 · 1.3 · 1.3 · 1.1 = 1.58)."""
    return score * category * year * quality


def priority(*, is_pinned: bool, is_important: bool) -> int:
    """0 for pinned, 1 for important, 2 for regular posts (source 000, "Priority sorting")."""
    return 0 if is_pinned else 1 if is_important else 2
