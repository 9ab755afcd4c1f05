"""Write a route's reply with fixed sentences or with the model. Before an expensive reply, ask the reader."""

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

#: Tokens for the rules and the question, added to each part's passages in an estimate.
AROUND_TOKENS = 400
#: The most a reply may cost, in US dollars, without asking first: ten times an ordinary answer by a large model.
MOST_UNASKED = Decimal("0.10")
#: The same limit in tokens for a model without a known price, at 2.50 dollars per million tokens.
MOST_TOKENS_UNASKED = 40_000
#: With more tokens, a comparison or list gives the model only the findings, without their passages.
MOST_PASSAGE_TOKENS = 12_000
#: The most output tokens for a comparison or list written by a model.
OUTPUT_TOKENS = 900

#: Estimates a call's cost; `None` without a known price.
Price = Callable[[Usage], Decimal | None]


@dataclass(frozen=True, kw_only=True)
class ModelPart:
    """A document's part for the language model. `numbers` are the passages which the part's summary may cite."""

    heading: str
    #: The pages, for documents without headings.
    place: str
    context_text: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class RouteReply:
    """A route's reply: text with the cited passages.

    If `parts` are set, the language model writes the reply from the parts. Without a model, `text` is shown.
    """

    text: str
    citations: tuple[Citation, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    #: Likely next messages, offered to the asker.
    follow_ups: tuple[str, ...] = ()
    parts: tuple[ModelPart, ...] = ()
    #: The model's task: a comparison or listing takes a single call, a summary takes a call per part.
    task: Literal["summary", "comparison", "listing"] = "summary"
    #: The language, ISO 639-1.
    language: str = ""


class QuotedReply(NamedTuple):
    """A comparison or list in the documents' words, with the cited passages."""

    reply: RouteReply
    passages: NumberedPassages


def say(name: str, language: str, **values: object) -> str:
    """Return a sentence from `phrases.toml` in a language (ISO 639-1), else in English."""
    table = _table()
    texts = table.get(language.split("-")[0].lower(), table["en"])
    return texts[name].format(**values)


def ask_which(documents: Sequence[WholeDocument], language: str, question: str, **values: str) -> RouteReply:
    """Return a reply which asks the reader which document is meant.

    For each document, a next message is offered: the phrase called `question`, filled with the document's title and
    `values`.
    """
    labels = labels_of(documents)
    offered = [labels[document.id] for document in documents[:MOST_CHOICES]]
    lines = [say("which", language), "", *(f"- {label}" for label in offered)]
    if len(documents) > MOST_CHOICES:
        lines += ["", say("many", language, count=len(documents) - MOST_CHOICES)]
    follow_ups = tuple(say(question, language, title=label, **values) for label in offered)
    return RouteReply(text="\n".join(lines), outcome=Outcome.ASKED_BACK, follow_ups=follow_ups)


def ask_which_two(documents: Sequence[WholeDocument], language: str) -> RouteReply:
    labels = labels_of(documents)
    offered = [labels[document.id] for document in documents]
    pairs = list(combinations(offered, 2))[:MOST_CHOICES]
    lines = [say("which", language), "", *(f"- {label}" for label in offered[:MOST_CHOICES])]
    if len(documents) > MOST_CHOICES:
        lines += ["", say("many", language, count=len(documents) - MOST_CHOICES)]
    follow_ups = tuple(say("compare", language, one=first, other=second) for first, second in pairs)
    return RouteReply(text="\n".join(lines), outcome=Outcome.ASKED_BACK, follow_ups=follow_ups)


def cell(text: str) -> str:
    """Write a text on a single line without bars and footnote marks, for a Markdown table cell or list."""
    return " ".join(FOOTNOTE.sub("", text).replace("|", "/").split())


def day_of(document: WholeDocument) -> str:
    """Return the day from which a version is valid, else the publication day, in ISO 8601."""
    return f"{document.valid_from or document.published_at or document.created_at:%Y-%m-%d}"


@cache
def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text("utf-8"))


@dataclass(frozen=True, kw_only=True)
class CostQuestion:
    """The phrases which ask before an expensive reply: `priced` with the cost, `unpriced` without; `confirm` is the
    "yes".
    """

    priced: str
    unpriced: str
    language: str
    confirm: str
    #: The document's title, or "".
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Writer:
    """The language model which writes a reply, and the price."""

    provider: str
    model: str
    price: Price
    #: Whether the asker has accepted the cost.
    is_confirmed: bool

    def worded(self, reply: RouteReply, passages: NumberedPassages, *, question: str, language: str) -> RouteReply:
        """Return a comparison or list for the model to put into words, with the cited passages."""
        part = ModelPart(
            heading="",
            place="",
            context_text=f"{reply.text}\n\n{passages.as_context(MOST_PASSAGE_TOKENS)}",
            numbers=tuple(citation.number for citation in reply.citations),
        )
        return self.ask_if_expensive(
            replace(reply, parts=(part,)),
            CostQuestion(
                priced="estimate_wording",
                unpriced="unpriced_wording",
                language=language,
                confirm=say("yes", language) + question,
            ),
            output_tokens=OUTPUT_TOKENS,
        )

    def ask_if_expensive(
        self,
        reply: RouteReply,
        question: CostQuestion,
        *,
        output_tokens: int,
        preview: RouteReply | None = None,
    ) -> RouteReply:
        """Return the reply. If writing is expensive and not confirmed, return a question with the cost instead.

        `preview` is a free reply to show below the question, by default `reply`. `output_tokens` are expected for each
        part.
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
        if cost is None:
            cost_question = say(question.unpriced, question.language, title=question.title, tokens=f"{input_tokens:,}")
        else:
            cost_question = say(question.priced, question.language, title=question.title, cost=f"${cost:.2f}")
        free_reply = preview or reply
        return RouteReply(
            text=f"{cost_question}\n\n{free_reply.text}", citations=free_reply.citations, follow_ups=(question.confirm,)
        )


def ends_of_estimates(language: str) -> Sequence[str]:
    """Return the endings with which questions about a cost can be recognised in the conversation."""
    names = ("estimate", "unpriced", "estimate_wording", "unpriced_wording")
    return [say(name, language, title="", cost="", tokens="")[-12:] for name in names]
