"""Measure answers against test questions, average a run's metrics, and compare two runs.

A rank is a chunk's position among the chunks given to the answer. A page found several times counts only at its first
rank.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rag.evaluation.golden import GoldenQuestion
from rag.types import Citation, Outcome

#: Places considered: a reader looks at about five sources.
RECALL_AT, NDCG_AT = 5, 10
RESAMPLES = 10_000
#: With fewer questions an interval is meaningless.
LEAST_PAIRS = 10
SEED = 20261122
#: Answer figures averaged over a run, with whether higher is better.
FIGURES: Mapping[str, bool] = {
    "page_recall": True,
    "page_rank": True,
    "page_ndcg": True,
    "document_recall": True,
    "document_rank": True,
    "document_ndcg": True,
    "citation_precision": True,
    "answered_right": True,
    "refused_right": True,
    "answered_wrong": False,
    "refused_wrong": False,
    "evidence": True,
    "grounded": True,
    "grounded_by_model": True,
    "total_ms": False,
    "cost": False,
}
TITLES: Mapping[str, str] = {
    "page_recall": f"Page recall@{RECALL_AT}",
    "page_rank": "Page MRR",
    "page_ndcg": f"Page nDCG@{NDCG_AT}",
    "document_recall": f"Document recall@{RECALL_AT}",
    "document_rank": "Document MRR",
    "document_ndcg": f"Document nDCG@{NDCG_AT}",
    "citation_precision": "Citation precision",
    "answered_right": "Answered where the documents answer",
    "refused_right": "Refused where they do not",
    "answered_wrong": "Answered where they do not",
    "refused_wrong": "Refused where they answer",
    "evidence": "Expected words in the answer",
    "grounded": "Citations that hold",
    "grounded_by_model": "Sentences that hold, by a model",
    "total_ms": "Time (ms)",
    "cost": "Cost ($)",
}


@dataclass(frozen=True, kw_only=True)
class EvaluatedAnswer:
    """An answer to measure: the chunks by rank, the text and the cited sources."""

    ranked: Sequence[Citation]
    answer: str
    outcome: Outcome
    #: Sources that the answer names.
    cited: Sequence[Citation]
    total_ms: int
    #: None without a known price.
    cost: float | None


def figures_of(golden: GoldenQuestion, reply: EvaluatedAnswer) -> dict[str, float]:
    """Measure an answer. Return the metrics by name; metrics which do not apply to the question are left out."""
    figures: dict[str, float] = {"total_ms": float(reply.total_ms)}
    if reply.cost is not None:
        figures["cost"] = reply.cost
    is_answer = reply.outcome in (Outcome.ANSWERED, Outcome.PERHAPS)
    if not golden.is_answerable:
        return figures | {"answered_wrong": float(is_answer), "refused_right": float(not is_answer)}
    figures["refused_wrong"] = float(reply.outcome is Outcome.NO_CONTEXT)
    if golden.evidence:
        answer = _folded(reply.answer)
        figures["evidence"] = sum(_folded(words) in answer for words in golden.evidence) / len(golden.evidence)
    if reply.cited:
        figures["grounded"] = sum(citation.is_supported for citation in reply.cited) / len(reply.cited)
    if golden.document:
        documents = list(dict.fromkeys(c.document_id for c in reply.ranked))
        right = {c.document_id for c in reply.ranked if _is_document(c, golden.document)}
        figures |= _ranked([document in right for document in documents], "document", expected=1)
        cites_right = [_is_document(c, golden.document) and _is_page(c, golden.pages) for c in reply.cited]
        figures["citation_precision"] = sum(cites_right) / len(cites_right) if cites_right else 0.0
        figures["answered_right"] = float(is_answer and any(cites_right))
        if golden.pages:
            pages = list(dict.fromkeys(
                (c.document_id, page) for c in reply.ranked for page in range(c.first_page, c.last_page + 1)
            ))  # fmt: skip
            hits = [document in right and page in golden.pages for document, page in pages]
            figures |= _ranked(hits, "page", expected=len(set(golden.pages)))
    else:
        figures["answered_right"] = float(is_answer)
    return figures


def _ranked(hits: Sequence[bool], name: str, *, expected: int) -> dict[str, float]:
    first = next((place for place, is_hit in enumerate(hits, start=1) if is_hit), None)
    gain = sum(1 / math.log2(place + 1) for place, is_hit in enumerate(hits[:NDCG_AT], start=1) if is_hit)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(expected, NDCG_AT) + 1))
    return {
        f"{name}_recall": min(1.0, sum(hits[:RECALL_AT]) / expected),
        f"{name}_rank": 1 / first if first else 0.0,
        f"{name}_ndcg": min(1.0, gain / ideal),
    }


def _is_document(citation: Citation, name: str) -> bool:
    return _folded(name) in (_folded(citation.file_name), _folded(citation.title))


def _is_page(citation: Citation, pages: Sequence[int]) -> bool:
    return not pages or any(citation.first_page <= page <= citation.last_page for page in pages)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def means(results: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return each metric's mean over the results which have it. For `total_ms`, return the median."""
    summed = {}
    for name in FIGURES:
        values = [result[name] for result in results if name in result]
        if values:
            summed[name] = statistics.median(values) if name == "total_ms" else statistics.fmean(values)
    return summed


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A metric in two runs over the same questions.

    `low` and `high` are the limits of the difference's 95 % confidence interval.
    """

    figure: str
    questions: int
    first: float
    second: float
    difference: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Return how the second run compares: `better`, `worse`, `no difference` or `too few questions`."""
        if self.questions < LEAST_PAIRS:
            return "too few questions"
        if self.low <= 0 <= self.high:
            return "no difference"
        return "better" if (self.difference > 0) is FIGURES[self.figure] else "worse"


def compare(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> list[Comparison]:
    """Compare two runs with the paired bootstrap, which resamples questions and keeps each question's two results
    together.

    The intervals are percentiles of 10,000 resamples (Efron and Tibshirani, An Introduction to the Bootstrap, 1993,
    chapter 13).
    """
    chance = np.random.default_rng(SEED)
    comparisons = []
    for name in FIGURES:
        pairs = [(a[name], b[name]) for a, b in zip(first, second, strict=True) if name in a and name in b]
        if not pairs:
            continue
        values = np.asarray(pairs, dtype=np.float64)
        differences = values[:, 1] - values[:, 0]
        if np.all(differences == differences[0]):
            low = high = float(differences[0])
        else:
            picked = chance.integers(0, len(pairs), size=(RESAMPLES, len(pairs)))
            low, high = (float(bound) for bound in np.percentile(differences[picked].mean(axis=1), [2.5, 97.5]))
        comparisons.append(
            Comparison(
                figure=name,
                questions=len(pairs),
                first=float(values[:, 0].mean()),
                second=float(values[:, 1].mean()),
                difference=float(differences.mean()),
                low=low,
                high=high,
            )
        )
    return comparisons
