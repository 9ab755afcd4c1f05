"""Find since when a rule holds: find the first version with the rule, and name this version's first day.

A version has the rule if the sentence at the same place has the question's figures, or without figures the same words.
A sentence with a day is quoted unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal, NamedTuple

from rapidfuzz.fuzz import ratio

from rag.answering.canned_answers import (
    FIRST_PUBLISHED,
    FIRST_SAID,
    NOT_SAID_BEFORE,
    OLDEST_SAYS,
    SAID_BEFORE,
    SAID_TODAY,
    phrase,
)
from rag.answering.quotations import Quotes
from rag.answering.routes.documents import NumberedPassages, ReadableDocuments, WholeDocument
from rag.answering.routes.recognise import names_a_kind
from rag.answering.sentences import units_of
from rag.retrieval.as_of import names_a_day
from rag.retrieval.since import says_in_force
from rag.storage.database import Database
from rag.text.language_detection import detect_language
from rag.types import Citation, ContextResponse, DocumentChunk, Question, SearchFilters

#: Lowest likeness of letters (0–100, without figures) for two sentences at the same place; and for two sentences
#: without figures to be the same rule.
SAME_PLACE, SAME_WORDS = 55.0, 90.0
#: A short sentence with a first day, up to this many words, is about the whole document: "Valid from 1 March 2024".
FEW_WORDS = 8
FIGURE = re.compile(r"\d+(?:[.,]\d+)*")
THOUSANDS = re.compile(r"[.,](?=\d{3}(?!\d))")
QUOTED = re.compile("“(.*?)”")


class SinceReply(NamedTuple):
    """The reply's text and the passages it cites by number."""

    text: str
    citations: tuple[Citation, ...]
    #: Whether a first day is known.
    is_known: bool


@dataclass(frozen=True)
class _Said:
    """A sentence with its passage in a version."""

    text: str
    chunk: DocumentChunk


@dataclass(frozen=True)
class _Version:
    """A version with its sentences; `said` is the counterpart of the rule."""

    document: WholeDocument
    #: The first day set for this version, or `None`.
    first_day: date | None
    sentences: tuple[_Said, ...]
    said: _Said | None
    says_it: bool


def since_reply(
    database: Database,
    question: Question,
    context: ContextResponse,
    quotes: Quotes,
    *,
    asked: str,
    language: str,
) -> SinceReply | Literal["own words", "not said"]:
    """Find since when the best quotation holds.

    "own words" means the quotations name the day, "not said" means no version has the rule. `asked` is the question
    without "since when", and `language` the reply's language.
    """
    number, sentence = quotes.best
    citation = next(c for c in context.citations if c.number == number)
    wanted = figures_of(asked)
    quoted = [text.replace("**", "") for text in QUOTED.findall(quotes.text)]
    if any(wanted <= figures_of(text) and _names_its_day(text) for text in (*quoted, sentence)):
        return "own words"
    versions = _versions(database, question, context, citation, sentence, wanted)
    places = [place for place, version in enumerate(versions) if version.says_it]
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
    return _written(versions, first, current, language)


def figures_of(text: str) -> frozenset[str]:
    """Return the figures in a text, without thousands separators."""
    return frozenset(THOUSANDS.sub("", figure) for figure in FIGURE.findall(text))


def _names_its_day(text: str) -> bool:
    return says_in_force(text) and names_a_day(text, detect_language(text))


def _versions(
    database: Database,
    question: Question,
    context: ContextResponse,
    citation: Citation,
    sentence: str,
    wanted: frozenset[str],
) -> list[_Version]:
    """Return the versions of a cited document in the order they were published."""
    published_of = {version.document_id: version.published_id for version in context.versions}
    published_id = published_of.get(citation.document_id, citation.document_id)
    for collection in (question.collection, *question.others):
        own = replace(question, collection=collection, others=(), filters=SearchFilters(), document_ids=(published_id,))
        library = ReadableDocuments(database, own)
        if documents := library.documents():
            break
    else:
        return []
    published = documents[0]
    # A restored version answers again, after the later versions.
    kept = sorted(library.versions(published), key=lambda document: document.id == published.id)
    found = []
    for document in kept:
        sentences = tuple(
            _Said(unit.text, chunk)
            for chunk in library.contents(document).chunks
            for unit in units_of(chunk.content, frozenset([document.title, chunk.section]))
        )
        said, likeness = _in_its_place(sentence, sentences)
        is_shared = document.id != published.id and document.valid_from == published.valid_from
        found.append(
            _Version(
                document,
                None if is_shared else document.valid_from,
                sentences,
                said,
                said is not None and _says_it(said.text, sentence, wanted, likeness),
            )
        )
    return found


def _in_its_place(sentence: str, among: Sequence[_Said]) -> tuple[_Said | None, float]:
    """Return the most similar sentence and its likeness; `None` if all differ too much."""
    masked = _masked(sentence)
    alike = ((ratio(_masked(said.text), masked) + (said.text == sentence), said) for said in among)
    likeness, said = max(alike, key=lambda item: item[0], default=(0.0, None))
    return (said, likeness) if likeness >= SAME_PLACE else (None, likeness)


def _masked(text: str) -> str:
    return FIGURE.sub("0", text).casefold()


def _says_it(said: str, sentence: str, wanted: frozenset[str], likeness: float) -> bool:
    if wanted:
        return wanted <= figures_of(said)
    return figures_of(sentence) == figures_of(said) and (bool(figures_of(said)) or likeness >= SAME_WORDS)


def _written(versions: Sequence[_Version], first: int, current: int, language: str) -> SinceReply:
    """Quote the first version with the rule, the version before, and today's version if its rule is different."""
    passages = NumberedPassages()
    published = versions[-1].document.id

    def quoted(version: _Version, said: _Said) -> str:
        title = version.document.title
        shown = title if version.document.id == published else f"{title} (v{version.document.version})"
        return f"“{said.text}”{passages.cite(replace(version.document, title=shown), said.chunk)}"

    version = versions[first]
    lines = list[str]()
    own_day = next((said for said in version.sentences if _is_of_whole(said.text)), None)
    published_on = (version.document.published_at or version.document.created_at).date()
    day = version.first_day or published_on
    is_known = version.first_day is not None or own_day is not None or first > 0
    if version.first_day is not None or own_day is None:
        words = FIRST_SAID if version.first_day is not None else FIRST_PUBLISHED if first else OLDEST_SAYS
        opening = phrase(words, language)
        lines.append(opening.format(title=version.document.title, version=version.document.version, day=day))
    if version.said is not None:
        lines.append(quoted(version, version.said))
    if own_day is not None:
        lines.append(quoted(version, own_day))
    if first:
        before = versions[first - 1]
        words = SAID_BEFORE if before.said is not None else NOT_SAID_BEFORE
        lines.append(phrase(words, language).format(version=before.document.version))
        if before.said is not None:
            lines.append(quoted(before, before.said))
    today = versions[current]
    if not today.says_it and today.said is not None and current != first - 1:
        lines.append(phrase(SAID_TODAY, language).format(version=today.document.version))
        lines.append(quoted(today, today.said))
    return SinceReply("\n\n".join(lines), tuple(passages.citations), is_known)


def _is_of_whole(text: str) -> bool:
    """Whether a sentence states the first day of the whole document: "This policy is valid from May 2024"."""
    return _names_its_day(text) and (len(text.split()) <= FEW_WORDS or names_a_kind(text))
