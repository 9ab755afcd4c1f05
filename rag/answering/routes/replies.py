"""Word the reply of a route: in the phrases of its language, or by the model, which asks first at a high cost."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

from rag.answering.routes.documents import MOST_CHOICES, NumberedPassages, WholeDocument, labels_of
from rag.answering.sentences import FOOTNOTE
from rag.text.tokens import estimate_tokens
from rag.types import Citation, Outcome, Usage

#: What the rules and the question around a part's passages come to.
AROUND_TOKENS = 400
#: Ten times the cost of an ordinary answer by a large model: above it the asker has to agree first.
MOST_UNASKED = Decimal("0.10")
#: The same for a model without a known price, at 2.50 dollars a million.
MOST_TOKENS_UNASKED = 40_000
#: Beyond this, a comparison or list gives the model only the findings and not their passages.
MOST_PASSAGE_TOKENS = 12_000
#: The longest comparison or list that a model may write.
OUTPUT_TOKENS = 900

#: Estimates the cost of a call; None without a known price.
Price = Callable[[Usage], Decimal | None]


@dataclass(frozen=True, kw_only=True)
class ModelPart:
    """A part of a document for the language model: its heading, and the passages it may cite by their numbers."""

    heading: str
    #: Pages, for documents without a heading.
    place: str
    context_text: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class RouteReply:
    """A route's reply: text that cites its passages by number. With `parts`, the language model writes instead."""

    text: str
    citations: tuple[Citation, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    #: What the asker probably says next, to choose from.
    follow_ups: tuple[str, ...] = ()
    parts: tuple[ModelPart, ...] = ()
    #: What the model does with them: a comparison and a list are one call, a summary is one for each part.
    task: Literal["summary", "comparison", "listing"] = "summary"
    #: The language, ISO 639-1.
    language: str = ""


class QuotedReply(NamedTuple):
    """What a comparison or a list comes to in the documents' own words, and the passages that it was made from."""

    reply: RouteReply
    passages: NumberedPassages


def say(name: str, language: str, **values: object) -> str:
    """Return a sentence of `phrases.toml` in a language (ISO 639-1), in English where there is none."""
    table = _table()
    texts = table.get(language.split("-")[0].lower(), table["en"])
    return texts[name].format(**values)


def ask_which(documents: Sequence[WholeDocument], language: str, question: str, **values: str) -> RouteReply:
    """Ask back: which of several documents? `question` names the phrase to offer for each, with `values`."""
    labels = labels_of(documents)
    offered = [labels[document.id] for document in documents[:MOST_CHOICES]]
    lines = [say("which", language), "", *(f"- {label}" for label in offered)]
    if len(documents) > MOST_CHOICES:
        lines += ["", say("many", language, count=len(documents) - MOST_CHOICES)]
    asked = tuple(say(question, language, title=label, **values) for label in offered)
    return RouteReply(text="\n".join(lines), outcome=Outcome.ASKED_BACK, follow_ups=asked)


def ask_which_two(documents: Sequence[WholeDocument], language: str) -> RouteReply:
    """Ask which two of several documents are to be compared."""
    labels = labels_of(documents)
    offered = [labels[document.id] for document in documents]
    pairs = list(combinations(offered, 2))[:MOST_CHOICES]
    lines = [say("which", language), "", *(f"- {label}" for label in offered[:MOST_CHOICES])]
    if len(documents) > MOST_CHOICES:
        lines += ["", say("many", language, count=len(documents) - MOST_CHOICES)]
    asked = tuple(say("compare", language, one=one, other=other) for one, other in pairs)
    return RouteReply(text="\n".join(lines), outcome=Outcome.ASKED_BACK, follow_ups=asked)


def cell(text: str) -> str:
    """Return a text as it fits into a cell of a Markdown table or a line of a list, without what looks like a
    citation.
    """
    return " ".join(FOOTNOTE.sub("", text).replace("|", "/").split())


def day_of(document: WholeDocument) -> str:
    """Return the day from which a version answers."""
    return f"{document.valid_from or document.published_at or document.created_at:%Y-%m-%d}"


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text("utf-8"))


@dataclass(frozen=True, kw_only=True)
class Writer:
    """The language model for writing, with the cost."""

    provider: str
    model: str
    price: Price
    #: The asker knows the cost and wants it.
    is_confirmed: bool

    def worded(self, reply: RouteReply, passages: NumberedPassages, *, question: str, language: str) -> RouteReply:
        """Return a comparison or a list for the model to word, from the same passages."""
        part = ModelPart(
            heading="",
            place="",
            context_text=f"{reply.text}\n\n{passages.as_context(MOST_PASSAGE_TOKENS)}",
            numbers=tuple(citation.number for citation in reply.citations),
        )
        return self.asked_first(
            replace(reply, parts=(part,)),
            names=("estimate_wording", "unpriced_wording"),
            title="",
            confirm=say("yes", language) + question,
            output_tokens=OUTPUT_TOKENS,
            language=language,
        )

    def asked_first(
        self,
        reply: RouteReply,
        *,
        names: tuple[str, str],
        title: str,
        confirm: str,
        output_tokens: int,
        language: str,
        shown: RouteReply | None = None,
    ) -> RouteReply:
        """Return the reply, or where writing it is expensive the cost and what there is without: the text of `shown`.

        `names` are the phrases that ask, with a price and without; `confirm` is the asker's yes.
        """
        input_tokens = sum(estimate_tokens(part.context_text) + AROUND_TOKENS for part in reply.parts)
        expected = Usage(
            provider=self.provider,
            model=self.model,
            input_tokens=input_tokens,
            output_tokens=output_tokens * len(reply.parts),
        )
        cost = self.price(expected)
        is_expensive = input_tokens > MOST_TOKENS_UNASKED if cost is None else cost > MOST_UNASKED
        if not is_expensive or self.is_confirmed:
            return reply
        priced, unpriced = names
        if cost is None:
            asked = say(unpriced, language, title=title, tokens=f"{input_tokens:,}")
        else:
            asked = say(priced, language, title=title, cost=f"${cost:.2f}")
        without = shown or reply
        return RouteReply(text=f"{asked}\n\n{without.text}", citations=without.citations, follow_ups=(confirm,))


def ends_of_estimates(language: str) -> Sequence[str]:
    """Return how the sentences end that ask whether to write at a cost."""
    names = ("estimate", "unpriced", "estimate_wording", "unpriced_wording")
    return [say(name, language, title="", cost="", tokens="")[-12:] for name in names]
