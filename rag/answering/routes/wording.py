"""Hands what a route found to the language model, after the asker has agreed to a high cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rag.answering.routes.documents import Passages
from rag.answering.routes.small_talk import ModelPart, Reply, say
from rag.providers.tokens import estimate_tokens
from rag.types import Usage

#: What the rules and the question around a part's passages come to.
AROUND_TOKENS = 400
#: Ten times what an ordinary answer costs with a large model: above it the asker is told first.
MOST_UNASKED = Decimal("0.10")
#: The same for a model without a known price, at 2.50 dollars a million.
MOST_TOKENS_UNASKED = 40_000
#: Of the passages of a comparison or a list only what was found in them is given beyond this.
MOST_PASSAGE_TOKENS = 12_000
#: What a comparison or a list comes to, as written by a model.
OUTPUT_TOKENS = 900

#: What a call would cost; None where no price is known.
Price = Callable[[Usage], Decimal | None]


@dataclass(frozen=True, kw_only=True)
class Writer:
    """The language model that would write, and what it costs."""

    provider: str
    model: str
    price: Price
    #: The asker knows the cost and wants it.
    is_confirmed: bool

    def worded(self, reply: Reply, passages: Passages, *, question: str, language: str) -> Reply:
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
        reply: Reply,
        *,
        names: tuple[str, str],
        title: str,
        confirm: str,
        output_tokens: int,
        language: str,
        shown: Reply | None = None,
    ) -> Reply:
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
        return Reply(text=f"{asked}\n\n{without.text}", citations=without.citations, follow_ups=(confirm,))


def ends_of_estimates(language: str) -> Sequence[str]:
    """Return how the sentences end that ask whether to write at a cost."""
    names = ("estimate", "unpriced", "estimate_wording", "unpriced_wording")
    return [say(name, language, title="", cost="", tokens="")[-12:] for name in names]
