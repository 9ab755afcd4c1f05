"""Measure the share of the question's words in a sentence, weighted by rarity."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from rag.answering.extractive.rule import RULE
from rag.answering.quotations import LONGEST_SENTENCE, CandidateSentence


def rarity(question_terms: frozenset[str], candidates: Sequence[CandidateSentence]) -> dict[str, float]:
    """Return a weight from 1 to 2 for each question term: 1 plus the idf (Lucene's formula), scaled to 0 … 1.

    The idf is only half the weight. The candidates come from a search for the question: most contain the subject's
    terms, and a rare term may be unimportant. The terms are sorted, because a sum's rounding depends on the order.
    """
    counts = Counter(term for candidate in candidates for term in candidate.terms & question_terms)
    total = len(candidates)
    rarest = math.log(1 + (total + 0.5) / 0.5)
    return {
        term: 1 + math.log(1 + (total - counts[term] + 0.5) / (counts[term] + 0.5)) / rarest
        for term in sorted(question_terms)
    }


def weigh_synonyms(weights: dict[str, float], original: dict[str, float]) -> dict[str, float]:
    """Lower the weights for synonyms. Together, synonyms then weigh no more than the replaced words.

    "Annual leave" for "vacation" would otherwise weigh double.
    """
    replaced = sum(weight for term, weight in original.items() if term not in weights)
    new = sum(weight for term, weight in weights.items() if term not in original)
    factor = min(1.0, replaced / new) if replaced and new else 1.0
    return {term: weight * (1.0 if term in original else factor) for term, weight in weights.items()}


def weight_of(weights: dict[str, float], terms: frozenset[str]) -> float:
    return sum(weight for term, weight in weights.items() if term in terms)


def own_terms(candidate: CandidateSentence, weights: dict[str, float]) -> frozenset[str]:
    """Return the sentence's terms which are not in the document's title.

    If the title has all the question's words, returns all terms.
    """
    rest = candidate.terms - candidate.title
    return rest if weights.keys() - candidate.title else candidate.terms


def terms_near(candidate: CandidateSentence) -> frozenset[str]:
    """Return the terms in a sentence, in the document's title and in the nearest heading.

    For a table row or column, terms in all headings above replace title and nearest heading.
    """
    is_tabular = candidate.kind in ("row", "column")
    return candidate.terms | (candidate.heading if is_tabular else candidate.under | candidate.title)


def shares_of_words(
    candidates: Sequence[CandidateSentence],
    everything: Sequence[CandidateSentence],
    weights: dict[str, float],
    subjects: Sequence[frozenset[str]],
    passages: int,
) -> dict[CandidateSentence, float]:
    """Return the share (0 to 1) of the question's words which are in each sentence, weighted by rarity.

    `everything` also holds the sentences which cannot be quoted. `subjects` are the terms for each subject in the
    question. `passages` is the passage count.
    """
    total = sum(weights.values()) or 1.0
    passage_weights = [
        weight_of(weights, frozenset().union(*(c.terms | c.heading for c in everything if c.passage == place)))
        for place in range(passages)
    ]
    most = max(passage_weights) or 1.0
    # Matching words count more in a passage which also has the rest of the question.
    named = max((c.title & weights.keys() for c in candidates), key=lambda terms: weight_of(weights, terms))
    return {c: _points(c, weights, named, subjects) / total * passage_weights[c.passage] / most for c in candidates}


def value_of(candidate: CandidateSentence) -> float:
    """Return the factor for a sentence's points, which is higher for sentences with numbers if the question asks for
    numbers.
    """
    return candidate.value * (RULE.figure_value if candidate.figures else 1.0)


def _points(
    candidate: CandidateSentence, weights: dict[str, float], named: frozenset[str], subjects: Sequence[frozenset[str]]
) -> float:
    # A subject in the document's title gives a sentence no points.
    terms = candidate.terms | candidate.heading
    torn = frozenset().union(*(expression for expression in subjects if not expression <= terms))
    points = weight_of(weights, own_terms(candidate, weights))
    points -= (1 - RULE.part_of_expression) * weight_of(weights, own_terms(candidate, weights) & torn)
    if not points or len(candidate.text) > 2 * LONGEST_SENTENCE:
        return 0.0
    above = weight_of(weights, candidate.heading - own_terms(candidate, weights))
    # A very short unit has no content; most of a very long unit is about something else.
    length = len(candidate.text.split()) if candidate.kind in ("row", "column") else len(candidate.terms)
    brevity = min(1.0, length / 5) / (1 + max(0, length - 30) / 40)
    value = value_of(candidate)
    if named - candidate.title - candidate.terms:
        value *= RULE.other_document_value
    return (points + RULE.heading_weight * above) * brevity * value * (RULE.next_passage**candidate.passage)
