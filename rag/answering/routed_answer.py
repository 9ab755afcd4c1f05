"""Answer without a search: small talk, and questions about whole documents.

The pipeline asks here first; all other questions are searched for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from rag.answering.answer_run import AnswerRun, why_failed
from rag.answering.canned_answers import MODEL_FAILED, UNCITED, phrase
from rag.answering.citations import CitationFilter, cited
from rag.answering.events import AnswerEvent, ContextEvent, TextEvent
from rag.answering.prompts import route_rules
from rag.answering.routes import ModelPart, Router, RouteReply
from rag.answering.writing import AnswerWriter, WholeDocumentsCall
from rag.errors import ProviderError, ProviderRefused
from rag.providers import ChatModel
from rag.types import ContextResponse, MessageState, Outcome, TokenUsage


class RoutedAnswer:
    """Finds the route of a question and writes its answer."""

    def __init__(self, run: AnswerRun) -> None:
        self._run = run

    def reply(self) -> RouteReply | None:
        """Return what small talk, or a question about whole documents, is met with; None for all others."""
        run = self._run
        providers = run.parts.providers
        router = Router(
            database=run.parts.chat_logs.database,
            question=run.question,
            language=run.language,
            answer_language=run.answer_language,
            fixed_language=run.profile.language.answer_language,
            model=providers.chat_model_for(run.profile),
            small_model=providers.translation_model_for(run.profile),
            price=run.calls.price,
            charge=lambda usage: run.calls.charge("chat", usage, line="rewriting"),
        )
        with run.calls.paying("chat", line="rewriting"):
            return router.reply()

    def write(self, reply: RouteReply) -> Iterator[AnswerEvent]:
        """Show the reply of a route: its text, or the text that the language model writes from its parts."""
        run = self._run
        context = ContextResponse(
            context_text="\n\n".join(part.context_text for part in reply.parts),
            citations=reply.citations,
            token_usage=TokenUsage(),
            cost=Decimal(0),
            rag_details=run.details,
        )
        run.context = context
        yield ContextEvent(context)
        run.end(reply.outcome, MessageState.COMPLETE)
        run.follow_ups = reply.follow_ups
        run.answer_language = reply.language or run.answer_language
        model = run.parts.providers.chat_model_for(run.profile) if reply.parts else None
        if model is None:
            yield from run.show_pieces(reply.text, context)
            return
        run.step("writing")
        yield from run.pending_steps()
        try:
            if reply.task == "summary":
                yield from self._in_parts(model, reply.parts, context)
            else:
                yield from self._at_once(model, reply, context)
        except ProviderRefused as exc:
            run.end(Outcome.REFUSED, MessageState.CUT if run.text else MessageState.COMPLETE, str(exc))
        except ProviderError as exc:
            if not run.text:
                yield from run.show(f"{phrase(MODEL_FAILED, run.answer_language)}\n\n")
                yield from run.show_pieces(reply.text, context)
            run.end(Outcome.FAILED, MessageState.CUT, why_failed(exc, model.provider))

    def _at_once(self, model: ChatModel, reply: RouteReply, context: ContextResponse) -> Iterator[TextEvent]:
        """Have a comparison or a list worded; the documents' own words follow where the model's cannot be used."""
        run = self._run
        filtered = CitationFilter([citation.number for citation in context.citations])
        rules = route_rules(reply.task, run.answer_language)
        asked = WholeDocumentsCall(system=rules, filtered=filtered, quotes=reply.text)
        yield from AnswerWriter(run).stream(model, context, asked)

    def _in_parts(self, model: ChatModel, parts: Sequence[ModelPart], context: ContextResponse) -> Iterator[TextEvent]:
        """Have each part summed up in turn; a number is shown only of a passage that the model was given by then."""
        run = self._run
        filtered = CitationFilter(())
        tokens = [0, 0]
        asked = WholeDocumentsCall(system=route_rules("summary", run.answer_language), filtered=filtered)
        for part in parts:
            filtered.allow(part.numbers)
            if len(parts) > 1:
                opening = "\n\n" if run.text else ""
                yield from run.show(f"{opening}**{part.heading or part.place}**\n\n")
            yield from AnswerWriter(run).stream(model, replace(context, context_text=part.context_text), asked)
            tokens[0] += run.details.openai.input_tokens
            tokens[1] += run.details.openai.output_tokens
            run.details.openai.input_tokens, run.details.openai.output_tokens = tokens
            if run.outcome is Outcome.STOPPED:
                return
            # Remarks on a single part, such as a missing source, are not made on the whole.
            run.end(Outcome.ANSWERED, run.state, run.reason)
            run.asides = [aside for aside in run.asides if aside != UNCITED]
            run.kind, run.citations = "cited", cited(context.citations, filtered.shown)
        if not run.citations:
            run.asides.append(UNCITED)
            run.show_nearest()
