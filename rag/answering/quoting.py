"""Answer without a model: quote sentences from the passages, or say that the documents do not answer.

"Since when …?" is answered from the document's versions, with the first day of the oldest version which has the rule. A
version has the rule if the corresponding sentence has the question's numbers. If the question has no numbers, the
sentence must have the same words. If the best sentence states a day, the sentence is quoted instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Literal, NamedTuple
from uuid import UUID

from rapidfuzz.fuzz import ratio

from rag.answering.canned_answers import (
    CLOSEST,
    DOCUMENTS_DIFFER,
    EARLIER_RULE,
    FIRST_PUBLISHED,
    FIRST_WITH_RULE,
    NO_EARLIER_RULE,
    NOT_MENTIONED,
    NOTHING_FOUND,
    NOTHING_NEAR,
    OLDEST_SAYS,
    OWN_PLACE_FIRST,
    RULE_OF_TODAY,
    Phrases,
    also_in,
    phrase,
    quoted_as_they_stand,
)
from rag.answering.events import TextEvent
from rag.answering.extractive import Similarities, best_quotes, compared_parts, likeness_by
from rag.answering.quotations import Quotes
from rag.answering.reply_odds import (
    PERHAPS,
    PERHAPS_BY_WORDS,
    ReplySignals,
    outcome_of,
    probability,
    probability_by_words,
)
from rag.answering.routes.documents import NumberedPassages, ReadableDocuments, WholeDocument
from rag.answering.routes.recognise import names_a_kind
from rag.answering.sentences import units_of
from rag.answering.state import AnswerState
from rag.providers.processor import working
from rag.retrieval.as_of import names_a_day
from rag.retrieval.context_builder import document_day
from rag.retrieval.since import says_in_force, without_since
from rag.storage.database import Database
from rag.text.language_detection import detect_language
from rag.types import Citation, ContextResponse, DocumentChunk, Evidence, MessageState, Outcome, Question, SearchFilters


def evidence_of(quotes: Quotes, context: ContextResponse) -> Evidence:
    """Tell whether quotations answer the question: "answered", "perhaps" or "none".

    The quotations' probability decides. If a reranker judged the passages, the search's verdict is used instead.
    Quotations give at most "perhaps" if they lack the requested type of fact, or the company or country in the
    question. The same holds for a passage in the question's language which does not mention the question's subject.
    """
    signals = signals_of(quotes, context)
    if signals is not None and signals.names_another:
        return "none"
    is_reranked = any(result.rerank_score is not None for result in context.results)
    if signals is None or is_reranked or context.probability is None:
        return context.evidence if quotes.answers else "perhaps"
    likely, perhaps = probability(signals), PERHAPS
    is_elsewhere = not (quotes.is_about or signals.is_across)
    is_doubtful = is_unnamed(quotes, context) or signals.is_within_another or is_elsewhere or not quotes.is_of_type
    if likely is None:
        likely, perhaps = probability_by_words(signals), PERHAPS_BY_WORDS
        is_doubtful = is_doubtful or not quotes.is_about
    if (is_doubtful and likely >= perhaps) or (signals.says_all and likely < perhaps):
        return "perhaps"
    return outcome_of(likely, is_exact=signals.is_exact, perhaps=perhaps)


def is_unnamed(quotes: Quotes, context: ContextResponse) -> bool:
    """Whether the first quotation comes from a document which does not mention the company or country in
    the question.
    """
    return any(c.number == quotes.numbers[0] and c.chunk_id in context.unnamed for c in context.citations)


def signals_of(quotes: Quotes, context: ContextResponse) -> ReplySignals | None:
    """Measure how well the first quotation matches, including the search's scores.

    Returns `None` if the search did not find the quoted passage.
    """
    first = next(citation for citation in context.citations if citation.number == quotes.numbers[0])
    # A passage which was added because a sentence refers to its section has no search result.
    result = next((result for result in context.results if result.chunk_id == first.chunk_id), None)
    if quotes.signals is None or result is None:
        return None
    usual = context.usual_meanings.get(first.chunk_id)
    if context.probability is None:
        return replace(quotes.signals, meaning=None)
    if result.meaning is None or usual is None:
        return replace(quotes.signals, meaning=None, search=context.probability)
    return replace(
        quotes.signals, meaning=result.meaning, above_usual=result.meaning - usual, search=context.probability
    )


def _may_come_first(
    of_place: tuple[ContextResponse, Quotes | None], usual: tuple[ContextResponse, Quotes | None]
) -> bool:
    context, quotes = of_place
    if quotes is None or not quotes.is_own_place:
        return False
    evidence = evidence_of(quotes, context)
    if evidence != "perhaps" or quotes.signals is None or not quotes.signals.is_across:
        return evidence != "none"
    other_context, other_quotes = usual
    return other_quotes is not None and evidence_of(other_quotes, other_context) == "answered"


def quote(state: AnswerState, reason: Phrases) -> Iterator[TextEvent]:
    """Answer with sentences from the passages. `reason` says in each language why no model wrote the answer."""
    context, quotes = quotes_of(state, state.context) if state.context is not None else (None, None)
    if context is None or quotes is None:
        yield from say_not_found(state)
        return
    evidence = evidence_of(quotes, context)
    if evidence == "none":
        yield from say_not_found(state)
        return
    if evidence == "perhaps":
        quotes = quotes.closest
        _call_perhaps(state)
    rule_question = without_since(state.question.text, state.language)
    opening = _opening(
        state, context, quotes, reason, is_perhaps=evidence == "perhaps", is_since=rule_question is not None
    )
    text = quotes.text
    if rule_question is not None:
        since = _since(state, context, quotes, rule_question)
        if since == "not said":
            yield from say_not_found(state)
            return
        if isinstance(since, SinceReply):
            text, context = since.text, replace(context, citations=since.citations)
            quotes = replace(quotes, numbers=tuple(citation.number for citation in since.citations))
            if not since.is_known:
                _call_perhaps(state)
    elif evidence == "answered" or quotes.is_own_place:
        folders = context.own_place.folders if context.own_place is not None else {}
        also = also_in(quotes.also, context.citations, state.answer_language, folders)
        text = "\n\n".join(filter(None, (text, also)))
    quoted = [detect_language(c.passage) for c in context.citations if c.number in quotes.numbers]
    opening = " ".join(filter(None, (opening, quoted_as_they_stand(quoted, state.answer_language))))
    yield from state.show_quotes(f"{opening}\n\n{text}", context)


def say_not_found(state: AnswerState) -> Iterator[TextEvent]:
    """Say that the documents do not answer the question, and show the nearest passages, if any."""
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
    language = state.answer_language
    sentences = [phrase(reason, language)]
    if is_perhaps:
        sentences.insert(0, phrase(CLOSEST, language))
        # With several names in the question, the document may mention some: say nothing.
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
    state: AnswerState, context: ContextResponse, quotes: Quotes, rule_question: str
) -> SinceReply | Literal["own words", "not said"]:
    database = state.parts.chat_logs.database
    return since_reply(
        database, state.question, context, quotes, rule_question=rule_question, language=state.answer_language
    )


@working()
def quotes_of(state: AnswerState, context: ContextResponse) -> tuple[ContextResponse, Quotes | None]:
    """Return the quotations to show, with their context.

    The documents for the user's country or site come first if they answer. References to other sections are followed.
    """
    if context.own_place is not None:
        of_place = _quotes_from(state, context, context.own_place.documents)
        usual = _quotes_from(state, context.own_place.usual_context)
        if _may_come_first(of_place, usual):
            return of_place
        state.context = context.own_place.usual_context
        return usual
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
        parts_by_number=compared_parts(context),
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
    document_ids = list({citation.document_id for citation in citations})
    metadata_by_id = state.parts.chat_logs.document_metadata(state.tenant_id, document_ids)
    days = {document_id: document_day(metadata) for document_id, metadata in metadata_by_id.items()}
    return {document_id: day.isoformat() for document_id, day in days.items() if day}


def _likeness(state: AnswerState) -> Similarities | None:
    """Return a function which compares sentences by meaning, or `None` without the built-in embedding model."""
    embedder = state.parts.providers.meaning_for(state.question.collection.embedding_model)
    return likeness_by(embedder) if embedder is not None else None


def _searched_text(state: AnswerState) -> list[str]:
    return state.details.query.expanded[-1:] or [state.question.text]


#: Lowest similarity of characters (0–100, ignoring figures) for two sentences to be at the same place, and for two
#: sentences without figures to be the same rule.
SAME_PLACE, SAME_WORDS = 55.0, 90.0
#: A sentence with a first day and at most this many words is about the whole document: "Valid from 1 March 2024".
FEW_WORDS = 8
FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
THOUSANDS = re.compile(r"[.,](?=\d{3}(?!\d))")
QUOTED = re.compile("“(.*?)”", re.DOTALL)


class SinceReply(NamedTuple):
    """A reply which says when a rule came into force, and the citations in the text."""

    text: str
    citations: tuple[Citation, ...]
    #: Whether the first day is known.
    is_known: bool


@dataclass(frozen=True)
class _VersionSentence:
    text: str
    chunk: DocumentChunk


@dataclass(frozen=True)
class _Version:
    """A document version. `counterpart` is the sentence which corresponds to the quoted rule."""

    document: WholeDocument
    #: The version's first day, or `None` if not set.
    first_day: date | None
    sentences: tuple[_VersionSentence, ...]
    counterpart: _VersionSentence | None
    has_rule: bool


def since_reply(
    database: Database,
    question: Question,
    context: ContextResponse,
    quotes: Quotes,
    *,
    rule_question: str,
    language: str,
) -> SinceReply | Literal["own words", "not said"]:
    """Return a reply which says when the rule in the best quotation came into force.

    Returns "own words" if the quotations already state the day, and "not said" if no version has the rule.
    `rule_question` is the question without "since when", and `language` the reply's ISO 639-1 code.
    """
    number, sentence = quotes.best
    citation = next(c for c in context.citations if c.number == number)
    figures = figures_of(rule_question)
    quoted = [text.replace("**", "") for text in QUOTED.findall(quotes.text)]
    if any(figures <= figures_of(text) and _names_its_day(text) for text in (*quoted, sentence)):
        return "own words"
    versions = _versions(database, question, context, citation, sentence, figures)
    places = [place for place, version in enumerate(versions) if version.has_rule]
    if not places:
        return "not said"
    current = next(
        (place for place, version in enumerate(versions) if version.document.id == citation.document_id),
        len(versions) - 1,
    )
    # Today's version comes first, then the nearest before or after.
    first = min(places, key=lambda place: abs(place - current))
    while first - 1 in places:
        first -= 1
    return _write_since_reply(versions, first, current, language)


def figures_of(text: str) -> frozenset[str]:
    """Return the numbers in a text, without thousands separators."""
    return frozenset(THOUSANDS.sub("", figure) for figure in FIGURE.findall(text))


def _names_its_day(text: str) -> bool:
    return says_in_force(text) and names_a_day(text, detect_language(text))


def _versions(
    database: Database,
    question: Question,
    context: ContextResponse,
    citation: Citation,
    sentence: str,
    figures: frozenset[str],
) -> list[_Version]:
    published_of = {version.document_id: version.published_id for version in context.versions}
    published_id = published_of.get(citation.document_id, citation.document_id)
    for collection in (question.collection, *question.others):
        document_question = replace(
            question, collection=collection, others=(), filters=SearchFilters(), document_ids=(published_id,)
        )
        library = ReadableDocuments(database, document_question)
        if documents := library.documents():
            break
    else:
        return []
    published = documents[0]
    # A restored version answers again, after the later versions.
    ordered = sorted(library.versions(published), key=lambda document: document.id == published.id)
    versions = []
    for document in ordered:
        sentences = tuple(
            _VersionSentence(unit.text, chunk)
            for chunk in library.contents(document).chunks
            for unit in units_of(chunk.content, frozenset([document.title, chunk.section]))
        )
        counterpart, likeness = _most_similar(sentence, sentences)
        is_shared = document.id != published.id and document.valid_from == published.valid_from
        versions.append(
            _Version(
                document,
                None if is_shared else document.valid_from,
                sentences,
                counterpart,
                counterpart is not None and _states_rule(counterpart.text, sentence, figures, likeness),
            )
        )
    return versions


def _most_similar(sentence: str, among: Sequence[_VersionSentence]) -> tuple[_VersionSentence | None, float]:
    """Return the most similar sentence, and the similarity from 0 to 100, or 101 for equal texts.

    The sentence is `None` if the similarity is below `SAME_PLACE`.
    """
    masked = _mask(sentence)
    alike = ((ratio(_mask(candidate.text), masked) + (candidate.text == sentence), candidate) for candidate in among)
    likeness, candidate = max(alike, key=lambda item: item[0], default=(0.0, None))
    return (candidate, likeness) if likeness >= SAME_PLACE else (None, likeness)


def _mask(text: str) -> str:
    return FIGURE.sub("0", text).casefold()


def _states_rule(text: str, sentence: str, figures: frozenset[str], likeness: float) -> bool:
    if figures:
        return figures <= figures_of(text)
    return figures_of(sentence) == figures_of(text) and (bool(figures_of(text)) or likeness >= SAME_WORDS)


def _write_since_reply(versions: Sequence[_Version], first: int, current: int, language: str) -> SinceReply:
    passages = NumberedPassages()
    published = versions[-1].document.id

    def quoted(version: _Version, stated: _VersionSentence) -> str:
        title = version.document.title
        shown_title = title if version.document.id == published else f"{title} (v{version.document.version})"
        return f"“{stated.text}”{passages.cite(replace(version.document, title=shown_title), stated.chunk)}"

    version = versions[first]
    lines = list[str]()
    day_sentence = next((candidate for candidate in version.sentences if _dates_whole_document(candidate.text)), None)
    published_on = (version.document.published_at or version.document.created_at).date()
    day = version.first_day or published_on
    is_known = version.first_day is not None or day_sentence is not None or first > 0
    if version.first_day is not None or day_sentence is None:
        words = FIRST_WITH_RULE if version.first_day is not None else FIRST_PUBLISHED if first else OLDEST_SAYS
        opening = phrase(words, language)
        lines.append(opening.format(title=version.document.title, version=version.document.version, day=day))
    if version.counterpart is not None:
        lines.append(quoted(version, version.counterpart))
    if day_sentence is not None:
        lines.append(quoted(version, day_sentence))
    if first:
        before = versions[first - 1]
        words = EARLIER_RULE if before.counterpart is not None else NO_EARLIER_RULE
        lines.append(phrase(words, language).format(version=before.document.version))
        if before.counterpart is not None:
            lines.append(quoted(before, before.counterpart))
    today = versions[current]
    if not today.has_rule and today.counterpart is not None and current != first - 1:
        lines.append(phrase(RULE_OF_TODAY, language).format(version=today.document.version))
        lines.append(quoted(today, today.counterpart))
    return SinceReply("\n\n".join(lines), tuple(passages.citations), is_known)


def _dates_whole_document(text: str) -> bool:
    return _names_its_day(text) and (len(text.split()) <= FEW_WORDS or names_a_kind(text))
