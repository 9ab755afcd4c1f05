"""Hold one question under way: its steps, and what each leaves for the next and for the log.

`pipeline.py` has the order of the steps and closes the log whatever happens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from threading import Event
from uuid import UUID

from rag.answering.call_records import CallRecords
from rag.answering.canned_answers import (
    EARLIER_VERSION,
    NEWER_VERSION,
    NO_LONGER_VALID,
    NOT_YET_VALID,
    STILL_VALID,
    phrase,
)
from rag.answering.carried_over import Carried
from rag.answering.citations import (
    CitationFilter,
    cited,
    cited_figures,
    quoted,
    verified,
    with_matched_terms,
    with_rows,
    with_section,
)
from rag.answering.events import CitationKind, DoneEvent, StepEvent, TextEvent
from rag.answering.extras import extra
from rag.answering.follow_up_rewriting import Standalone, shares_words, stand_alone
from rag.answering.prompts import recent_turns, system_prompt
from rag.answering.routes.documents import ReadableDocuments
from rag.answering.suggested_questions import filled_up, is_question, suggest_follow_ups
from rag.errors import ProviderError, ProviderKeyRejected, ProviderQuotaExhausted
from rag.ingestion.loaders import has_rows
from rag.ingestion.question_templates import nobody_asks
from rag.language import N_
from rag.money.ledger import Ledger
from rag.monitoring.tracing import ms_since
from rag.profile import Profile
from rag.providers import ChatModel
from rag.providers.registry import Providers
from rag.providers.tokens import estimate_tokens
from rag.records.chat_logs import ChatLogs, Prompt, SentPassage
from rag.retrieval.query_understanding import question_language
from rag.retrieval.retriever import Retriever
from rag.settings import Settings
from rag.settings.providers import provider_name
from rag.text.language_detection import detect_language
from rag.types import (
    ChatMessage,
    Citation,
    ContextResponse,
    Identity,
    MessageState,
    Outcome,
    Question,
    RAGDetails,
    SuggestedQuestions,
    TokenUsage,
)

#: Tokens are estimated, and a model's own tokenizer may count more: a prompt fills no more than this share of a window.
SAFE_SHARE = 0.8
#: Passages get so many tokens, however small the window is.
LEAST_CONTEXT_TOKENS = 200
ONLY_CHOSEN = N_("Only the documents that were chosen were searched. The others may answer this.")


#: Why a provider did not answer, with its name: those who run the product can change it.
KEY_REJECTED = N_("{provider} rejected its API key. It is replaced on the page Set-up.")
QUOTA_EXHAUSTED = N_(
    "The quota of {provider} is used up, or its rate limit is reached. Try again later, or raise the quota there."
)


def why_failed(error: ProviderError, provider: str) -> str:
    """Return the sentence of an error; where it is the general one about a key or a quota, the one with the name."""
    sentence = str(error)
    if sentence == str(ProviderKeyRejected()):
        return KEY_REJECTED.format(provider=provider_name(provider))
    if sentence == str(ProviderQuotaExhausted()):
        return QUOTA_EXHAUSTED.format(provider=provider_name(provider))
    return sentence


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Everything that answering needs."""

    retriever: Retriever
    providers: Providers
    ledger: Ledger
    chat_logs: ChatLogs
    settings: Settings
    #: Returns a sentence where no more may be spent for this person; "" where it may.
    stop_spending: Callable[[Identity], str] = lambda _identity: ""
    #: Tells whether a budget holds for this person.
    has_budget: Callable[[Identity], bool] = lambda _identity: False


