"""Have a model write an answer from passages, check it as it is written, or quote the passages' own sentences.

An answer that goes round in circles or says what its passages do not is withdrawn. Each call is in the ledger whatever
became of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal
from uuid import UUID

from rag.answering.answer_run import AnswerRun, why_failed
from rag.answering.canned_answers import (
    BUDGET_SPENT,
    CLOSEST,
    DOCUMENTS_DIFFER,
    MODEL_FAILED,
    NO_MODEL,
    NOT_MENTIONED,
    NOT_THE_MODELS,
    NOTHING_FOUND,
    NOTHING_NEAR,
    OWN_PLACE_FIRST,
    UNCITED,
    also_in,
    phrase,
    quoted_as_they_stand,
    says_not_found,
)
from rag.answering.carried_over import NOTHING, own_terms
from rag.answering.citations import CitationFilter, cited
from rag.answering.events import AnswerEvent, ContextEvent, TextEvent
from rag.answering.extractive import Similarities, best_quotes, likeness_by, meant_parts
from rag.answering.follow_up_rewriting import Standalone
from rag.answering.guardrails import AnswerWatch, Trouble, sources_of
from rag.answering.prompts import NotFoundMark, answer_messages, own_place_rule, recent_turns
from rag.answering.quotations import Quotes
from rag.answering.reply_odds import (
    PERHAPS,
    PERHAPS_BY_WORDS,
    ReplySignals,
    outcome_of,
    probability,
    probability_by_words,
)
from rag.answering.since import SinceReply, since_reply
from rag.answering.unsourced import SourceFinder, first_of
from rag.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderRefused,
    ProviderStreamCut,
    ProviderStreamEmpty,
)
from rag.language import N_
from rag.monitoring.tracing import ms_since
from rag.providers import ChatModel, Completed, Discarded, Lost
from rag.providers.retry import estimated_chat
from rag.providers.tokens import estimate_tokens
from rag.retrieval.processor import working
from rag.retrieval.since import since_meant
from rag.text.language_detection import detect_language
from rag.types import ContextResponse, Evidence, MessageState, Outcome, Usage

#: The name of the call that writes the answer.
ANSWER = "answer"
TOO_LONG = N_("The answer reached its length limit and ends here.")
#: A server cuts a prompt that is longer than its window: perhaps the passage that answers was not read.
PROMPT_CUT = N_(
    "The language model could read only a part of what was found, so this answer may miss something. An "
    "administrator can give the model a larger context window."
)
OWN_PLACE = N_("The documents for your group, {group}, come first.")
UNSOURCED = N_("No passage was found that says: “{sentence}”")
#: Why a model's answer was withdrawn; the documents' own words follow it, where they hold the answer.
WITHDRAWN: dict[Trouble, str] = {
    "repeats": N_("The language model repeated itself, so its answer was stopped and withdrawn."),
    "unsupported": N_("Most of what the language model wrote is not in the passages it named: it was withdrawn."),
    "says nothing": N_("What the language model wrote states nothing, so it was withdrawn."),
}


def evidence_of(quotes: Quotes, context: ContextResponse) -> Evidence:
    """Return whether quotations answer: by their own probability, where no reranker judged the passages.

    Else the search decides. Without meaning, quotations that lack the kind of fact asked for, or are not on what is
    named, perhaps answer.
    """
    signals = signals_of(quotes, context)
    is_reranked = any(result.rerank_score is not None for result in context.results)
    if signals is None or is_reranked or context.probability is None:
        return context.evidence if quotes.answers else "perhaps"
    likely, perhaps, is_doubtful = probability(signals), PERHAPS, is_unnamed(quotes, context)
    if likely is None:
        likely, perhaps = probability_by_words(signals), PERHAPS_BY_WORDS
        is_doubtful = is_doubtful or not quotes.answers
    if is_doubtful and likely >= perhaps:
        return "perhaps"
    return outcome_of(likely, is_exact=signals.is_exact, perhaps=perhaps)


def is_unnamed(quotes: Quotes, context: ContextResponse) -> bool:
    """Tell whether the first quotation is from a document without a sign of the company or country in the question."""
    return any(c.number == quotes.numbers[0] and c.chunk_id in context.unnamed for c in context.citations)


def signals_of(quotes: Quotes, context: ContextResponse) -> ReplySignals | None:
    """Return the signals of the first quotation, completed from the search; None without a search result for it."""
    first = next(citation for citation in context.citations if citation.number == quotes.numbers[0])
    # A passage from a section pointed to has no search result.
    found = next((result for result in context.results if result.chunk_id == first.chunk_id), None)
    if quotes.signals is None or found is None:
        return None
    usual = context.usual_meanings.get(first.chunk_id)
    if context.probability is None:
        return replace(quotes.signals, meaning=None)
    if found.meaning is None or usual is None:
        return replace(quotes.signals, meaning=None, search=context.probability)
    return replace(quotes.signals, meaning=found.meaning, above_usual=found.meaning - usual, search=context.probability)


def _follows(
    own: frozenset[str],
    together: tuple[Quotes | None, ContextResponse],
    alone: tuple[Quotes | None, ContextResponse],
) -> bool:
    """Tell whether a question follows the conversation: the reply with the conversation is at least equally good.

    `own` are the terms which only this question has.
    """
    said = [own & quotes.said if quotes else frozenset[str]() for quotes, _ in (together, alone)]
    if own and not said[0]:
        return False
    return len(said[0]) >= len(said[1]) and _likely(*together) >= _likely(*alone)


def _likely(quotes: Quotes | None, context: ContextResponse) -> float:
    signals = signals_of(quotes, context) if quotes else None
    likely = probability(signals) if signals else None
    return likely if likely is not None else context.probability or 0.0


def _may_come_first(
    of_place: tuple[ContextResponse, Quotes | None], as_found: tuple[ContextResponse, Quotes | None]
) -> bool:
    """Tell whether quotations of the asker's place are good enough to come first.

    In another language they have to answer, unless only another place's do.
    """
    context, quotes = of_place
    if quotes is None or not quotes.is_own_place:
        return False
    evidence = evidence_of(quotes, context)
    if evidence != "perhaps" or quotes.signals is None or not quotes.signals.is_across:
        return evidence != "none"
    other_context, others = as_found
    return others is not None and evidence_of(others, other_context) == "answered"


@dataclass(frozen=True, kw_only=True)
class WholeDocumentsCall:
    """What a call about whole documents is made with: its rules, and the filter that numbers the citations of them all.

    `quotes` are the documents' own words for an answer that cannot be used; None where the call writes only a part.
    """

    system: str
    filtered: CitationFilter
    quotes: str | None = None


class AnswerWriter:
    """Writes the answer to a question."""

    def __init__(self, run: AnswerRun) -> None:
        self._run = run

    def as_meant(self, together: ContextResponse) -> ContextResponse:
        """Search a short question without the conversation too, and return the context with the better reply.

        `together` was found with the conversation.
        """
        run = self._run
        carried, details = run.carried, run.details
        if not carried.is_unsure or run.cancel.is_set():
            return together
        _, quotes = self._quotes(together)
        alone = run.retrieve(Standalone(run.question.text, carried=replace(NOTHING, names=carried.names)))
        _, quotes_alone = self._quotes(alone)
        run.asides = list(dict.fromkeys(run.asides))
        own = own_terms(run.question.text, carried.topic, run.language)
        if not _follows(own, (quotes, together), (quotes_alone, alone)):
            return alone
        run.context, run.details, run.carried = together, details, carried
        return together

    def write(self, context: ContextResponse) -> Iterator[AnswerEvent]:
        """Write the answer from the passages that were found, or say that there are none."""
        run = self._run
        yield from run.pending_steps()
        if run.cancel.is_set():
            run.end(Outcome.STOPPED, MessageState.STOPPED)
            return
        yield ContextEvent(context)
        if not context.citations:
            run.end(Outcome.NO_CONTEXT, MessageState.COMPLETE)
            run.show_nearest()
            yield from run.say(phrase(NOTHING_FOUND if run.citations else NOTHING_NEAR, run.answer_language))
            return
        run.hold_to_budget()
        model = run.parts.providers.chat_model_for(run.profile)
        if model is None:
            yield from self._quote(NO_MODEL if run.profile.spends else BUDGET_SPENT)
            return
        run.step("writing")
        yield from run.pending_steps()
        try:
            yield from self.stream(model, context)
        except ProviderRefused as exc:
            run.end(Outcome.REFUSED, MessageState.CUT if run.text else MessageState.COMPLETE, str(exc))
            if not run.text:
                run.show_nearest()
        except ProviderError as exc:
            if run.text:
                run.end(Outcome.FAILED, MessageState.CUT, why_failed(exc, model.provider))
                if not run.citations:
                    # The answer broke off before the first source: the passages found are shown below.
                    run.show_nearest()
                return
            yield from self._quote(MODEL_FAILED)
            # Perhaps no word from the model was shown, and nothing is kept.
            why = str(ProviderStreamEmpty()) if isinstance(exc, ProviderStreamCut) else why_failed(exc, model.provider)
            run.end(Outcome.FAILED, MessageState.CUT, why)

    def stream(
        self, model: ChatModel, context: ContextResponse, asked: WholeDocumentsCall | None = None
    ) -> Iterator[TextEvent]:
        """Have the model write from a context; `asked` is for a call about whole documents."""
        run = self._run
        run.model = model.model
        own_place = None if asked or run.profile.answer.source_prompt else context.own_place
        system = asked.system if asked else run.rules()
        if own_place is not None:
            numbers = [c.number for c in context.citations if c.document_id in own_place.documents]
            system = f"{system}\n\n{own_place_rule(own_place.group, numbers)}"
        messages = answer_messages(
            system=system,
            history=() if asked else recent_turns(run.question.history),
            context_text=context.context_text,
            question=run.question.text,
            form="" if asked else run.profile.answer.prompt if run.profile.answer.source_prompt else "",
        )
        run.messages = messages
        run.details.openai.model = model.model
        run.details.openai.temperature = run.profile.answer.temperature
        run.details.openai.system_prompt_tokens = estimate_tokens(system)
        mark = NotFoundMark()
        filtered = asked.filtered if asked else CitationFilter([citation.number for citation in context.citations])
        received: list[str] = []
        #: `received` without the reasoning before the answer.
        answer: list[str] = []
        before = run.text
        completed: Completed | None = None
        usage: Usage | None = None
        error: ProviderError | None = None
        call_id = run.calls.begin("chat", ANSWER, estimated_chat(model.provider, model.model, messages))
        # A summary is written in parts, and no part has everything.
        watch = None if asked and asked.quotes is None else self._watch(context, filtered)
        finder = None if asked else self._finder(context, filtered)
        trouble: Trouble | None = None
        started = time.perf_counter()
        try:
            for event in model.stream(
                messages,
                temperature=run.profile.answer.temperature,
                maximum_output_tokens=run.profile.answer.maximum_output_tokens,
                cancel=run.cancel,
                every_seconds=run.every_seconds,
            ):
                if isinstance(event, Completed):
                    completed, usage = event, event.usage
                    break
                if isinstance(event, Lost):
                    run.calls.charge("chat", event.usage, line="openai")
                    continue
                if isinstance(event, Discarded):
                    answer.clear()
                    run.start_again(before)
                    mark = NotFoundMark()
                    if asked is None:
                        filtered = CitationFilter([citation.number for citation in context.citations])
                        watch, finder = self._watch(context, filtered), self._finder(context, filtered)
                    continue
                received.append(event.text)
                answer.append(event.text)
                shown = filtered.feed(mark.feed(event.text))
                shown = finder.feed(shown) if finder else shown
                yield from run.show(shown)
                trouble = self._grave(watch.feed(shown)) if watch else None
                if trouble or run.cancel.is_set():
                    # Leaving the loop closes the call.
                    break
        except ProviderError as exc:
            error, usage = exc, exc.details.get("usage")
            raise
        finally:
            # In a `finally`, because the reader may leave at any `yield`.
            elapsed_ms = ms_since(started)
            run.details.openai.streaming_duration_ms = round(elapsed_ms, 1)
            run.details.timing.openai_ms += elapsed_ms
            self._charge_stream(
                call_id, estimated_chat(model.provider, model.model, messages, "".join(received)), usage, error
            )
            run.citations = cited(context.citations, filtered.shown)
        last = filtered.feed(mark.finish()) + filtered.finish()
        is_not_found = mark.is_set or says_not_found(run.text + last)
        if finder and completed is not None:
            last = finder.feed(last) + ("" if is_not_found else finder.finish())
        if watch and trouble is None and completed is not None:
            trouble = self._grave(watch.feed(last) or self._trouble_at_end(watch, finder, "".join(answer)))
        if trouble and not is_not_found:
            yield from self._withdraw(trouble, asked)
            return
        yield from run.show(last)
        run.citations = cited(context.citations, filtered.shown)
        self._note_ending(completed, is_not_found, "".join(answer))
        if finder and run.outcome is Outcome.ANSWERED:
            # An answer without any number says so as a whole.
            without = [*finder.unsupported, *(finder.unknown if run.kind == "cited" else ())]
            run.asides += [UNSOURCED.format(sentence=sentence) for sentence in first_of(without)]
        first = run.citations[0].document_id if run.kind == "cited" and run.citations else None
        if own_place is not None and first in own_place.documents:
            run.asides.append(OWN_PLACE.format(group=own_place.group))

    def _watch(self, context: ContextResponse, filtered: CitationFilter) -> AnswerWatch:
        """Return the guard that reads the answer while it is written."""
        run = self._run
        likely = (run.question.collection.language,)
        sources = sources_of(context.citations, context.context_text, likely)
        return AnswerWatch(sources, filtered.shown, run.question.text, self._written_language)

    def _finder(self, context: ContextResponse, filtered: CitationFilter) -> SourceFinder:
        """Return what finds the sources of sentences without a number while the answer is written."""
        run = self._run
        sources = sources_of(context.citations, context.context_text, (run.question.collection.language,))
        return SourceFinder(sources, filtered.shown, run.question.text, self._written_language)

    def _grave(self, trouble: Trouble | None) -> Trouble | None:
        """Return what an answer is withdrawn for; going round in circles always is."""
        return trouble if trouble == "repeats" or self._run.profile.answer.withdraw_unsupported else None

    @staticmethod
    def _trouble_at_end(watch: AnswerWatch, finder: SourceFinder | None, received: str) -> Trouble | None:
        if finder is None:
            return watch.finish()
        trouble = watch.finish(supported=finder.supported, unsupported=finder.unsupported)
        # A question back to the reader is no statement either, and no fault.
        is_empty = received.strip() and not finder.says_something and not received.rstrip().endswith(("?", "？", "؟"))
        return trouble or ("says nothing" if is_empty else None)

    def _written_language(self, text: str) -> str:
        """Return the language a text is written in, most likely the one it was asked to be in."""
        return detect_language(text[:400], [self._run.answer_language])

    def _withdraw(self, trouble: Trouble, asked: WholeDocumentsCall | None) -> Iterator[TextEvent]:
        """Put the passages' own sentences in the place of what the model wrote."""
        run = self._run
        run.asides.append(WITHDRAWN[trouble])
        run.withdraw()
        if asked is not None and asked.quotes is not None and run.context is not None:
            opening = phrase(NOT_THE_MODELS, run.answer_language)
            yield from run.show_pieces(f"{opening}\n\n{asked.quotes}", run.context)
            return
        yield from self._quote(NOT_THE_MODELS)

    def _note_ending(self, completed: Completed | None, is_not_found: bool, received: str) -> None:
        """Say how the stream ended. Raises `ProviderAnswerInvalid` for a reply without a word."""
        run = self._run
        reason = completed.finish_reason if completed else ""
        if completed is not None and completed.is_prompt_cut:
            run.asides.append(PROMPT_CUT)
        if completed is None and run.cancel.is_set():
            run.end(Outcome.STOPPED, MessageState.STOPPED)
        elif is_not_found:
            run.end(Outcome.NO_CONTEXT, MessageState.COMPLETE)
            run.show_nearest(keep=True)
        elif not received.strip():
            raise ProviderAnswerInvalid("The language model sent an empty answer.")
        elif reason == "length":
            run.end(Outcome.ANSWERED, MessageState.CUT, TOO_LONG)
        if run.outcome is Outcome.ANSWERED and not run.citations:
            run.asides.append(UNCITED)
            run.show_nearest()

    def _charge_stream(
        self, call_id: UUID | None, estimated: Usage, usage: Usage | None, error: ProviderError | None
    ) -> None:
        """Write the call into the ledger: as the provider counted it, or estimated where it did not say.

        A call that was refused before anything was written costs nothing.
        """
        run = self._run
        is_refused = error is not None and not error.details.get("is_perhaps_billed")
        if usage is None and (estimated.output_tokens or not is_refused):
            usage = estimated
        run.calls.finish(call_id, "chat", usage, line="openai")
        if usage is not None:
            run.details.openai.input_tokens = usage.input_tokens
            run.details.openai.output_tokens = usage.output_tokens

    def _quote(self, reason: dict[str, str]) -> Iterator[TextEvent]:
        """Answer without a model: with the passages' own sentences, opened by why there is no model."""
        run = self._run
        context = run.context
        context, quotes = self._quotes(context) if context is not None else (None, None)
        if context is None or quotes is None:
            run.end(Outcome.NO_CONTEXT, MessageState.COMPLETE)
            run.show_nearest()
            yield from run.say(phrase(NOTHING_FOUND if run.citations else NOTHING_NEAR, run.answer_language))
            return
        opening = phrase(reason, run.answer_language)
        evidence = evidence_of(quotes, context)
        if evidence == "none":
            run.end(Outcome.NO_CONTEXT, MessageState.COMPLETE)
            run.show_nearest()
            yield from run.say(phrase(NOTHING_FOUND, run.answer_language))
            return
        if evidence == "perhaps":
            quotes = quotes.closest
            closest = phrase(CLOSEST, run.answer_language)
            # The document may mention one of several names.
            if len(context.names) == 1 and is_unnamed(quotes, context):
                not_mentioned = phrase(NOT_MENTIONED, run.answer_language).format(name=context.names[0])
                closest = f"{closest} {not_mentioned}"
            opening = f"{closest} {opening}"
            if run.outcome is Outcome.ANSWERED:
                run.end(Outcome.PERHAPS, MessageState.COMPLETE)
        text = quotes.text
        asked = since_meant(run.question.text, run.language)
        if asked is not None:
            since = self._since(context, quotes, asked)
            if since == "not said":
                run.end(Outcome.NO_CONTEXT, MessageState.COMPLETE)
                run.show_nearest()
                yield from run.say(phrase(NOTHING_FOUND, run.answer_language))
                return
            if isinstance(since, SinceReply):
                text, context = since.text, replace(context, citations=since.citations)
                quotes = replace(quotes, numbers=tuple(citation.number for citation in since.citations))
                if not since.is_known and run.outcome is Outcome.ANSWERED:
                    run.end(Outcome.PERHAPS, MessageState.COMPLETE)
        elif evidence == "answered" or quotes.is_own_place:
            folders = context.own_place.folders if context.own_place is not None else {}
            also = also_in(quotes.also, context.citations, run.answer_language, folders)
            text = "\n\n".join(filter(None, (text, also)))
        if asked is None and quotes.is_own_place and context.own_place is not None:
            own_first = phrase(OWN_PLACE_FIRST, run.answer_language).format(group=context.own_place.group)
            opening = f"{opening} {own_first}"
        elif asked is None and quotes.is_disagreed and not quotes.has_parts:
            opening = f"{opening} {phrase(DOCUMENTS_DIFFER, run.answer_language)}"
        quoted = [detect_language(c.passage) for c in context.citations if c.number in quotes.numbers]
        opening = " ".join(filter(None, (opening, quoted_as_they_stand(quoted, run.answer_language))))
        yield from run.show_pieces(f"{opening}\n\n{text}", context)

    @working()
    def _since(
        self, context: ContextResponse, quotes: Quotes, asked: str
    ) -> SinceReply | Literal["own words", "not said"]:
        """Return since when the quotations hold, from the versions of the document."""
        run = self._run
        database = run.parts.chat_logs.database
        return since_reply(database, run.question, context, quotes, asked=asked, language=run.answer_language)

    @working()
    def _quotes(self, context: ContextResponse) -> tuple[ContextResponse, Quotes | None]:
        """Return the sentences to quote, and the context they are from: with a section that they point to."""
        run = self._run
        if context.own_place is not None:
            of_place = self._quotes_from(context, context.own_place.documents)
            as_found = self._quotes_from(context.own_place.as_found)
            if _may_come_first(of_place, as_found):
                return of_place
            run.context = context.own_place.as_found
            return as_found
        return self._quotes_from(context)

    def _quotes_from(
        self, context: ContextResponse, own_documents: frozenset[UUID] = frozenset()
    ) -> tuple[ContextResponse, Quotes | None]:
        run = self._run
        translated = run.details.query.translated_query
        if translated and any(detect_language(c.passage) == run.language for c in context.citations):
            translated = None  # what was asked can be compared with them itself
        searched = translated or "\n".join(self._searched_text())
        likely = [run.question.collection.language] if translated else [run.language]
        quote = partial(
            best_quotes,
            searched,
            language=detect_language(searched, likely),
            similarities=self._likeness(),
            parts_by_number=meant_parts(context),
            days=run.calls.document_days(context.citations),
            with_neighbours=True,
            carried=run.carried,
            own_documents=own_documents,
        )
        quotes = quote(context.citations)
        if quotes is None or quotes.points_to is None:
            return context, quotes
        # "See section 5.2" is no answer; that section may be one.
        leading = next(c for c in context.citations if c.number == quotes.points_to[0])
        context, section = run.parts.retriever.with_section(
            context, run.question.identity, leading.document_id, quotes.points_to[1]
        )
        return context, (quote(section) if section else None) or quotes

    def _likeness(self) -> Similarities | None:
        """Tell how alike sentences are to questions in meaning; None where no model of meaning is built in."""
        run = self._run
        embedder = run.parts.providers.meaning_for(run.question.collection.embedding_model)
        return likeness_by(embedder) if embedder is not None else None

    def _searched_text(self) -> list[str]:
        run = self._run
        return run.details.query.expanded[-1:] or [run.question.text]
