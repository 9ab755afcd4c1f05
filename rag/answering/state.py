"""Hold a question's state in the pipeline: known facts, and the text shown to the reader.

Each step is a function in a different module. `pipeline.py` calls the steps in order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from threading import Event
from uuid import UUID

from rag.answering.carried_over import Carried
from rag.answering.citations import CitationFilter, cited
from rag.answering.events import CitationKind, DoneEvent, StepEvent, TextEvent
from rag.language import N_
from rag.money.metered import MeteredChatModel
from rag.monitoring.tracing import ms_since
from rag.profiles.profile import Profile
from rag.providers import ChatModel
from rag.providers.registry import Providers
from rag.records.chat_logs import ChatLogs
from rag.retrieval.query_understanding import question_language
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.types import ChatMessage, Citation, ContextResponse, Identity, MessageState, Outcome, Question, RAGDetails

#: The ledger's name for the call which writes the answer.
ANSWER = "answer"
ONLY_CHOSEN = N_("Only the chosen documents were searched. Other documents may answer this question.")


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The services which the pipeline's steps use."""

    retriever: Retriever
    providers: Providers
    chat_logs: ChatLogs
    settings: Settings
    #: Returns why this person may not spend more, or "".
    stop_spending: Callable[[Identity], str] = lambda _identity: ""
    #: Whether a budget limits this person's spending.
    has_budget: Callable[[Identity], bool] = lambda _identity: False


