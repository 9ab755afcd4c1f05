"""Answer a question: route → rewrite → retrieve → write → check citations → suggest → log, in this order.

The last event is always `DoneEvent`. By then every paid call is in the ledger, and the question's log row is closed
with its outcome, even if the reader leaves and the generator is closed early. No database connection is held while a
model writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from threading import Event
from uuid import UUID

from rag.answering.citation_checks import check_citations
from rag.answering.events import AnswerEvent, CitationsEvent, DoneEvent, StepEvent, TextEvent
from rag.answering.extras import extra
from rag.answering.follow_up_rewriting import rewrite
from rag.answering.log_entry import log_answer
from rag.answering.retrieving import retrieve
from rag.answering.routed_answer import route, write_reply
from rag.answering.state import AnswerState, Parts
from rag.answering.suggested_questions import suggest_next_questions
from rag.answering.writing import write
from rag.errors import RagError
from rag.profiles.profile import Profile
from rag.providers.processor import working
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.types import Identity, MessageState, Outcome, Question

__all__ = ["AnswerEvent", "Answerer", "CitationsEvent", "DoneEvent", "StepEvent", "TextEvent"]

log = logging.getLogger(__name__)

PIECES_EVERY_SECONDS = 0.05


class Answerer:
    """Answers questions from passages. Thread-safe."""

    def __init__(
        self,
        retriever: Retriever,
        providers: Providers,
        chat_logs: ChatLogs,
        settings: Settings,
        *,
        stop_spending: Callable[[Identity], str] = lambda _identity: "",
        has_budget: Callable[[Identity], bool] = lambda _identity: False,
    ) -> None:
        """`stop_spending` returns why a person may not spend more, or ""; `has_budget`, whether they have a budget."""
        self.chat_logs = chat_logs
        self.settings = settings
        self._parts = Parts(
            retriever=retriever,
            providers=providers,
            chat_logs=chat_logs,
            settings=settings,
            stop_spending=stop_spending,
            has_budget=has_budget,
        )

    def answer(
        self,
        question: Question,
        *,
        profile: Profile,
        cancel: Event,
        chat_log_id: UUID | None = None,
        on_step: Callable[[StepEvent], None] | None = None,
        every_seconds: Callable[[], float] = lambda: PIECES_EVERY_SECONDS,
    ) -> Iterator[AnswerEvent]:
        """Yield the answer piece by piece. `DoneEvent` comes last, and errors become its outcome.

        `on_step` receives each step at its start; without it, steps are yielded. `chat_log_id` is the question's open
        log row; without it a row is opened, which may raise `DatabaseUnavailable`. `every_seconds` returns the seconds
        between pieces of text. Set `cancel` to stop; the method may also set it, to end the suggestion of next
        questions.
        """
        if chat_log_id is None:
            chat_log_id = self.chat_logs.open(question)
        state = AnswerState(
            parts=self._parts,
            question=question,
            profile=profile,
            cancel=cancel,
            chat_log_id=chat_log_id,
            on_step=on_step,
            every_seconds=every_seconds,
        )
        try:
            with working():
                state.hold_to_budget()
                reply = route(state)
                context = retrieve(state, rewrite(state)) if reply is None else None
            if reply is not None:
                yield from write_reply(state, reply)
            elif context is not None:
                yield from write(state, context)
            with working():
                check_citations(state)
            yield CitationsEvent(state.citations, state.kind, state.state, state.notices, state.outcome)
            with extra("next questions"):
                suggest_next_questions(state)
        except (GeneratorExit, KeyboardInterrupt):
            state.end(Outcome.STOPPED, MessageState.STOPPED)
            raise
        except RagError as exc:
            state.end(Outcome.FAILED, MessageState.CUT if state.text else MessageState.FAILED, str(exc))
        except Exception:
            log.exception("an answer failed")
            state.end(Outcome.FAILED, MessageState.CUT if state.text else MessageState.FAILED, str(RagError()))
        finally:
            with extra("row of the log"):
                log_answer(state)
        yield state.done()
