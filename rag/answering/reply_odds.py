"""Estimate the probability that quotations answer the question. Without a model, the probability decides the reply's
outcome.

The search only estimates whether a passage is about the question's subject. Here, two further signals tell whether the
chosen sentences answer: the share of the question's words in or near them, and their similarity in meaning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag.types import Evidence

#: Lowest probabilities for the outcomes "answered" and "perhaps".
ANSWERED, PERHAPS = 0.55, 0.17
#: Lowest probability of "answered" for an exact quotation. Six exact quotations in the fit do not answer: two have 0.7
#: or more, four less than 0.2.
ANSWERED_EXACTLY = 0.4
#: Lowest probability of "perhaps" by words alone. In the fit, 63 of 65 right replies reach it; 59 reach `PERHAPS`.
PERHAPS_BY_WORDS = 0.08
#: A question's word count is capped here.
MOST_WORDS = 10
SUREST = 0.999


@dataclass(frozen=True, kw_only=True)
class ReplySignals:
    """Measurements for the first quotation in a reply, from which `probability` is computed."""

    #: The number of content words in the question.
    words: int
    #: Share of these words, 0 … 1, weighted by rarity, found in the sentence, its neighbours and its headings.
    word_share: float
    #: The cosine of passage and question by the built-in model of meaning, and the difference from the usual cosine in
    #: the passage's language; `None` without the model.
    meaning: float | None
    above_usual: float = 0.0
    #: The sentence's cosine to the question.
    likeness: float | None = None
    #: Whether question and sentence are in different languages.
    is_across: bool = False
    #: The search's probability, 0 … 1, that the best passage answers.
    search: float = 0.5
    #: Whether the quotation is in the question's language with all words and the requested kind of fact. Not in the
    #: regression.
    is_exact: bool = False
    #: Whether the sentence alone has all words of a question with several words, or all subjects of a short question,
    #: in the question's language. Not in the regression.
    says_all: bool = False
    #: Whether the sentences name a different letter or number: zone 2 instead of zone 5. Not in the regression.
    names_another: bool = False
    #: Whether the question's subject occurs only inside a word for a different subject. Not in the regression.
    is_within_another: bool = False


@dataclass(frozen=True, kw_only=True)
class Coefficients:
    """A logistic regression's coefficients for `ReplySignals`, in log odds."""

    base: float
    words: float
    word_share: float
    above_usual: float
    #: Coefficient for the difference between the sentence's and the passage's cosines.
    likeness: float
    across: float
    #: Coefficient for the log odds of the search's probability.
    search: float


#: `python -m benchmarks.replies --fit`, 2026-11-27: 359 replies to questions in twelve languages on 109 documents and
#: the samples, 136 with the right words. In ten-fold validation, 77 % of replies called answered have the right words,
#: and 11 of 224 questions near the subject without an answer are called answered (docs/measurements/answering.md,
#: "Replies").
FITTED = Coefficients(
    base=-4.087, words=0.268, word_share=0.993, above_usual=46.432, likeness=29.701, across=0.803, search=0.528
)


@dataclass(frozen=True, kw_only=True)
class CoefficientsByWords:
    """Like `Coefficients`, for replies compared by words alone, without an embedding model."""

    base: float
    words: float
    word_share: float
    across: float
    #: Coefficient for the log odds of the search's probability.
    search: float
    exact: float


#: `python -m benchmarks.replies --words --fit`, 2026-11-28: 224 replies to these questions by words alone, 65 with the
#: right words. In ten-fold validation, 7 of 224 questions near the subject and 0 of 102 everyday questions are wrongly
#: called answered; by the search's probability alone the figures were 49 and 21.
FITTED_BY_WORDS = CoefficientsByWords(
    base=-6.204, words=0.678, word_share=2.323, across=-0.27, search=0.264, exact=1.592
)


def probability(signals: ReplySignals, fitted: Coefficients = FITTED) -> float | None:
    """Return the probability (0 to 1) that a reply answers the question, or `None` if sentences were not compared by
    meaning.
    """
    if signals.meaning is None or signals.likeness is None:
        return None
    return _share(
        fitted.base
        + fitted.words * min(signals.words, MOST_WORDS)
        + fitted.word_share * signals.word_share
        + fitted.above_usual * signals.above_usual
        + fitted.likeness * (signals.likeness - signals.meaning)
        + fitted.across * signals.is_across
        + fitted.search * log_odds(signals.search)
    )


def probability_by_words(signals: ReplySignals, fitted: CoefficientsByWords = FITTED_BY_WORDS) -> float:
    """Return the probability (0 to 1) that a reply answers the question, from words and search scores alone."""
    return _share(
        fitted.base
        + fitted.words * min(signals.words, MOST_WORDS)
        + fitted.word_share * signals.word_share
        + fitted.across * signals.is_across
        + fitted.search * log_odds(signals.search)
        + fitted.exact * signals.is_exact
    )


def _share(odds: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, odds))))


def log_odds(share: float) -> float:
    """Return the log odds of a probability, capped at `SUREST`."""
    share = min(SUREST, max(1 - SUREST, share))
    return math.log(share / (1 - share))


def outcome_of(likely: float, *, is_exact: bool = False, perhaps: float = PERHAPS) -> Evidence:
    """Convert a probability (0 to 1) into "answered", "perhaps" or "none".

    `perhaps` is the lowest probability for "perhaps". If `is_exact`, a lower probability is enough for "answered".
    """
    return (
        "answered"
        if likely >= (ANSWERED_EXACTLY if is_exact else ANSWERED)
        else "perhaps"
        if likely >= perhaps
        else "none"
    )