class AnswerRun:
    """One question under way."""

    def __init__(
        self,
        parts: Parts,
        question: Question,
        profile: Profile,
        cancel: Event,
        chat_log_id: UUID,
        on_step: Callable[[StepEvent], None] | None,
        every_seconds: Callable[[], float],
    ) -> None:
        self.parts = parts
        self.question = question
        self.profile = profile
        self.cancel = cancel
        self.started = time.perf_counter()
        self.language = question_language(question)
        #: The language for the answer: the profile's, if set.
        self.answer_language = profile.language.answer_language or self.language
        self.text = ""
        self.outcome = Outcome.ANSWERED
        self.state = MessageState.COMPLETE
        #: Why it did not end well, and which steps were skipped on the way: a sentence each.
        self.reason = ""
        self.asides: list[str] = []
        #: Of documents that are not valid today.
        self.warnings: list[str] = []
        self.error = ""
        self.model = ""
        self.citations: tuple[Citation, ...] = ()
        self.kind: CitationKind = "cited"
        #: Whether the text quotes the documents word for word, in a frame of the product's own.
        self.is_quoted = False
        self.follow_ups: tuple[str, ...] = ()
        self.context: ContextResponse | None = None
        #: The messages sent to the answering model, in the last of several calls.
        self.messages: Sequence[ChatMessage] = ()
        #: The question, completed from the conversation.
        self.carried = Carried(question.text)
        self.details = RAGDetails()
        self.details.query.original = question.text
        self.calls = CallRecords(
            question.identity.tenant_id,
            chat_log_id,
            ledger=parts.ledger,
            chat_logs=parts.chat_logs,
            is_awaited=True,
        )
        self.first_text_ms: int | None = None
        self.text_ms: int | None = None
        self.cost: Decimal | None = None
        #: Whether the model's text was withdrawn, and whether nothing was shown in its place yet.
        self._is_withdrawn = self._starts_over = False
        #: What of a text taken back is shown again with the next.
        self._kept = ""
        self._steps: list[StepEvent] = []
        self._on_step = on_step or self._steps.append
        self.every_seconds = every_seconds

    # The steps

    def hold_to_budget(self) -> None:
        """Go on without models that cost money once a budget is spent."""
        if not self.profile.spends:
            return
        if self.parts.has_budget(self.question.identity):
            # What this question cost so far counts for all that ask at the same time.
            self.calls.write_known()
        if why := self.parts.stop_spending(self.question.identity):
            self.profile = self.profile.model_copy(update={"spends": False})
            self.asides.append(why)

    def rewrite(self) -> Standalone:
        """Rewrite a follow-up question so that it can be understood without the conversation."""
        is_wanted = self.profile.answer.rewrite_follow_ups
        if not self.question.history or not is_wanted or self.cancel.is_set():
            return Standalone(self.question.text)
        model = self._small_model()
        if model is not None:
            self.step("rewriting")
        started = time.perf_counter()
        with self.calls.paying("chat", line="rewriting"):
            found = stand_alone(
                self.question.text,
                self.question.history,
                language=self.language,
                model=model,
                maximum_characters=self.parts.settings.maximum_question_characters,
                titles=self._titles,
            )
        if found.usage is not None:
            self.calls.charge("chat", found.usage, line="rewriting")
        if found.notice:
            self.asides.append(found.notice)
        if model is not None:
            self.details.timing.openai_ms += ms_since(started)
        return found

    def _titles(self) -> list[str]:
        found = ReadableDocuments(self.parts.chat_logs.database, self.question)
        return [document.title for document in found.documents()]

    def retrieve(self, asked: Standalone) -> ContextResponse:
        """Find the passages to answer from."""
        text, self.carried = asked.text, asked.carried
        if self.cancel.is_set():
            return ContextResponse(
                context_text="", citations=(), token_usage=TokenUsage(), cost=Decimal(0), rag_details=self.details
            )
        context = self.parts.retriever.retrieve_context(
            replace(self.question, text=text),
            profile=self._profile_that_fits(),
            language=self.language,
            on_step=self.step,
            recorder=self.calls,
        )
        if asked.is_joined:
            # Passages found only through the previous question are not near this one.
            own = (c for c in context.nearest if shares_words(self.question.text, c.matched_terms, self.language))
            context = replace(context, nearest=tuple(own))
        rewriting_ms = self.details.timing.openai_ms
        self.context = context
        self.details = context.rag_details
        self.details.query.original = self.question.text
        self.details.timing.openai_ms += rewriting_ms
        if text != self.question.text:
            self.details.query.expanded = [text, *(q for q in self.details.query.expanded if q != text)]
        self.asides += context.notices
        return context

    def rules(self) -> str:
        """Return the system prompt of this answer."""
        answer = self.profile.answer
        return system_prompt(
            answer.prompt,
            language=self.answer_language,
            persona_name=answer.persona_name,
            persona_facts=answer.persona_facts,
            own_name=answer.own_name,
            own_rules=answer.own_rules,
            is_source=answer.source_prompt,
        )

    def _profile_that_fits(self) -> Profile:
        """Return the profile, with fewer tokens of passages where the model is known to read less."""
        model = self.parts.providers.chat_model_for(self.profile)
        window = model.context_window() if model is not None else None
        if window is None:
            return self.profile
        answer = self.profile.answer
        around = [self.rules(), *(turn.content for turn in recent_turns(self.question.history)), self.question.text]
        spoken = sum(map(estimate_tokens, around)) + min(answer.maximum_output_tokens, window // 4)
        room = max(LEAST_CONTEXT_TOKENS, int(window * SAFE_SHARE) - spoken)
        return self.profile.changed(context_tokens=room) if room < answer.context_tokens else self.profile

    def _with_rows(self, citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
        """Name the rows of citations of spreadsheets."""
        of_sheets = [citation for citation in citations if has_rows(citation.file_name)]
        pages = self.calls.sheet_pages(of_sheets) if of_sheets else {}
        marked = quoted(self.text, citations) if pages else {}
        return tuple(with_rows(c, marked[c.number], pages[c.chunk_id]) if c.chunk_id in pages else c for c in citations)

    def check_citations(self) -> None:
        """Mark the question's words and the answer's figures in each passage, and note figures it does not support.

        Each citation then names the section that holds most of the marked words.
        """
        language = self.question.collection.language
        checked = tuple(
            with_matched_terms(
                citation,
                (self.question.text, cited_figures(self.text, citation.number)),
                detect_language(citation.passage[:400], [language]),
            )
            for citation in self.citations
        )
        if self.kind == "cited":
            if not self.is_quoted:
                checked = verified(
                    self.text,
                    checked,
                    question=self.question.text,
                    page_text=self.calls.page_text,
                    language=detect_language(self.text[:400], [self.answer_language]),
                    likely=(language,),
                )
            with extra("warnings of old documents"):
                self.warnings = self._warnings(checked)
        self.citations = checked
        with extra("names of sections"):
            places = self.calls.passage_places(checked) if checked else {}
            self.citations = tuple(with_section(c, places[c.chunk_id]) if c.chunk_id in places else c for c in checked)
        with extra("rows of spreadsheets"):
            self.citations = self._with_rows(self.citations)
        # A reply that names no source, or none that holds, is not an answer.
        if self.outcome is Outcome.ANSWERED and not (
            self.kind == "cited" and any(citation.is_supported for citation in self.citations)
        ):
            self.outcome = Outcome.PERHAPS

    def _warnings(self, cited: Sequence[Citation]) -> list[str]:
        """Say of each document the answer was built on that it is not valid today, and since when or from when; of an
        earlier version, on which day it was.
        """
        titles = {citation.document_id: citation.title for citation in cited}
        found = dict(self.calls.days_of_invalid(titles)) if titles else {}
        sentences = []
        for version in self.context.versions if self.context is not None else ():
            if version.document_id not in titles:
                continue
            found.pop(version.document_id, None)
            is_coming = version.valid_from is not None and version.day == datetime.now(UTC).date()
            sentences.append(
                phrase(NEWER_VERSION if is_coming else EARLIER_VERSION, self.answer_language).format(
                    title=version.title,
                    version=version.version,
                    day=version.valid_from if is_coming else version.day,
                )
            )
        for version in self.context.staying if self.context is not None else ():
            if version.document_id in titles:
                sentence = phrase(STILL_VALID, self.answer_language)
                sentences.append(sentence.format(title=version.title, version=version.version, day=version.day))
        for document_id, (is_over, day) in found.items():
            words = NO_LONGER_VALID if is_over else NOT_YET_VALID
            sentences.append(phrase(words, self.answer_language).format(title=titles[document_id], day=day))
        return sentences

    def suggest_follow_ups(self) -> None:
        """Add follow-up questions, where a model is there and the answer is whole."""
        self.text_ms = self._elapsed_ms()
        model = self._follow_up_model()
        is_reply = self.outcome in (Outcome.ANSWERED, Outcome.PERHAPS)
        if not is_reply or self.cancel.is_set() or not self.profile.answer.follow_ups:
            return
        if model is None or self.context is None or not self.model or self._is_withdrawn:
            return
        begun: list[UUID | None] = []
        found = suggest_follow_ups(
            question=self.question.text,
            answer=self.text,
            context_text=self.context.context_text,
            language=self.answer_language,
            model=model,
            count=self.profile.answer.follow_ups,
            cancel=self.cancel,
            on_send=lambda expected: begun.append(self.calls.begin("chat", "follow-ups", expected)),
        )
        self.follow_ups = found.questions
        if len(found.questions) < self.profile.answer.follow_ups:
            self.follow_ups = filled_up(
                found.questions,
                self._questions_of_documents(),
                asked=self.question.text,
                count=self.profile.answer.follow_ups,
            )
        for usage in found.lost:
            self.calls.charge("chat", usage, line="follow_ups")
        self.calls.finish(begun[0] if begun else None, "chat", found.usage, line="follow_ups")

    def _follow_up_model(self) -> ChatModel | None:
        """Return the small model, or the profile's own model for another provider."""
        providers = self.parts.providers
        answering = providers.chat_choice(self.profile)
        is_own = (
            answering.provider != providers.translation_choice(self.profile).provider and not answering.is_elsewhere
        )
        return providers.chat_model_for(self.profile) if is_own else self._small_model()

    def _questions_of_documents(self) -> list[str]:
        """Return questions that the documents searched answer in the answer's language, as they were read from them."""
        question = self.question
        if not question.filters.is_empty:
            return []  # what else these leave is not known here
        documents = self.parts.chat_logs.database.fetch_all(
            question.identity,
            "suggestions",
            SuggestedQuestions,
            collection_ids=[collection.id for collection in (question.collection, *question.others)],
            document_ids=list(question.document_ids) or None,
        )
        found = [q for document in documents for q in document.in_language(self.answer_language)]
        return [question for question in found if is_question(question) and not nobody_asks(question)]

    def step(self, name: str, detail: str = "") -> None:
        self._on_step(StepEvent(name, detail))

    def end(self, outcome: Outcome, state: MessageState, notice: str = "") -> None:
        self.outcome, self.state = outcome, state
        self.reason = notice or self.reason
        self.error = notice if outcome in (Outcome.FAILED, Outcome.REFUSED) else ""

    def close(self) -> None:
        """Close the row of the log."""
        total_ms = self.text_ms if self.text_ms is not None else self._elapsed_ms()
        self.details.costs = self.calls.costs()
        self.details.timing.openai_ms = round(self.details.timing.openai_ms, 1)
        self.details.timing.total_ms = float(total_ms)
        # Without titles: what is logged outlives documents.
        self.details.notices = list(dict.fromkeys(self.asides)) or None
        # The documents an answer was built on; none where there was no answer.
        used = self.citations if self.kind == "cited" else ()
        self.cost = self.calls.close(
            outcome=self.outcome,
            answer=self.text,
            details=self.details,
            error=self.error,
            language=self.language,
            model=self.model,
            document_ids=list(dict.fromkeys(citation.document_id for citation in used)),
            first_token_ms=self.first_text_ms,
            total_ms=total_ms,
            prompt=self._prompt(),
        )

    def _prompt(self) -> Prompt | None:
        """Return the messages sent and the numbered passages, each with its outcome as a source."""
        passages = self.context.citations if self.context is not None else ()
        if not passages and not self.messages:
            return None
        named = {citation.chunk_id: citation for citation in (self.citations if self.kind == "cited" else ())}
        return Prompt(
            messages=tuple((message.role, message.content) for message in self.messages),
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

    @property
    def notices(self) -> tuple[str, ...]:
        """Return the sentences for the reader: why the answer did not end well, then which steps were skipped."""
        is_narrowed = bool(self.question.document_ids) or not self.question.filters.is_empty
        chosen = ONLY_CHOSEN if is_narrowed and self.outcome is Outcome.NO_CONTEXT else ""
        return tuple(filter(None, (self.reason, chosen, *self.asides, *self.warnings)))

    def done(self) -> DoneEvent:
        return DoneEvent(
            outcome=self.outcome,
            state=self.state,
            notices=self.notices,
            cost=self.cost,
            total_ms=self.text_ms if self.text_ms is not None else self._elapsed_ms(),
            citations=self.citations,
            kind=self.kind,
            follow_ups=self.follow_ups,
        )

    # The text

    def show_pieces(self, text: str, context: ContextResponse) -> Iterator[TextEvent]:
        """Show quotations, their numbers in the order of the text."""
        filtered = CitationFilter([citation.number for citation in context.citations])
        if self.cancel.is_set():
            self.end(Outcome.STOPPED, MessageState.STOPPED)
        else:
            yield from self.show(filtered.feed(text) + filtered.finish())
        self.citations = cited(context.citations, filtered.shown)
        self.is_quoted = True

    def say(self, sentence: str) -> Iterator[TextEvent]:
        yield from self.show(sentence)

    def show(self, text: str) -> Iterator[TextEvent]:
        if not text:
            return
        is_first = self.first_text_ms is None
        if is_first:
            self.first_text_ms = self._elapsed_ms()
        text, self._kept = self._kept + text, ""
        self.text += text
        starts_over, self._starts_over = self._starts_over, False
        yield TextEvent(text, starts_over)
        if is_first:
            self.calls.write()

    def withdraw(self) -> None:
        """Withdraw the text shown so far; the next text replaces it."""
        self.text, self.citations = "", ()
        self._is_withdrawn = self._starts_over = True

    def start_again(self, text: str) -> None:
        """Take back all shown after `text`; the next text follows it."""
        self.text, self._kept = "", text
        self._starts_over = True

    def show_nearest(self, *, keep: bool = False) -> None:
        """Show the nearest passages instead of cited ones; with `keep`, numbers already in the text stay theirs."""
        if self.context is None:
            return
        first = self.citations if keep else ()
        known = {citation.chunk_id for citation in first}
        others = [c for c in (*self.context.citations, *self.context.nearest) if c.chunk_id not in known]
        numbered = (replace(c, number=number) for number, c in enumerate(others, start=len(first) + 1))
        self.citations = (*first, *numbered)
        self.kind = "nearest"

    # Small things

    def _small_model(self) -> ChatModel | None:
        """For rewriting and follow-ups: the inexpensive model that also translates, else the one that answers."""
        providers = self.parts.providers
        return providers.translation_model_for(self.profile) or providers.chat_model_for(self.profile)

    def pending_steps(self) -> Iterator[StepEvent]:
        pending, self._steps[:] = list(self._steps), []
        yield from pending

    def _elapsed_ms(self) -> int:
        return round(ms_since(self.started))
