"""Let the model write the answer from the passages, and check the text during writing.

A text which is repetitive, or not supported by the passages, is withdrawn and replaced by quotations. Replies to small
talk and about whole documents are shown here too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial

from rag.answering.canned_answers import (
    BUDGET_SPENT,
    MODEL_FAILED,
    NO_MODEL,
    NOT_THE_MODELS,
    NOTHING_FOUND,
    NOTHING_NEAR,
    UNCITED,
    phrase,
)
from rag.answering.citations import CitationFilter, cited
from rag.answering.events import AnswerEvent, ContextEvent, TextEvent
from rag.answering.guardrails import AnswerWatch, SourceFinder, Trouble, first_of, says_not_found, sources_of
from rag.answering.prompts import NotFoundMark, answer_messages, own_place_rule, recent_messages, route_rules, rules_of
from rag.answering.readers import why_failed
from rag.answering.routes import ModelPart, RouteReply
from rag.answering.several_questions import quote_each
from rag.answering.state import AnswerState
from rag.errors import (
    ProviderAnswerInvalid,
    ProviderError,
    ProviderRefused,
    ProviderStreamCut,
    ProviderStreamEmpty,
)
from rag.language import N_
from rag.monitoring.tracing import ms_since
from rag.providers import ChatModel, Completed, Discarded, TextDelta
from rag.text.language_detection import detect_language
from rag.text.tokens import estimate_tokens
from rag.types import ContextResponse, MessageState, Outcome, TokenUsage

TOO_LONG = N_("The answer reached its length limit and ends here.")
#: Some servers cut a prompt longer than the model's window without an error, and the best passage may be lost.
PROMPT_CUT = N_(
    "The language model could read only a part of what was found, so this answer may miss something. An administrator "
    "can choose a model that reads more text at once."
)
OWN_PLACE = N_("The documents for your group, {group}, come first.")
UNSOURCED = N_("No passage was found that says: “{sentence}”")
#: Why the model's text was withdrawn. Quotations follow.
WITHDRAWN: dict[Trouble, str] = {
    "repeats": N_("The language model repeated itself, so its answer was stopped and withdrawn."),
    "unsupported": N_(
        "The language model's answer was withdrawn, because the passages that it cites do not contain most of what "
        "it says."
    ),
    "says nothing": N_("The language model's answer was withdrawn, because it contained no statement."),
}


@dataclass(frozen=True, kw_only=True)
class WholeDocumentsCall:
    """A model call about whole documents: the system prompt, and the citation filter shared by all parts.

    `quotes` replaces the model's text if unusable; `None` if the call writes only a part.
    """

    system: str
    filtered: CitationFilter
    quotes: str | None = None


def write(state: AnswerState, context: ContextResponse) -> Iterator[AnswerEvent]:
    """Write the answer from the passages, or say that no passages were found."""
    yield from state.pending_steps()
    if state.cancel.is_set():
        state.end(Outcome.STOPPED, MessageState.STOPPED)
        return
    yield ContextEvent(context)
    if not context.citations:
        state.end(Outcome.NO_CONTEXT, MessageState.COMPLETE)
        state.show_nearest()
        yield from state.show(phrase(NOTHING_FOUND if state.citations else NOTHING_NEAR, state.answer_language))
        return
    state.hold_to_budget()
    model = state.answer_model
    if model is None:
        yield from quote_each(state, NO_MODEL if state.profile.spends else BUDGET_SPENT)
        return
    state.step("writing")
    yield from state.pending_steps()
    try:
        yield from stream(state, model, context)
    except ProviderRefused as exc:
        state.end(Outcome.REFUSED, MessageState.CUT if state.text else MessageState.COMPLETE, str(exc))
        if not state.text:
            state.show_nearest()
    except ProviderError as exc:
        if state.text:
            state.end(Outcome.FAILED, MessageState.CUT, why_failed(exc, model.provider))
            if not state.citations:
                # The text broke off before its first citation: show the passages found.
                state.show_nearest()
            return
        yield from quote_each(state, MODEL_FAILED)
        # Text which was not shown yet is lost with the stream.
        why = str(ProviderStreamEmpty()) if isinstance(exc, ProviderStreamCut) else why_failed(exc, model.provider)
        state.end(Outcome.FAILED, MessageState.CUT, why)


def stream(
    state: AnswerState, model: ChatModel, context: ContextResponse, call: WholeDocumentsCall | None = None
) -> Iterator[TextEvent]:
    """Stream the model's text to the reader, with checks. `call` is set for calls about whole documents."""
    state.model = model.model
    own_place = None if call or state.profile.answer.source_prompt else context.own_place
    system = call.system if call else rules_of(state.profile.answer, state.answer_language)
    if own_place is not None:
        numbers = [c.number for c in context.citations if c.document_id in own_place.documents]
        system = f"{system}\n\n{own_place_rule(own_place.group, numbers)}"
    messages = answer_messages(
        system=system,
        history=() if call else recent_messages(state.question.history),
        context_text=context.context_text,
        question=state.question.text,
        form="" if call else state.profile.answer.prompt if state.profile.answer.source_prompt else "",
    )
    state.messages = messages
    state.details.openai.model = model.model
    state.details.openai.temperature = state.profile.answer.temperature
    state.details.openai.system_prompt_tokens = estimate_tokens(system)
    mark = NotFoundMark()
    filtered = call.filtered if call else CitationFilter([citation.number for citation in context.citations])
    #: Without the reasoning before the answer.
    answer: list[str] = []
    before = state.text
    completed: Completed | None = None
    # A part of a summary cannot be judged alone.
    watch = None if call and call.quotes is None else _watch(state, context, filtered)
    finder = None if call else _finder(state, context, filtered)
    trouble: Trouble | None = None
    started = time.perf_counter()
    try:
        for event in model.stream(
            messages,
            temperature=state.profile.answer.temperature,
            maximum_output_tokens=state.profile.answer.maximum_output_tokens,
            cancel=state.cancel,
            every_seconds=state.every_seconds,
        ):
            if isinstance(event, Completed):
                completed = event
                break
            if isinstance(event, Discarded):
                answer.clear()
                state.start_again(before)
                mark = NotFoundMark()
                if call is None:
                    filtered = CitationFilter([citation.number for citation in context.citations])
                    watch, finder = _watch(state, context, filtered), _finder(state, context, filtered)
                continue
            if not isinstance(event, TextDelta):
                continue
            answer.append(event.text)
            new_text = filtered.feed(mark.feed(event.text))
            new_text = finder.feed(new_text) if finder else new_text
            yield from state.show(new_text)
            trouble = _grave(state, watch.feed(new_text)) if watch else None
            if trouble or state.cancel.is_set():
                # Leaving the loop closes the call.
                break
    finally:
        # In `finally`, because the reader may leave at any `yield`.
        elapsed_ms = ms_since(started)
        state.details.openai.streaming_duration_ms = round(elapsed_ms, 1)
        state.details.timing.openai_ms += elapsed_ms
        state.citations = cited(context.citations, filtered.text_numbers)
    ending = filtered.feed(mark.finish()) + filtered.finish()
    is_not_found = mark.is_set or says_not_found(state.text + ending)
    if finder and completed is not None:
        ending = finder.feed(ending) + ("" if is_not_found else finder.finish())
    if watch and trouble is None and completed is not None:
        trouble = _grave(state, watch.feed(ending) or _trouble_at_end(watch, finder, "".join(answer)))
    if trouble and not is_not_found:
        yield from _withdraw(state, trouble, call)
        return
    yield from state.show(ending)
    state.citations = cited(context.citations, filtered.text_numbers)
    _note_ending(state, completed, is_not_found, "".join(answer))
    if finder and state.outcome is Outcome.ANSWERED:
        # If the text has no citation at all, a notice covers the whole text instead.
        without = [*finder.unsupported, *(finder.unknown if state.kind == "cited" else ())]
        state.asides += [UNSOURCED.format(sentence=sentence) for sentence in first_of(without)]
    first = state.citations[0].document_id if state.kind == "cited" and state.citations else None
    if own_place is not None and first in own_place.documents:
        state.asides.append(OWN_PLACE.format(group=own_place.group))


