"""Estimate the probability that quotations answer their question; it decides the outcome of a reply without a model.

Search can only tell that a passage is about the question's subject. Whether the sentences chosen from it answer is told
by how much of the question they and their neighbours say, and how near they are to it in meaning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag.types import Evidence

#: Least probability of the outcomes "answered" and "perhaps".
ANSWERED, PERHAPS = 0.55, 0.2
#: Least probability of "answered" for an exact quotation. Exact ones without an answer have 0.27 at most in the fit.
ANSWERED_EXACTLY = 0.4
#: The word count of a longer question is capped.
MOST_WORDS = 10


@dataclass(frozen=True, kw_only=True)
class ReplySignals:
    """Signals of the first quotation of a reply."""

    #: Number of content words in the question.
    words: int
    #: Share of these words, 0 … 1, weighted by rarity, in the sentence, its neighbours and its headings.
    said: float
    #: The cosine of its passage to the question by the built-in model of meaning, and how far that is above the median
    #: of all passages found; None without the model.
    meaning: float | None
    above_usual: float = 0.0
    #: The cosine of the sentence itself.
    likeness: float | None = None
    #: Question and sentence differ in language.
    is_across: bool = False
    #: In the question's language, with all words and the asked kind of fact. Not a part of the odds.
    is_exact: bool = False


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """A logistic regression on the signals, as log odds."""

    base: float
    words: float
    said: float
    meaning: float
    above_usual: float
    likeness: float
    across: float


#: `python -m benchmarks.replies --fit`, 2026-11-26: 348 replies to questions in twelve languages on 109 documents and
#: the samples, 144 of them with the answering words. In ten-fold validation replies called answered hold them in 77 %,
#: and 7 of 220 questions near the subject without an answer are called answered (benchmarks/README.md, "Replies").
FITTED = Coefficients(
    base=-20.815, words=0.209, said=2.533, meaning=-3.985, above_usual=42.51, likeness=23.977, across=1.636
)


def probability(signals: ReplySignals, fitted: Coefficients = FITTED) -> float | None:
    """Return the probability, 0 … 1, of an answer in the reply; None without the model of meaning."""
    if signals.meaning is None or signals.likeness is None:
        return None
    odds = (
        fitted.base
        + fitted.words * min(signals.words, MOST_WORDS)
        + fitted.said * signals.said
        + fitted.meaning * signals.meaning
        + fitted.above_usual * signals.above_usual
        + fitted.likeness * signals.likeness
        + fitted.across * signals.is_across
    )
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, odds))))


def outcome_of(likely: float, *, is_exact: bool = False) -> Evidence:
    """Return the outcome for a probability."""
    return (
        "answered"
        if likely >= (ANSWERED_EXACTLY if is_exact else ANSWERED)
        else "perhaps"
        if likely >= PERHAPS
        else "none"
    )
