"""Define the events of an answer, in this order: steps, context, text, citations, done."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from rag.types import Citation, ContextResponse, MessageState, Outcome

CitationKind = Literal["cited", "nearest"]
"""`cited`: the answer names them by number. `nearest`: no answer was found in them, they came closest."""


#: The step while a question waits in line.
QUEUED = "queued"


@dataclass(frozen=True)
class StepEvent:
    """The start of a step: rewriting, translating, searching, found, reranking or writing.

    The step `found` has the passage count in `detail`. If all slots are taken, the step `queued` comes first; `detail`
    then tells how many questions are ahead.
    """

    name: str
    detail: str = ""


@dataclass(frozen=True)
class ContextEvent:
    """The passages found, before the answer is written from them."""

    context: ContextResponse


@dataclass(frozen=True)
class TextEvent:
    """Text to append to the answer. A citation number, `[n]`, is never split over two events."""

    text: str
    #: Whether this text replaces all earlier text.
    starts_over: bool = False


@dataclass(frozen=True)
class CitationsEvent:
    """The citations and the outcome, sent when the text is complete. Suggested questions may still follow."""

    citations: tuple[Citation, ...]
    kind: CitationKind = "cited"
    state: MessageState = MessageState.COMPLETE
    notices: tuple[str, ...] = ()
    outcome: Outcome = Outcome.ANSWERED

    @property
    def notice(self) -> str:
        """Return all notices in one line; "" without a notice."""
        return " ".join(self.notices)


@dataclass(frozen=True, kw_only=True)
class DoneEvent:
    """The last event, sent after the log is written."""

    outcome: Outcome
    state: MessageState
    #: Sentences for the reader: first why the answer ended early or failed, then the skipped steps.
    notices: tuple[str, ...] = ()
    #: US dollars, or `None` if a call had no known price.
    cost: Decimal | None
    total_ms: int
    citations: tuple[Citation, ...] = ()
    kind: CitationKind = "cited"
    follow_ups: tuple[str, ...] = ()

    @property
    def notice(self) -> str:
        """Return all notices in one line; "" without a notice."""
        return " ".join(self.notices)


AnswerEvent = StepEvent | ContextEvent | TextEvent | CitationsEvent | DoneEvent