def _watch(state: AnswerState, context: ContextResponse, filtered: CitationFilter) -> AnswerWatch:
    likely = (state.question.collection.language,)
    sources = sources_of(context.citations, context.context_text, likely)
    return AnswerWatch(sources, filtered.text_numbers, state.question.text, partial(_written_language, state))


def _finder(state: AnswerState, context: ContextResponse, filtered: CitationFilter) -> SourceFinder:
    sources = sources_of(context.citations, context.context_text, (state.question.collection.language,))
    return SourceFinder(sources, filtered.text_numbers, state.question.text, partial(_written_language, state))


def _grave(state: AnswerState, trouble: Trouble | None) -> Trouble | None:
    """Return the problem if the text must be withdrawn, else `None`.

    Repetition always counts. Unsupported claims count only if the profile sets `withdraw_unsupported`.
    """
    return trouble if trouble == "repeats" or state.profile.answer.withdraw_unsupported else None


def _trouble_at_end(watch: AnswerWatch, finder: SourceFinder | None, received: str) -> Trouble | None:
    if finder is None:
        return watch.finish()
    trouble = watch.finish(supported=finder.supported, unsupported=finder.unsupported)
    # A question back to the reader makes no statement, but is a valid reply.
    is_empty = received.strip() and not finder.says_something and not received.rstrip().endswith(("?", "？", "؟"))
    return trouble or ("says nothing" if is_empty else None)


