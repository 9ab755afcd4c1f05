"""Answer several questions in one message without a model, with quotations for each question.

"How long is probation, and how much notice do I give?" has two answers, mostly in different passages. A later question
without a subject ("and how many can I carry over?") is completed like a follow-up. The reply repeats each question,
even without an answer in the documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from rag.answering.canned_answers import CLOSEST, PART_NOT_ANSWERED, Phrases, phrase, quoted_as_they_stand
from rag.answering.events import TextEvent
from rag.answering.quotations import Quotes
from rag.answering.quoting import evidence_of, quote, quotes_of
from rag.answering.retrieving import retrieve_each
from rag.answering.state import AnswerState
from rag.providers.processor import working
from rag.text.language_detection import detect_language
from rag.types import Citation, ContextResponse, Evidence, MessageState, Outcome

#: The number at the end of a quotation.
_NUMBER = re.compile(r"\[(\d+)\]$", re.MULTILINE)
#: Signs for Markdown or citations, removed from a repeated question.
_SIGNS = re.compile(r"[*_`~#|\\<>\[\]{}]+")
#: Question marks by language; "?" for others.
_MARKS = {"ar": "؟", "fr": "\N{NO-BREAK SPACE}?", "ja": "？", "zh": "？"}


@dataclass(frozen=True)
class _Reply:
    question: str
    context: ContextResponse
    quotes: Quotes | None
    evidence: Evidence


def quote_each(state: AnswerState, reason: Phrases) -> Iterator[TextEvent]:
    """Answer with sentences from the passages, separately for each question in the message.

    `reason` says in each language why no model wrote the answer.
    """
    replies = _replies(state)
    if all(reply.evidence == "none" for reply in replies):
        yield from quote(state, reason)
        return
    language = state.answer_language
    if any(reply.evidence != "answered" for reply in replies):
        state.end(Outcome.PERHAPS, MessageState.COMPLETE)
    state.has_unanswered = any(reply.evidence == "none" for reply in replies)
    context, texts = _merge_replies(replies, state.context or replies[0].context)
    state.context = context
    lines = []
    for reply, text in zip(replies, texts, strict=True):
        lines.append(f"**{_repeat_question(reply.question, language)}**")
        if reply.evidence == "none":
            lines.append(phrase(PART_NOT_ANSWERED, language))
        elif reply.evidence == "perhaps":
            lines.append(f"{phrase(CLOSEST, language)}\n\n{text}")
        else:
            lines.append(text)
    languages = [detect_language(citation.passage) for citation in context.citations]
    opening = " ".join(filter(None, (phrase(reason, language), quoted_as_they_stand(languages, language))))
    yield from state.show_quotes("\n\n".join([opening, *lines]), context)


@working()
def _replies(state: AnswerState) -> list[_Reply]:
    replies = []
    # The searches are missing if a model failed to answer.
    for part in state.single_questions or retrieve_each(state):
        if part.context is None or state.cancel.is_set():
            return []
        context, quotes = quotes_of(part, part.context)
        evidence = evidence_of(quotes, context) if quotes is not None and context.citations else "none"
        if quotes is not None and evidence == "perhaps":
            quotes = quotes.closest
        replies.append(_Reply(part.question.text, context, quotes, evidence))
    return replies


def _merge_replies(replies: Sequence[_Reply], base: ContextResponse) -> tuple[ContextResponse, list[str]]:
    numbered: dict[UUID, Citation] = {}
    texts = []
    for reply in replies:
        if reply.quotes is None or reply.evidence == "none":
            texts.append("")
            continue
        numbers: dict[str, int] = {}
        for citation in reply.context.citations:
            if citation.number in reply.quotes.numbers:
                numbered_citation = numbered.setdefault(citation.chunk_id, replace(citation, number=len(numbered) + 1))
                numbers[str(citation.number)] = numbered_citation.number
        texts.append(_renumber(reply.quotes.text, numbers))
    versions = dict.fromkeys(version for reply in replies for version in reply.context.versions)
    staying = dict.fromkeys(version for reply in replies for version in reply.context.staying)
    context = replace(base, citations=tuple(numbered.values()), versions=tuple(versions), staying=tuple(staying))
    return context, texts


def _renumber(text: str, numbers: Mapping[str, int]) -> str:
    return _NUMBER.sub(lambda match: f"[{numbers[match[1]]}]" if match[1] in numbers else "", text)


def _repeat_question(question: str, language: str) -> str:
    text = " ".join(_SIGNS.sub(" ", question).split()).rstrip(" ?？؟")
    mark = _MARKS.get(language.split("-")[0], "?")
    opened = "¿" if language.split("-")[0] == "es" else ""
    return f"{opened}{text[:1].upper()}{text[1:]}{mark}"
