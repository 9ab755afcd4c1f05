"""Follow an answer while it is written. Any number of pages can follow without slowing the writer down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Condition, Event, Lock
from typing import Any, NamedTuple
from uuid import UUID

from rag.answering.citations import citation_from_json
from rag.answering.events import (
    AnswerEvent,
    CitationKind,
    CitationsEvent,
    ContextEvent,
    DoneEvent,
    StepEvent,
    TextEvent,
)
from rag.types import Citation, ContextResponse, MessageState, Outcome

#: Seconds `stop` waits for the writer to finish before ending the answer for its readers.
STOP_SECONDS = 0.25
#: Seconds between queries for an answer written by a different process.
LOOK_UP_SECONDS = 0.5


class Snapshot(NamedTuple):
    """An answer's text, steps, citations and state at one moment."""

    text: str
    steps: tuple[StepEvent, ...]
    citations: tuple[Citation, ...]
    state: MessageState


class Progress(NamedTuple):
    """The text and state of an answer, for followers who poll."""

    text: str
    #: How often the text was withdrawn and started again.
    restarts: int
    #: Whether the text is final.
    is_written: bool


class LiveAnswer:
    """An answer being written by a thread in this process, or finished less than a minute ago."""

    #: Whether this process writes the answer, so reading needs no query.
    is_here = True

    def __init__(
        self,
        *,
        message_id: UUID,
        conversation_id: UUID,
        question: str,
        owner: tuple[str, UUID],
        on_forced_end: Callable[[LiveAnswer], None],
    ) -> None:
        self.message_id = message_id
        self.conversation_id = conversation_id
        self.question = question
        #: Tenant and account; nobody else may see the answer.
        self.owner = owner
        self.text = ""
        #: How often the text was withdrawn and started again.
        self.restarts = 0
        self.steps: list[StepEvent] = []
        #: The passages found; set only in the writing process, after the search.
        self.context: ContextResponse | None = None
        self.citations: tuple[Citation, ...] = ()
        self.kind: CitationKind = "cited"
        self.state = MessageState.STREAMING
        self.outcome: Outcome | None = None
        #: Sentences for the reader: first why the answer ended early or failed, then the skipped steps.
        self.notices: tuple[str, ...] = ()
        self.follow_ups: tuple[str, ...] = ()
        #: Tells the writer to stop. Pages call `stop` instead.
        self.cancel = Event()
        self.saving = Lock()
        self.is_saved = False
        self._on_forced_end = on_forced_end
        self._changed = Condition()
        #: Each listener, and whether it is also called for steps.
        self._listeners: list[tuple[Callable[[], None], bool]] = []
        self._done = Event()
        self._is_written = Event()
        #: Set when there is text, or when the answer has ended without text.
        self._has_begun = Event()
        self._is_frozen = False
        #: Set when text and citations are final; suggested questions may still come.
        self.written: CitationsEvent | None = None
        self._started = time.monotonic()
        self._ended = 0.0

    @property
    def notice(self) -> str:
        """Return all notices in one line for storage; "" without a notice."""
        return " ".join(self.notices)

    @notice.setter
    def notice(self, sentence: str) -> None:
        self.notices = (sentence,) if sentence else ()

    # For pages

    @property
    def is_done(self) -> bool:
        """Whether the answer has ended and is stored."""
        return self._done.is_set()

    def follow_steps(self, pulse_seconds: float = 0.25) -> Iterator[StepEvent | None]:
        """Yield the steps so far, then new steps every `pulse_seconds`, until the text starts.

        Yields `None` if there is no new step, to let a page be interrupted. New steps do not wake readers: with a
        hundred readers, waking would delay new answers.
        """
        sent = 0
        while True:
            self._look_up()
            has_begun = self._has_begun.is_set()
            new = self.steps[sent:]
            sent += len(new)
            yield from new
            if has_begun:
                return
            if not self._has_begun.wait(pulse_seconds) and len(self.steps) == sent:
                yield None

    def tail(
        self,
        every_seconds: float = 0.0,
        pulse_seconds: float = 0.25,
        *,
        until_written: bool = False,
    ) -> Iterator[str]:
        """Yield the text so far, then new pieces at least `every_seconds` apart, until the answer has ended.

        If the text is withdrawn, `restarts` grows by 1 and the whole new text is yielded. While there is no new text,
        "" is yielded about every `pulse_seconds`. With `until_written`, the iteration ends before questions are
        suggested.
        """
        sent = restarts = 0
        while True:
            self._look_up()
            with self._changed:
                # Woken by each piece. Pieces come at the pace of `LiveAnswers`, not by the token: 100 readers at 50
                # tokens a second would be 5,000 wake-ups.
                self._changed.wait_for(
                    lambda sent=sent, restarts=restarts: (  # type: ignore[misc]
                        len(self.text) > sent or self.restarts > restarts or self._has_ended(until_written)
                    ),
                    timeout=pulse_seconds,
                )
                is_done = self._has_ended(until_written)
                if self.restarts > restarts:
                    sent, restarts = 0, self.restarts
                new = self.text[sent:]
            sent += len(new)
            if new or not is_done:
                yield new
            if is_done and sent >= len(self.text):
                return
            if new and every_seconds:
                self._done.wait(every_seconds)

    def wait(self, seconds: float) -> bool:
        """Wait until the answer has ended; return `False` if the time runs out first."""
        return self._done.wait(seconds)

    def wait_until_begun(self, seconds: float) -> bool:
        """Wait for the first text or the answer's end; return `False` if the time runs out first."""
        return self._has_begun.wait(seconds)

    @contextmanager
    def heard_by(self, listener: Callable[[], None], *, with_steps: bool = True) -> Iterator[None]:
        """Call `listener` from the writer's thread after every change, while the `with` block runs.

        Each call wakes the event loop. Without `with_steps`, steps are not reported.
        """
        heard = (listener, with_steps)
        self._listeners.append(heard)
        try:
            yield
        finally:
            self._listeners.remove(heard)

    def snapshot(self) -> Snapshot:
        self._look_up()
        with self._changed:
            return Snapshot(self.text, tuple(self.steps), self.citations, self.state)

    def stop(self, *, wait_seconds: float = STOP_SECONDS) -> None:
        """End the answer within about 0.3 seconds and keep the text. No effect on an ended answer.

        If the writer hangs in a provider's call, readers see the end immediately, and the log row is closed after the
        call.
        """
        self.cancel.set()
        if self._done.wait(wait_seconds):
            return
        with self._changed:
            self._is_frozen = True
            if self.state is MessageState.STREAMING:
                self.state = self._stopped_state()
        self._on_forced_end(self)
        self.set_done()

    def progress(self) -> Progress:
        """Return the current text, for followers who poll."""
        self._look_up()
        with self._changed:
            return Progress(self.text, self.restarts, self._has_ended(until_written=True))

    def wait_until_written(self, seconds: float) -> bool:
        """Wait until text and citations are final; return `False` if the time runs out first. New text does not wake
        the caller.
        """
        self._look_up()
        return self._is_written.wait(seconds)

    # For the writer

    def take(self, event: AnswerEvent) -> None:
        """Apply an event from the writer. Text is dropped if the answer was forced to end."""
        with self._changed:
            if isinstance(event, TextEvent):
                if not self._is_frozen:
                    self.restarts += event.starts_over
                    self.text = event.text if event.starts_over else self.text + event.text
                    self._has_begun.set()
            elif isinstance(event, StepEvent):
                self.steps.append(event)
            elif isinstance(event, ContextEvent):
                self.context = event.context
            elif isinstance(event, CitationsEvent):
                self.citations, self.kind, self.written = event.citations, event.kind, event
                self._is_written.set()
            elif isinstance(event, DoneEvent):
                self._end(event)
            self._changed.notify_all()
        self._tell(is_step=isinstance(event, StepEvent | ContextEvent))

    def fail(self, notice: str) -> None:
        """Mark the answer failed. Used if the writer died without a `DoneEvent`."""
        with self._changed:
            self.state = MessageState.CUT if self.text else MessageState.FAILED
            self.notice = notice

    def set_done(self) -> None:
        """Mark the answer ended and wake all followers. Call this after storing, because followers read the stored
        answer.
        """
        with self._changed:
            if not self._done.is_set():
                self._ended = time.monotonic()
                self._done.set()
                self._is_written.set()
                self._has_begun.set()
            self._changed.notify_all()
        self._tell()

    def _tell(self, *, is_step: bool = False) -> None:
        for listener, with_steps in tuple(self._listeners):
            if with_steps or not is_step:
                listener()

    @property
    def elapsed_ms(self) -> int:
        return round((time.monotonic() - self._started) * 1000)

    @property
    def seconds_since_done(self) -> float:
        return time.monotonic() - self._ended if self.is_done else 0.0

    def _has_ended(self, until_written: bool) -> bool:
        return self.is_done or (until_written and self.written is not None)

    def _end(self, event: DoneEvent) -> None:
        self.outcome = event.outcome
        self.citations, self.kind = event.citations, event.kind
        if self._is_frozen:
            return
        self.follow_ups = event.follow_ups
        # A shutdown has already said why.
        is_cut_short = event.state is MessageState.STOPPED and bool(self.notices)
        self.state = MessageState.CUT if is_cut_short else event.state
        self.notices = (*self.notices, *event.notices) if is_cut_short else event.notices

    def _stopped_state(self) -> MessageState:
        """Return the state after a stop.

        If the text was complete, this is the final state; otherwise `CUT` when the process ends, else `STOPPED`.
        """
        why, self.notices = self.notices, self.context.notices if self.context else ()
        if self.written is not None and self.written.state is not MessageState.STOPPED:
            return self.written.state
        self.notices = (*why, *self.notices)
        return MessageState.CUT if why else MessageState.STOPPED

    def _look_up(self) -> None:
        """Do nothing: `StoredAnswer` overrides this method to read the answer from the database."""