def _written_language(state: AnswerState, text: str) -> str:
    return detect_language(text[:400], [state.answer_language])


def _withdraw(state: AnswerState, trouble: Trouble, call: WholeDocumentsCall | None) -> Iterator[TextEvent]:
    state.asides.append(WITHDRAWN[trouble])
    state.withdraw()
    if call is not None and call.quotes is not None and state.context is not None:
        opening = phrase(NOT_THE_MODELS, state.answer_language)
        yield from state.show_quotes(f"{opening}\n\n{call.quotes}", state.context)
        return
    yield from quote_each(state, NOT_THE_MODELS)


def _note_ending(state: AnswerState, completed: Completed | None, is_not_found: bool, received: str) -> None:
    reason = completed.finish_reason if completed else ""
    if completed is not None and completed.is_prompt_cut:
        state.asides.append(PROMPT_CUT)
    if completed is None and state.cancel.is_set():
        state.end(Outcome.STOPPED, MessageState.STOPPED)
    elif is_not_found:
        state.end(Outcome.NO_CONTEXT, MessageState.COMPLETE)
        state.show_nearest(keep=True)
    elif not received.strip():
        raise ProviderAnswerInvalid("The language model sent an empty answer.")
    elif reason == "length":
        state.end(Outcome.ANSWERED, MessageState.CUT, TOO_LONG)
    if state.outcome is Outcome.ANSWERED and not state.citations:
        state.asides.append(UNCITED)
        state.show_nearest()


def write_reply(state: AnswerState, reply: RouteReply) -> Iterator[AnswerEvent]:
    """Show a route's reply. If the reply has parts, the language model writes the text; otherwise the fixed text is
    shown.
    """
    context = ContextResponse(
        context_text="\n\n".join(part.context_text for part in reply.parts),
        citations=reply.citations,
        token_usage=TokenUsage(),
        cost=Decimal(0),
        rag_details=state.details,
    )
    state.context = context
    yield ContextEvent(context)
    state.end(reply.outcome, MessageState.COMPLETE)
    state.follow_ups = reply.follow_ups
    state.answer_language = reply.language or state.answer_language
    model = state.answer_model if reply.parts else None
    if model is None:
        yield from state.show_quotes(reply.text, context)
        return
    state.step("writing")
    yield from state.pending_steps()
    try:
        if reply.task == "summary":
            yield from _in_parts(state, model, reply.parts, context)
        else:
            yield from _at_once(state, model, reply, context)
    except ProviderRefused as exc:
        state.end(Outcome.REFUSED, MessageState.CUT if state.text else MessageState.COMPLETE, str(exc))
    except ProviderError as exc:
        if not state.text:
            yield from state.show(f"{phrase(MODEL_FAILED, state.answer_language)}\n\n")
            yield from state.show_quotes(reply.text, context)
        state.end(Outcome.FAILED, MessageState.CUT, why_failed(exc, model.provider))


def _at_once(state: AnswerState, model: ChatModel, reply: RouteReply, context: ContextResponse) -> Iterator[TextEvent]:
    filtered = CitationFilter([citation.number for citation in context.citations])
    rules = route_rules(reply.task, state.answer_language)
    call = WholeDocumentsCall(system=rules, filtered=filtered, quotes=reply.text)
    yield from stream(state, model, context, call)


def _in_parts(
    state: AnswerState, model: ChatModel, parts: Sequence[ModelPart], context: ContextResponse
) -> Iterator[TextEvent]:
    filtered = CitationFilter(())
    call = WholeDocumentsCall(system=route_rules("summary", state.answer_language), filtered=filtered)
    for part in parts:
        filtered.allow(part.numbers)
        if len(parts) > 1:
            opening = "\n\n" if state.text else ""
            yield from state.show(f"{opening}**{part.heading or part.place}**\n\n")
        yield from stream(state, model, replace(context, context_text=part.context_text), call)
        if state.outcome is Outcome.STOPPED:
            return
        # Remarks about a single part, such as a missing source, do not apply to the whole summary.
        state.end(Outcome.ANSWERED, state.state, state.reason)
        state.asides = [aside for aside in state.asides if aside != UNCITED]
        state.kind, state.citations = "cited", cited(context.citations, filtered.text_numbers)
    if not state.citations:
        state.asides.append(UNCITED)
        state.show_nearest()
