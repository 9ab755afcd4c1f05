"""Answer a question: route → rewrite → retrieve → write → check citations → suggest → log, in this order.

The last event is always `DoneEvent`. By then, every paid call is in the ledger and the question's log row is closed
with the outcome, even if the reader leaves and the generator is closed early. No database connection is held while a
model writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from threading import Event
from uuid import UUID

from rag.answering.canned_answers import (
    EARLIER_VERSION,
    NEWER_VERSION,
    NO_LONGER_VALID,
    NOT_YET_VALID,
    STILL_VALID,
    phrase,
)
from rag.answering.citations import cited_figures, quoted, verified, with_matched_terms, with_rows, with_section
from rag.answering.events import AnswerEvent, CitationsEvent, DoneEvent, StepEvent, TextEvent
from rag.answering.extras import extra
from rag.answering.follow_ups import rewrite, suggest_next_questions
from rag.answering.retrieving import retrieve
from rag.answering.routes import Router, RouteReply
from rag.answering.state import AnswerState, Parts
from rag.answering.writing import write, write_reply
from rag.errors import RagError
from rag.ingestion.loaders.format_table import has_rows
from rag.money.bill import costs_of
from rag.profiles.profile import Profile
from rag.providers.processor import working
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs, Prompt, QuestionEnd, SentPassage
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.text.language_detection import detect_language
from rag.types import Citation, Identity, MessageState, Outcome, Question

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
        """`stop_spending` returns the reason why a person may not use paid models, or "" if they may.

        `has_budget` tells whether a person has a budget limit.
        """
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
        """Yield the answer's events, ending with `DoneEvent`. Errors become the answer's outcome.

        `chat_log_id` is the question's open log row. If missing, a row is opened, which may raise
        `DatabaseUnavailable`. `on_step` receives each step when starting; if missing, steps are yielded.
        `every_seconds` returns the seconds between pieces of text. Set `cancel` to stop the answer. If suggesting
        questions takes too long, `cancel` is also set here.
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


def route(state: AnswerState) -> RouteReply | None:
    """Return the reply to small talk or to a question about whole documents, or `None` if a search is needed."""
    if not state.profile.answer.own_replies:
        return None
    router = Router(
        database=state.parts.chat_logs.database,
        question=state.question,
        language=state.language,
        answer_language=state.answer_language,
        fixed_language=state.profile.language.answer_language,
        model=state.answer_model,
        small_model=state.routing_model,
        price=state.bill.price,
    )
    return router.reply()


def check_citations(state: AnswerState) -> None:
    """Mark the question's words and the answer's numbers in each cited passage, and flag unsupported sentences.

    Each citation also gets the section with the cited sentences.
    """
    language = state.question.collection.language
    checked = tuple(
        with_matched_terms(
            citation,
            (state.question.text, cited_figures(state.text, citation.number)),
            detect_language(citation.passage[:400], [language]),
        )
        for citation in state.citations
    )
    if state.kind == "cited":
        if not state.is_quoted:
            checked = verified(
                state.text,
                checked,
                question=state.question.text,
                page_text=partial(_page_text, state),
                language=detect_language(state.text[:400], [state.answer_language]),
                likely=(language,),
            )
        with extra("warnings of old documents"):
            state.warnings = _warnings(state, checked)
    state.citations = checked
    with extra("names of sections"):
        chunk_ids = [citation.chunk_id for citation in checked]
        places = state.parts.chat_logs.passage_places(state.tenant_id, chunk_ids) if checked else {}
        marked = quoted(state.text, checked) if places else {}
        state.citations = tuple(
            with_section(c, places[c.chunk_id], marked[c.number]) if c.chunk_id in places else c for c in checked
        )
    with extra("rows of spreadsheets"):
        state.citations = _with_rows(state, state.citations)
    # A reply without a supporting citation is no answer.
    if state.outcome is Outcome.ANSWERED and not (
        state.kind == "cited" and any(citation.is_supported for citation in state.citations)
    ):
        state.outcome = Outcome.PERHAPS


