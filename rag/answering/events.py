"""Define the events of an answer while it is written, in this order: steps, context, text, citations, done."""

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
    """Work that has begun: rewriting, translating, searching, found (detail: how many), reranking, writing.

    Before any of it `queued` (detail: how many questions are before this one), where too many are being answered.
    """

    name: str
    detail: str = ""


@dataclass(frozen=True)
class ContextEvent:
    """The passages found, from which the answer is about to be written."""

    context: ContextResponse


@dataclass(frozen=True)
class TextEvent:
    """Text to append. Every `[n]` in it is whole and points to a citation."""

    text: str
    #: Whether this text replaces everything before it.
    starts_over: bool = False


@dataclass(frozen=True)
class CitationsEvent:
    """The passages under the answer, once its text is whole, and how it ended. Next questions may still come."""

    citations: tuple[Citation, ...]
    kind: CitationKind = "cited"
    state: MessageState = MessageState.COMPLETE
    notices: tuple[str, ...] = ()
    outcome: Outcome = Outcome.ANSWERED

    @property
    def notice(self) -> str:
        """Return all notices in one line, "" without any."""
        return " ".join(self.notices)


@dataclass(frozen=True, kw_only=True)
class DoneEvent:
    """The last event. The log is written when it comes."""

    outcome: Outcome
    state: MessageState
    #: Sentences for the reader: why the answer did not end well, then which steps were skipped.
    notices: tuple[str, ...] = ()
    #: US dollars; None when a call had no known price.
    cost: Decimal | None
    total_ms: int
    citations: tuple[Citation, ...] = ()
    kind: CitationKind = "cited"
    follow_ups: tuple[str, ...] = ()

    @property
    def notice(self) -> str:
        """Return all notices in one line, "" without any."""
        return " ".join(self.notices)


AnswerEvent = StepEvent | ContextEvent | TextEvent | CitationsEvent | DoneEvent