@dataclass(frozen=True)
class StoredRow:
    """An answer's row in the database."""

    id: UUID
    conversation_id: UUID
    content: str
    state: str
    notice: str
    citations: list[dict[str, Any]]
    outcome: str | None
    question: str


class StoredAnswer(LiveAnswer):
    """An answer written by a different process, read from the database a second later. It has no steps."""

    is_here = False

    def __init__(
        self,
        row: StoredRow,
        *,
        question: str,
        owner: tuple[str, UUID],
        read: Callable[[], StoredRow | None],
        request_stop: Callable[[], None],
    ) -> None:
        super().__init__(
            message_id=row.id,
            conversation_id=row.conversation_id,
            question=question,
            owner=owner,
            on_forced_end=lambda _: None,
        )
        self._read = read
        self._request_stop = request_stop
        self._looked_up = time.monotonic()
        self._take_row(row)

    def stop(self, *, wait_seconds: float = STOP_SECONDS) -> None:
        """Ask the writing process to stop, which takes about a second; readers see the stop at once."""
        if not self.is_done:
            self._request_stop()
            self._take_row(self._read())

    def _look_up(self) -> None:
        if self.is_done or time.monotonic() - self._looked_up < LOOK_UP_SECONDS:
            return
        self._take_row(self._read())

    def _take_row(self, row: StoredRow | None) -> None:
        self._looked_up = time.monotonic()
        if row is None:  # deleted with its conversation
            self.state = MessageState.STOPPED
            self.set_done()
            return
        # The writing process may store a shorter text after filtering its end; any other text is a new start.
        if not self.text.startswith(row.content):
            self.restarts += not row.content.startswith(self.text)
            self.text = row.content
        if self.text:
            self._has_begun.set()
        self.state = MessageState(row.state)
        self.notice = row.notice
        self.outcome = Outcome(row.outcome) if row.outcome else None
        self.citations = tuple(citation_from_json(stored) for stored in row.citations)
        self.kind = "nearest" if any(stored.get("kind") == "nearest" for stored in row.citations) else "cited"
        if self.state is not MessageState.STREAMING:
            self.set_done()