def _page_text(state: AnswerState, citation: Citation) -> str:
    first_page = citation.first_read_page or citation.first_page
    last_page = citation.last_read_page or citation.last_page
    return state.parts.chat_logs.page_text(state.tenant_id, citation.document_id, first_page, last_page)


def _warnings(state: AnswerState, cited: Sequence[Citation]) -> list[str]:
    titles = {citation.document_id: citation.title for citation in cited}
    invalid = state.parts.chat_logs.days_of_invalid(state.tenant_id, list(titles)) if titles else {}
    sentences = []
    for version in state.context.versions if state.context is not None else ():
        if version.document_id not in titles:
            continue
        invalid.pop(version.document_id, None)
        is_coming = version.valid_from is not None and version.day == datetime.now(UTC).date()
        sentences.append(
            phrase(NEWER_VERSION if is_coming else EARLIER_VERSION, state.answer_language).format(
                title=version.title,
                version=version.version,
                day=version.valid_from if is_coming else version.day,
            )
        )
    for version in state.context.staying if state.context is not None else ():
        if version.document_id in titles:
            sentence = phrase(STILL_VALID, state.answer_language)
            sentences.append(sentence.format(title=version.title, version=version.version, day=version.day))
    for document_id, (is_over, day) in invalid.items():
        words = NO_LONGER_VALID if is_over else NOT_YET_VALID
        sentences.append(phrase(words, state.answer_language).format(title=titles[document_id], day=day))
    return sentences


def _with_rows(state: AnswerState, citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
    of_sheets = [citation.chunk_id for citation in citations if has_rows(citation.file_name)]
    pages = state.parts.chat_logs.sheet_pages(state.tenant_id, of_sheets) if of_sheets else {}
    marked = quoted(state.text, citations) if pages else {}
    return tuple(with_rows(c, marked[c.number], pages[c.chunk_id]) if c.chunk_id in pages else c for c in citations)


def log_answer(state: AnswerState) -> None:
    """Close the log row with outcome, text, costs, times and prompt."""
    total_ms = state.elapsed_ms
    state.details.costs = costs_of(state.bill.entries)
    answer = [entry.charge.usage for entry in state.bill.entries if entry.line == "openai"]
    state.details.openai.input_tokens = sum(usage.input_tokens for usage in answer)
    state.details.openai.output_tokens = sum(usage.output_tokens for usage in answer)
    state.details.timing.openai_ms = round(state.details.timing.openai_ms, 1)
    state.details.timing.total_ms = float(total_ms)
    # Warnings are left out: they contain titles, and the log outlives documents.
    state.details.notices = list(dict.fromkeys(state.asides)) or None
    # Only cited documents count as used.
    used = state.citations if state.kind == "cited" else ()
    state.cost = state.parts.chat_logs.close_billed(
        state.bill,
        QuestionEnd(
            outcome=state.outcome,
            answer=state.text,
            details=state.details,
            error=state.error,
            language=state.language,
            model=state.model,
            document_ids=list(dict.fromkeys(citation.document_id for citation in used)),
            first_token_ms=state.first_text_ms,
            total_ms=total_ms,
            has_unanswered=state.has_unanswered,
            prompt=_prompt(state),
        ),
    )


def _prompt(state: AnswerState) -> Prompt | None:
    passages = state.context.citations if state.context is not None else ()
    if not passages and not state.messages:
        return None
    named = {citation.chunk_id: citation for citation in (state.citations if state.kind == "cited" else ())}
    return Prompt(
        messages=tuple((message.role, message.content) for message in state.messages),
        passages=tuple(
            SentPassage(
                number=passage.number, chunk_id=passage.chunk_id, document_id=passage.document_id,
                title=passage.title, first_page=passage.first_page, last_page=passage.last_page,
                section=passage.section, text=passage.passage,
                state="not named" if (source := named.get(passage.chunk_id)) is None
                else "held" if source.is_supported else "not held",
                unsupported=source.unsupported if source else (),
            )
            for passage in passages
        ),
    )  # fmt: skip
