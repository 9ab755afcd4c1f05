"""Answer small talk and questions about whole documents, which need no search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from rag.answering.canned_answers import MODEL_FAILED, UNCITED, phrase
from rag.answering.citations import CitationFilter, cited
from rag.answering.events import AnswerEvent, ContextEvent, TextEvent
from rag.answering.prompts import route_rules
from rag.answering.readers import why_failed
from rag.answering.routes import ModelPart, Router, RouteReply
from rag.answering.state import AnswerState
from rag.answering.writing import WholeDocumentsCall, stream
from rag.errors import ProviderError, ProviderRefused
from rag.providers import ChatModel
from rag.types import ContextResponse, MessageState, Outcome, TokenUsage


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


def write_reply(state: AnswerState, reply: RouteReply) -> Iterator[AnswerEvent]:
    """Show a route's reply: fixed text, or text written by the language model from the reply's parts."""
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
    """Let the model word a comparison or a list. An unusable text is replaced by quotations."""
    filtered = CitationFilter([citation.number for citation in context.citations])
    rules = route_rules(reply.task, state.answer_language)
    asked = WholeDocumentsCall(system=rules, filtered=filtered, quotes=reply.text)
    yield from stream(state, model, context, asked)


def _in_parts(
    state: AnswerState, model: ChatModel, parts: Sequence[ModelPart], context: ContextResponse
) -> Iterator[TextEvent]:
    """Let the model summarise each part in turn. A part can only cite passages given so far."""
    filtered = CitationFilter(())
    asked = WholeDocumentsCall(system=route_rules("summary", state.answer_language), filtered=filtered)
    for part in parts:
        filtered.allow(part.numbers)
        if len(parts) > 1:
            opening = "\n\n" if state.text else ""
            yield from state.show(f"{opening}**{part.heading or part.place}**\n\n")
        yield from stream(state, model, replace(context, context_text=part.context_text), asked)
        if state.outcome is Outcome.STOPPED:
            return
        # Remarks about a single part, such as a missing source, do not apply to the whole summary.
        state.end(Outcome.ANSWERED, state.state, state.reason)
        state.asides = [aside for aside in state.asides if aside != UNCITED]
        state.kind, state.citations = "cited", cited(context.citations, filtered.shown)
    if not state.citations:
        state.asides.append(UNCITED)
        state.show_nearest()