@dataclass(kw_only=True)
class AnswerState:
    """A question on its way through the pipeline."""

    parts: Parts
    question: Question
    profile: Profile
    #: Set by the reader to stop the answer.
    cancel: Event
    chat_log_id: UUID
    #: Receives each step at its start. Without it, `pending_steps` yields the steps.
    on_step: Callable[[StepEvent], None] | None = None
    #: Returns the seconds between pieces of text.
    every_seconds: Callable[[], float]

    text: str = ""
    outcome: Outcome = Outcome.ANSWERED
    state: MessageState = MessageState.COMPLETE
    #: A sentence saying why the answer failed or ended early, else "".
    reason: str = ""
    #: Sentences about skipped steps.
    asides: list[str] = field(default_factory=list)
    #: Sentences about cited documents which are not valid today.
    warnings: list[str] = field(default_factory=list)
    error: str = ""
    #: The model which wrote the answer, or "".
    model: str = ""
    citations: tuple[Citation, ...] = ()
    kind: CitationKind = "cited"
    #: Whether the text consists only of quotations and fixed sentences.
    is_quoted: bool = False
    #: Set if the documents answer only some questions in the message.
    has_unanswered: bool = False
    #: Whether the model's text was withdrawn.
    is_withdrawn: bool = False
    follow_ups: tuple[str, ...] = ()
    #: The passages found.
    context: ContextResponse | None = None
    #: For a message with several questions and no model: a state for each question, with its passages.
    single_questions: Sequence[AnswerState] = ()
    #: The messages sent to the answering model by the last call.
    messages: Sequence[ChatMessage] = ()
    details: RAGDetails = field(default_factory=RAGDetails)
    first_text_ms: int | None = None
    text_ms: int | None = None
    cost: Decimal | None = None

    def __post_init__(self) -> None:
        self.started = time.perf_counter()
        self.language = question_language(self.question)
        #: The answer's language: the profile's fixed language, else the question's.
        self.answer_language = self.profile.language.answer_language or self.language
        #: The question completed from the conversation.
        self.carried = Carried(self.question.text)
        self.details.query.original = self.question.text
        self.bill = self.parts.chat_logs.bill(self.tenant_id, self.chat_log_id, is_awaited=True)
        #: Whether the next text replaces the text shown so far.
        self._starts_over = False
        #: Text to show again together with the next text.
        self._kept = ""
        self._steps: list[StepEvent] = []

    @property
    def tenant_id(self) -> str:
        return self.question.identity.tenant_id

    def for_question(self, text: str, before: Sequence[str]) -> AnswerState:
        """Return the state for a single question from the message, with the same bill; `before` are the earlier
        questions.
        """
        earlier = [ChatMessage(role="user", content=question) for question in before]
        history = (*self.question.history, *earlier)
        part = AnswerState(
            parts=self.parts,
            question=replace(self.question, text=text, history=history, language=self.language),
            profile=self.profile,
            cancel=self.cancel,
            chat_log_id=self.chat_log_id,
            on_step=self.on_step,
            every_seconds=self.every_seconds,
        )
        part.answer_language, part.bill = self.answer_language, self.bill
        return part

    def add_times(self, part: AnswerState) -> None:
        """Add the search times of `part` to this question's times."""
        times, added = self.details.timing, part.details.timing
        times.translation_ms += added.translation_ms
        times.embedding_ms += added.embedding_ms
        times.search_ms += added.search_ms
        times.reranking_ms += added.reranking_ms

    # Money

    def hold_to_budget(self) -> None:
        """If the user's budget is spent, turn off paid models for this question and add a notice."""
        if not self.profile.spends:
            return
        if self.parts.has_budget(self.question.identity):
            # Write this question's cost so far, because other questions asked at the same time share the budget.
            self.bill.write_known()
        if why := self.parts.stop_spending(self.question.identity):
            self.profile = self.profile.model_copy(update={"spends": False})
            self.asides.append(why)

    # Models

    @property
    def answer_model(self) -> ChatModel | None:
        """The billed model which writes answers, if any."""
        return self._metered(self.parts.providers.chat_model_for(self.profile), "openai", name=ANSWER)

    @property
    def routing_model(self) -> ChatModel | None:
        """The inexpensive model which interprets unclear messages, if any."""
        return self._metered(self.parts.providers.translation_model_for(self.profile), "rewriting")

    @property
    def rewriting_model(self) -> ChatModel | None:
        """The inexpensive model which rewrites follow-ups: the translation model, else the answering model."""
        return self._metered(self._small_model, "rewriting")

    @property
    def next_question_model(self) -> ChatModel | None:
        """The model which suggests questions.

        If translations use a different provider, this is the answering model. Otherwise, this is the translation model,
        or the answering model if there is no translation model.
        """
        providers = self.parts.providers
        answering = providers.chat_choice(self.profile)
        is_other = answering.provider != providers.translation_choice(self.profile).provider
        is_own = is_other and not answering.is_elsewhere
        model = providers.chat_model_for(self.profile) if is_own else self._small_model
        return self._metered(model, "follow_ups", name="follow-ups")

    @property
    def _small_model(self) -> ChatModel | None:
        providers = self.parts.providers
        return providers.translation_model_for(self.profile) or providers.chat_model_for(self.profile)

    def _metered(self, model: ChatModel | None, line: str, *, name: str = "") -> ChatModel | None:
        return MeteredChatModel(model, self.bill, line=line, name=name) if model is not None else None

    # Progress and outcome

    def step(self, name: str, detail: str = "") -> None:
        """Record that a step starts, and report this to the reader."""
        (self.on_step or self._steps.append)(StepEvent(name, detail))

    def pending_steps(self) -> Iterator[StepEvent]:
        """Yield the steps started since the last call."""
        pending, self._steps[:] = list(self._steps), []
        yield from pending

    def end(self, outcome: Outcome, state: MessageState, notice: str = "") -> None:
        """Set how the answer ended; `notice` is the reason shown to the reader."""
        self.outcome, self.state = outcome, state
        self.reason = notice or self.reason
        self.error = notice if outcome in (Outcome.FAILED, Outcome.REFUSED) else ""

    @property
    def elapsed_ms(self) -> int:
        """Return the milliseconds from the question until the text was complete, or until now."""
        return self.text_ms if self.text_ms is not None else round(ms_since(self.started))

    @property
    def notices(self) -> tuple[str, ...]:
        """Return sentences for the reader, for example why the answer failed, or that a document is not valid today."""
        is_narrowed = bool(self.question.document_ids) or not self.question.filters.is_empty
        chosen = ONLY_CHOSEN if is_narrowed and self.outcome is Outcome.NO_CONTEXT else ""
        return tuple(filter(None, (self.reason, chosen, *self.asides, *self.warnings)))

    def done(self) -> DoneEvent:
        """Build the answer's last event."""
        return DoneEvent(
            outcome=self.outcome,
            state=self.state,
            notices=self.notices,
            cost=self.cost,
            total_ms=self.elapsed_ms,
            citations=self.citations,
            kind=self.kind,
            follow_ups=self.follow_ups,
        )

    # The text

    def show(self, text: str) -> Iterator[TextEvent]:
        """Append text and yield the event for the reader."""
        if not text:
            return
        is_first = self.first_text_ms is None
        if is_first:
            self.first_text_ms = self.elapsed_ms
        text, self._kept = self._kept + text, ""
        self.text += text
        starts_over, self._starts_over = self._starts_over, False
        yield TextEvent(text, starts_over)
        if is_first:
            self.bill.write()

    def show_quotes(self, text: str, context: ContextResponse) -> Iterator[TextEvent]:
        """Append quotations, with their citations renumbered in the order of the text."""
        filtered = CitationFilter([citation.number for citation in context.citations])
        if self.cancel.is_set():
            self.end(Outcome.STOPPED, MessageState.STOPPED)
        else:
            yield from self.show(filtered.feed(text) + filtered.finish())
        self.citations = cited(context.citations, filtered.text_numbers)
        self.is_quoted = True

    def withdraw(self) -> None:
        """Withdraw the text shown so far; the next text replaces it."""
        self.text, self.citations = "", ()
        self.is_withdrawn = self._starts_over = True

    def start_again(self, text: str) -> None:
        """Withdraw the text shown after `text`. The next text then follows `text`."""
        self.text, self._kept = "", text
        self._starts_over = True

    def show_nearest(self, *, keep: bool = False) -> None:
        """Set the citations to the nearest passages. With `keep`, cited passages come first and keep their numbers."""
        if self.context is None:
            return
        first = self.citations if keep else ()
        cited_ids = {citation.chunk_id for citation in first}
        nearest = [c for c in (*self.context.citations, *self.context.nearest) if c.chunk_id not in cited_ids]
        numbered = (replace(c, number=number) for number, c in enumerate(nearest, start=len(first) + 1))
        self.citations = (*first, *numbered)
        self.kind = "nearest"
