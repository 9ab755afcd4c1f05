"""Answer without a model: quote sentences from the passages, or say that the passages hold no answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal
from uuid import UUID

from rag.answering.canned_answers import (
    CLOSEST,
    DOCUMENTS_DIFFER,
    NOT_MENTIONED,
    NOTHING_FOUND,
    NOTHING_NEAR,
    OWN_PLACE_FIRST,
    Phrases,
    also_in,
    phrase,
    quoted_as_they_stand,
)
from rag.answering.events import TextEvent
from rag.answering.extractive import Similarities, best_quotes, likeness_by, meant_parts
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
from rag.answering.state import AnswerState
from rag.providers.processor import working
from rag.retrieval.context_builder import document_day
from rag.retrieval.since import since_meant
from rag.text.language_detection import detect_language
from rag.types import Citation, ContextResponse, Evidence, MessageState, Outcome


def evidence_of(quotes: Quotes, context: ContextResponse) -> Evidence:
    """Decide whether quotations answer the question.

    The quotations' probability decides, or the search if a reranker judged the passages. Without a model of meaning,
    quotations without the requested kind of fact, or without the company or country, are "perhaps".
    """
    signals = signals_of(quotes, context)
    if signals is not None and signals.names_another:
        return "none"
    is_reranked = any(result.rerank_score is not None for result in context.results)
    if signals is None or is_reranked or context.probability is None:
        return context.evidence if quotes.answers else "perhaps"
    likely, perhaps = probability(signals), PERHAPS
    is_doubtful = is_unnamed(quotes, context) or signals.is_within_another
    if likely is None:
        likely, perhaps = probability_by_words(signals), PERHAPS_BY_WORDS
        is_doubtful = is_doubtful or not quotes.answers
    if (is_doubtful and likely >= perhaps) or (signals.says_all and likely < perhaps):
        return "perhaps"
    return outcome_of(likely, is_exact=signals.is_exact, perhaps=perhaps)


def is_unnamed(quotes: Quotes, context: ContextResponse) -> bool:
    """Whether the first quotation's document does not mention the company or country in the question."""
    return any(c.number == quotes.numbers[0] and c.chunk_id in context.unnamed for c in context.citations)


def signals_of(quotes: Quotes, context: ContextResponse) -> ReplySignals | None:
    """Return the signals of the first quotation and its search result, or `None` without a search result."""
    first = next(citation for citation in context.citations if citation.number == quotes.numbers[0])
    # A passage added by a reference to its section has no search result.
    found = next((result for result in context.results if result.chunk_id == first.chunk_id), None)
    if quotes.signals is None or found is None:
        return None
    usual = context.usual_meanings.get(first.chunk_id)
    if context.probability is None:
        return replace(quotes.signals, meaning=None)
    if found.meaning is None or usual is None:
        return replace(quotes.signals, meaning=None, search=context.probability)
    return replace(quotes.signals, meaning=found.meaning, above_usual=found.meaning - usual, search=context.probability)


def _may_come_first(
    of_place: tuple[ContextResponse, Quotes | None], as_found: tuple[ContextResponse, Quotes | None]
) -> bool:
    """Whether quotations from documents for the asker's place come first.

    In the question's language, some evidence is enough. In a different language, they must answer, unless quotations
    from other places answer.
    """
    context, quotes = of_place
    if quotes is None or not quotes.is_own_place:
        return False
    evidence = evidence_of(quotes, context)
    if evidence != "perhaps" or quotes.signals is None or not quotes.signals.is_across:
        return evidence != "none"
    other_context, others = as_found
    return others is not None and evidence_of(others, other_context) == "answered"


def quote(state: AnswerState, reason: Phrases) -> Iterator[TextEvent]:
    """Answer with sentences from the passages. `reason` explains, by language, why no model wrote the answer."""
    found, quotes = quotes_of(state, state.context) if state.context is not None else (None, None)
    if found is None or quotes is None:
        yield from say_not_found(state)
        return
    evidence = evidence_of(quotes, found)
    if evidence == "none":
        yield from say_not_found(state)
        return
    if evidence == "perhaps":
        quotes = quotes.closest
        _call_perhaps(state)
    asked_since = since_meant(state.question.text, state.language)
    opening = _opening(state, found, quotes, reason, is_perhaps=evidence == "perhaps", is_since=asked_since is not None)
    text = quotes.text
    if asked_since is not None:
        since = _since(state, found, quotes, asked_since)
        if since == "not said":
            yield from say_not_found(state)
            return
        if isinstance(since, SinceReply):
            text, found = since.text, replace(found, citations=since.citations)
            quotes = replace(quotes, numbers=tuple(citation.number for citation in since.citations))
            if not since.is_known:
                _call_perhaps(state)
    elif evidence == "answered" or quotes.is_own_place:
        folders = found.own_place.folders if found.own_place is not None else {}
        also = also_in(quotes.also, found.citations, state.answer_language, folders)
        text = "\n\n".join(filter(None, (text, also)))
    quoted = [detect_language(c.passage) for c in found.citations if c.number in quotes.numbers]
    opening = " ".join(filter(None, (opening, quoted_as_they_stand(quoted, state.answer_language))))
    yield from state.show_quotes(f"{opening}\n\n{text}", found)


