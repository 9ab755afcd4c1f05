"""Measure how many of the question's words a sentence holds, by their rarity."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from rag.answering.extractive.rule import RULE
from rag.answering.quotations import LONGEST_SENTENCE, CandidateSentence


def rarity(asked: frozenset[str], candidates: Sequence[CandidateSentence]) -> dict[str, float]:
    """Weight each question term from 1 to 2 by its idf (Lucene's formula) over the sentences.

    The first half of the weight is equal for all terms. The search found the passages by the question's subject, so the
    subject's words are frequent in them, while a chance word from the question is rare. The terms are sorted,
    because rounding depends on the order of a sum.
    """
    counts = Counter(term for candidate in candidates for term in candidate.terms & asked)
    total = len(candidates)
    rarest = math.log(1 + (total + 0.5) / 0.5)
    return {
        term: 1 + math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5)) / rarest for term in sorted(asked)
    }


def weight_of(weights: dict[str, float], terms: frozenset[str]) -> float:
    return sum(weight for term, weight in weights.items() if term in terms)


def own_terms(candidate: CandidateSentence, weights: dict[str, float]) -> frozenset[str]:
    """Return the terms a sentence adds to its document's title, or all terms if the title holds the whole question."""
    rest = candidate.terms - candidate.title
    return rest if weights.keys() - candidate.title else candidate.terms


def said_near(candidate: CandidateSentence) -> frozenset[str]:
    """Return the terms of a sentence and the heading right above; a passage may hold several sections."""
    is_tabular = candidate.kind in ("row", "column")
    return candidate.terms | (candidate.heading if is_tabular else candidate.under | candidate.title)


def shares_of_words(
    candidates: Sequence[CandidateSentence],
    everything: Sequence[CandidateSentence],
    weights: dict[str, float],
    subjects: Sequence[frozenset[str]],
    passages: int,
) -> dict[CandidateSentence, float]:
    """Return the share of the question's words in each sentence, 0 … 1."""
    total = sum(weights.values()) or 1.0
    held = [
        weight_of(weights, frozenset().union(*(c.terms | c.heading for c in everything if c.passage == place)))
        for place in range(passages)
    ]
    most = max(held) or 1.0
    # The same words count more in a passage which also covers the rest of the question.
    named = max((c.title & weights.keys() for c in candidates), key=lambda terms: weight_of(weights, terms))
    return {c: _points(c, weights, named, subjects) / total * held[c.passage] / most for c in candidates}


def _points(
    candidate: CandidateSentence, weights: dict[str, float], named: frozenset[str], subjects: Sequence[frozenset[str]]
) -> float:
    """`named` are the question's terms in the document title which holds most of them."""
    # A subject named in the document's title adds nothing in a sentence.
    said = candidate.terms | candidate.heading
    torn = frozenset().union(*(expression for expression in subjects if not expression <= said))
    own = weight_of(weights, own_terms(candidate, weights))
    own -= (1 - RULE.part_of_expression) * weight_of(weights, own_terms(candidate, weights) & torn)
    if not own or len(candidate.text) > 2 * LONGEST_SENTENCE:
        return 0.0
    above = weight_of(weights, candidate.heading - own_terms(candidate, weights))
    # A very short unit says nothing; a very long unit is mostly about something else.
    length = len(candidate.text.split()) if candidate.kind in ("row", "column") else len(candidate.terms)
    brevity = min(1.0, length / 5) / (1 + max(0, length - 30) / 40)
    value = candidate.value * (RULE.figure_value if candidate.figures else 1.0)
    if named - candidate.title - candidate.terms:
        value *= RULE.other_document_value
    return (own + RULE.heading_weight * above) * brevity * value * (RULE.next_passage**candidate.passage)
