"""Answers as jobs: threads of this process write them, pages and routes only watch.

SKELETON: signatures are final, bodies follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from rag.answering.events import CitationKind, StepEvent
from rag.types import Citation, Collection, Identity, MessageState, Outcome


class Snapshot(NamedTuple):
    text: str
    steps: tuple[StepEvent, ...]
    citations: tuple[Citation, ...]
    state: MessageState


class LiveAnswer:
    """An answer being written, or one that ended less than a minute ago. Any number of pages may watch one."""

    message_id: UUID
    conversation_id: UUID
    question: str
    text: str
    steps: list[StepEvent]
    citations: tuple[Citation, ...]
    kind: CitationKind
    state: MessageState
    outcome: Outcome | None
    notice: str
    follow_ups: tuple[str, ...]

    @property
    def is_done(self) -> bool: ...

    def follow_steps(self, pulse_seconds: float = 0.25) -> Iterator[StepEvent | None]:
        """Each step as it begins, until the text begins or all is done. None about every quarter second while
        nothing happens, so that a page can make a Streamlit call and be interrupted."""
        ...

    def tail(self, every_seconds: float = 0.09, pulse_seconds: float = 0.25) -> Iterator[str]:
        """All text so far, then what comes, in batches; ends when the answer is done. "" while nothing comes."""
        ...

    def snapshot(self) -> Snapshot: ...

    def stop(self) -> None:
        """End it within about 0.3 s; what was written is kept. Harmless when it is done."""
        ...


class LiveAnswers:
    def ask(self, identity: Identity, conversation_id: UUID | None, collection: Collection, text: str) -> LiveAnswer:
        """Raises QuestionEmpty, QuestionTooLong, NotFound, InvalidInput (an answer is being written there)."""
        ...

    def find(self, identity: Identity, message_id: UUID) -> LiveAnswer | None:
        """None when it is not this person's or ended a while ago: then `Conversations.messages` has it whole."""
        ...

    def active(self, identity: Identity, conversation_id: UUID) -> LiveAnswer | None: ...

    def close_abandoned(self, tenant_id: str, *, quiet_seconds: float = 15.0) -> int: ...

    def stop_all(self) -> None: ...