def say_not_found(state: AnswerState) -> Iterator[TextEvent]:
    """Say that the documents do not answer, and show the nearest passages, if any."""
    state.end(Outcome.NO_CONTEXT, MessageState.COMPLETE)
    state.show_nearest()
    yield from state.show(phrase(NOTHING_FOUND if state.citations else NOTHING_NEAR, state.answer_language))


def _call_perhaps(state: AnswerState) -> None:
    if state.outcome is Outcome.ANSWERED:
        state.end(Outcome.PERHAPS, MessageState.COMPLETE)


def _opening(
    state: AnswerState,
    context: ContextResponse,
    quotes: Quotes,
    reason: Phrases,
    *,
    is_perhaps: bool,
    is_since: bool,
) -> str:
    """Return the sentences before the quotations: how sure they are, why no model wrote, which rule comes first."""
    language = state.answer_language
    sentences = [phrase(reason, language)]
    if is_perhaps:
        sentences.insert(0, phrase(CLOSEST, language))
        # With several names in the question, the document may mention some.
        if len(context.names) == 1 and is_unnamed(quotes, context):
            sentences.insert(1, phrase(NOT_MENTIONED, language).format(name=context.names[0]))
    if is_since:
        return " ".join(sentences)
    if quotes.is_own_place and context.own_place is not None:
        sentences.append(phrase(OWN_PLACE_FIRST, language).format(group=context.own_place.group))
    elif quotes.is_disagreed and not quotes.has_parts:
        sentences.append(phrase(DOCUMENTS_DIFFER, language))
    return " ".join(sentences)


@working()
def _since(
    state: AnswerState, context: ContextResponse, quotes: Quotes, asked: str
) -> SinceReply | Literal["own words", "not said"]:
    """Find since when the quoted rule holds, from the versions of its document."""
    database = state.parts.chat_logs.database
    return since_reply(database, state.question, context, quotes, asked=asked, language=state.answer_language)


@working()
def quotes_of(state: AnswerState, context: ContextResponse) -> tuple[ContextResponse, Quotes | None]:
    """Return the sentences to quote and their context, including the section a sentence refers to."""
    if context.own_place is not None:
        of_place = _quotes_from(state, context, context.own_place.documents)
        as_found = _quotes_from(state, context.own_place.as_found)
        if _may_come_first(of_place, as_found):
            return of_place
        state.context = context.own_place.as_found
        return as_found
    return _quotes_from(state, context)


def _quotes_from(
    state: AnswerState, context: ContextResponse, own_documents: frozenset[UUID] = frozenset()
) -> tuple[ContextResponse, Quotes | None]:
    translated = state.details.query.translated_query
    if translated and any(detect_language(c.passage) == state.language for c in context.citations):
        translated = None  # the original question can be compared with these passages
    searched = translated or "\n".join(_searched_text(state))
    likely = [state.question.collection.language] if translated else [state.language]
    quote = partial(
        best_quotes,
        searched,
        language=detect_language(searched, likely),
        similarities=_likeness(state),
        parts_by_number=meant_parts(context),
        days=_document_days(state, context.citations),
        with_neighbours=True,
        carried=state.carried,
        own_documents=own_documents,
    )
    quotes = quote(context.citations)
    if quotes is None or quotes.points_to is None:
        return context, quotes
    # The sentence says "see section 5.2": quote this section if it answers.
    leading = next(c for c in context.citations if c.number == quotes.points_to[0])
    context, section = state.parts.retriever.with_section(
        context, state.question.identity, leading.document_id, quotes.points_to[1]
    )
    return context, (quote(section) if section else None) or quotes


def _document_days(state: AnswerState, citations: Sequence[Citation]) -> dict[UUID, str]:
    """Return the dates of the passages' documents, in ISO format, if they have any."""
    document_ids = list({citation.document_id for citation in citations})
    known = state.parts.chat_logs.document_metadata(state.tenant_id, document_ids)
    days = {document_id: document_day(metadata) for document_id, metadata in known.items()}
    return {document_id: day.isoformat() for document_id, day in days.items() if day}


def _likeness(state: AnswerState) -> Similarities | None:
    """Return a comparison of sentences by meaning, or `None` without a model of meaning."""
    embedder = state.parts.providers.meaning_for(state.question.collection.embedding_model)
    return likeness_by(embedder) if embedder is not None else None


def _searched_text(state: AnswerState) -> list[str]:
    return state.details.query.expanded[-1:] or [state.question.text]
