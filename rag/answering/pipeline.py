"""Answer a question: route → rewrite → retrieve → write → check → follow up → log. The order is here and nowhere else.

Whatever happens on the way, the last event is `DoneEvent`, every paid call is in the ledger, and the question's row in
the log is closed with its outcome; that holds too when the reader leaves and the generator is closed half-way.
No database connection is held while a model writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from threading import Event
from uuid import UUID

from rag.answering.answer_run import AnswerRun, Parts
from rag.answering.events import AnswerEvent, CitationsEvent, DoneEvent, StepEvent, TextEvent
from rag.answering.extras import extra
from rag.answering.routed_answer import RoutedAnswer
from rag.answering.writing import AnswerWriter
from rag.errors import RagError
from rag.money.ledger import Ledger
from rag.profile import Profile
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.retrieval.processor import working
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.types import (
    Identity,
    MessageState,
    Outcome,
    Question,
)

__all__ = ["AnswerEvent", "Answerer", "CitationsEvent", "DoneEvent", "StepEvent", "TextEvent"]

log = logging.getLogger(__name__)

PIECES_EVERY_SECONDS = 0.05


class Answerer:
    """Answers questions from passages. Thread-safe."""

    def __init__(
        self,
        retriever: Retriever,
        providers: Providers,
        ledger: Ledger,
        chat_logs: ChatLogs,
        settings: Settings,
        *,
        stop_spending: Callable[[Identity], str] = lambda _identity: "",
        has_budget: Callable[[Identity], bool] = lambda _identity: False,
    ) -> None:
        """`stop_spending` says why no more may be spent for somebody, and "" where it may; `has_budget` whether a
        budget holds for them.
        """
        self.chat_logs = chat_logs
        self.settings = settings
        self._parts = Parts(
            retriever=retriever,
            providers=providers,
            ledger=ledger,
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
        """Yield the answer as it is made; `DoneEvent` comes last and nothing is raised on the way.

        Steps go to `on_step` the moment they begin; without it they are yielded. `chat_log_id` is the row opened for
        this question; one is opened where it is missing, which may raise `DatabaseUnavailable`. `every_seconds` says
        how far apart pieces of text come. Set `cancel` to stop; it is also set by this method once it has no other use
        than to end the follow-up questions.
        """
        if chat_log_id is None:
            chat_log_id = self.chat_logs.open(
                question.identity,
                question.text,
                collection_id=question.collection.id,
                limited_to=question.limited_to,
            )
        run = AnswerRun(self._parts, question, profile, cancel, chat_log_id, on_step, every_seconds)
        routed, writer = RoutedAnswer(run), AnswerWriter(run)
        try:
            with working():
                run.hold_to_budget()
                # Small talk and whole documents need no search.
                reply = routed.reply() if profile.answer.own_replies else None
                context = writer.as_meant(run.retrieve(run.rewrite())) if reply is None else None
            if reply is not None:
                yield from routed.write(reply)
            elif context is not None:
                yield from writer.write(context)
            with working():
                run.check_citations()
            yield CitationsEvent(run.citations, run.kind, run.state, run.notices, run.outcome)
            with extra("next questions"):
                run.suggest_follow_ups()
        except (GeneratorExit, KeyboardInterrupt):
            run.end(Outcome.STOPPED, MessageState.STOPPED)
            raise
        except RagError as exc:
            run.end(Outcome.FAILED, MessageState.CUT if run.text else MessageState.FAILED, str(exc))
        except Exception:
            log.exception("an answer failed")
            run.end(Outcome.FAILED, MessageState.CUT if run.text else MessageState.FAILED, str(RagError()))
        finally:
            with extra("row of the log"):
                run.close()
        yield run.done()
