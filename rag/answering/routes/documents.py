"""Read whole documents for a route: their sections in order, and the passage to cite for each position."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from rag.answering.labels import distinct_labels
from rag.answering.routes.recognise import (
    kind_terms,
    kinds_in,
    means_any,
    names_a_kind,
    quoted_label,
    words_of_a_kind,
)
from rag.answering.sentences import sentences
from rag.retrieval.bm25.index import tokenize
from rag.retrieval.context_builder import document_day, of_post
from rag.retrieval.known_by import folder_shown, known_by
from rag.retrieval.search_scope import filter_conditions
from rag.storage.database import Database, queries
from rag.text.spans import section_paths
from rag.text.tokens import estimate_tokens
from rag.types import Citation, DocumentChunk, DocumentPage, Question, SearchFilters, Section, sections_from_json

#: The most documents searched for a document named in a question.
MOST_DOCUMENTS = 2_000
#: Largest collection, in passages, in which words are searched without chosen documents; takes about 0.1 s.
MOST_PASSAGES = 20_000
#: Shorter lines are mostly headings and longer lines whole paragraphs, and neither sums up a section.
TELLING_CHARACTERS = (30, 420)
#: The most sentences in a section searched for a word from its heading.
MOST_LOOKED_AT = 6
#: Words with at least this many letters are compared by their first letters.
STEM_LETTERS = 6
#: Joins headings into a path.
SEPARATOR = " › "


@dataclass(frozen=True, kw_only=True)
class WholeDocument:
    """A document's names, dates, language and version, for routes."""

    id: UUID
    original_id: UUID
    version: int
    title: str
    file_name: str
    language: str
    page_count: int
    created_at: datetime
    published_at: datetime | None
    #: The day from which the document is valid, if set.
    valid_from: date | None
    folder: str
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class OutlineSection:
    """The text below a heading. `chunk` is the passage in which the section starts, or `None`."""

    title: str
    path: str
    level: int
    start: int
    text: str


@dataclass(frozen=True)
class Contents:
    """A whole document: sections in order, and passages."""

    document: WholeDocument
    parts: tuple[OutlineSection, ...]
    chunks: tuple[DocumentChunk, ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [chunk.start_character for chunk in self.chunks]

    def chunk_at(self, position: int) -> DocumentChunk | None:
        """Return the passage at a character position in the text."""
        if not self.chunks:
            return None
        return self.chunks[max(0, bisect_right(self._starts, position) - 1)]

    def chunk_with(self, sentence: str, near: int) -> DocumentChunk | None:
        """Return the passage containing a sentence, else the passage at the character position `near`.

        Only the passage at `near` and the next three are searched.
        """
        at = self.chunk_at(near)
        if at is None:
            return None
        sentence_text = " ".join(sentence.split())
        following = [chunk for chunk in self.chunks if chunk.chunk_index >= at.chunk_index][:4]
        return next((c for c in following if sentence_text in " ".join(c.content.split())), at)


class NumberedPassages:
    """Cited passages without repeats, numbered in order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[UUID, int] = {}
        self.citations: list[Citation] = []
        self._days: dict[UUID, str] = {}

    def cite(self, document: WholeDocument, chunk: DocumentChunk | None, section: str = "") -> str:
        """Return a space and the passage's citation marker, or "" if there is no passage."""
        if chunk is None:
            return ""
        if chunk.id not in self._numbers:
            self._numbers[chunk.id] = len(self.citations) + 1
            day = document_day(document.metadata)
            self._days[document.id] = day.isoformat() if day else ""
            self.citations.append(
                Citation(
                    number=len(self.citations) + 1,
                    chunk_id=chunk.id,
                    document_id=document.id,
                    title=document.title,
                    file_name=document.file_name,
                    first_page=chunk.first_page,
                    last_page=chunk.last_page,
                    section=section or chunk.section,
                    passage=chunk.content,
                    **of_post(document.metadata),
                    is_corrected="corrected_pages" in chunk.metadata,
                    folder=document.folder,
                    score=0.0,  # the whole document is cited, without a search and its scores
                )
            )
        return f" [{self._numbers[chunk.id]}]"

    def in_full(self, number: int) -> str:
        """Return a passage for the language model, after a line with number, document, date, page and section."""
        citation = self.citations[number - 1]
        return f"{self._place(citation)}\n{citation.passage}"

    def as_context(self, maximum_tokens: int) -> str:
        """Return the passages for the language model.

        After `maximum_tokens`, only the passages' numbers and locations are included.
        """
        passages: list[str] = []
        tokens = 0
        for citation in self.citations:
            tokens += estimate_tokens(citation.passage)
            fits = tokens <= maximum_tokens
            passages.append(self.in_full(citation.number) if fits else self._place(citation))
        return "\n\n".join(passages)

    def _place(self, citation: Citation) -> str:
        day = self._days[citation.document_id]
        qualifier = ", ".join(filter(None, (folder_shown(citation.title, citation.folder), day)))
        title = f"{citation.title} ({qualifier})" if qualifier else citation.title
        where = f"p. {citation.first_page}" + (f", {citation.section}" if citation.section else "")
        return f"[{citation.number}] {title}, {where}"


class ReadableDocuments:
    """The collection's documents which may answer a question, limited by the user's rights and filters."""

    def __init__(self, database: Database, question: Question) -> None:
        self._database = database
        self._who = question.identity
        self._where = {"tenant_id": question.collection.tenant_id, "collection_id": question.collection.id}
        self._filters = question.filters
        self._chosen = list(question.filters.document_ids or question.document_ids)

    @property
    def has_choice(self) -> bool:
        """Whether the user limited the question to chosen documents."""
        return bool(self._chosen)

    @cached_property
    def _allowed(self) -> list[UUID] | None:
        filters = replace(self._filters, document_ids=tuple(self._chosen))
        if filters.is_empty:
            return None
        if filters == SearchFilters(document_ids=filters.document_ids):
            return self._chosen
        conditions = filter_conditions(filters) | {"collection_ids": [self._where["collection_id"]]}
        with self._database.transaction(self._who) as connection:
            rows = connection.execute(queries["search_wanted"], self._where | conditions).fetchall()
        return [row[0] for row in rows]

    def documents(
        self, *, words: Sequence[str] | None = None, has_versions: bool = False, limit: int = MOST_DOCUMENTS
    ) -> list[WholeDocument]:
        """Return the documents, newest first. With `words`, only those with all words in title or headings."""
        return self._database.fetch_all(
            self._who,
            "whole_documents",
            WholeDocument,
            **self._where,
            document_ids=self._allowed,
            words=list(words) if words is not None else None,
            has_versions=has_versions,
            limit=limit,
        )

    def naming(self, words: Sequence[str], *, limit: int) -> list[UUID]:
        """Return the ids of documents with a passage containing all words; [] if the collection is too
        large to search.
        """
        with self._database.transaction(self._who) as connection:
            if self._allowed is None:
                where = {**self._where, "limit": MOST_PASSAGES + 1}
                counted = connection.execute(queries["passages_in_collection"], where).fetchone()
                if counted is None or counted[0] > MOST_PASSAGES:
                    return []
            where = {**self._where, "document_ids": self._allowed, "words": list(words), "limit": limit}
            return [row[0] for row in connection.execute(queries["whole_documents_naming"], where)]

    def versions(self, document: WholeDocument) -> list[WholeDocument]:
        """Return a document's stored versions, oldest first; the last version answers questions."""
        return self._database.fetch_all(
            self._who,
            "kept_versions",
            WholeDocument,
            tenant_id=self._where["tenant_id"],
            original_id=document.original_id,
        )

    def pages(self, document: WholeDocument) -> list[DocumentPage]:
        return self._database.fetch_all(
            self._who, "find_pages", DocumentPage, document_id=document.id, limit=None, offset=0
        )

    def sections(self, document: WholeDocument) -> list[Section]:
        """Return a document's headings in order."""
        stored = self._database.fetch_value(
            self._who, "document_sections", tenant_id=self._where["tenant_id"], document_id=document.id
        )
        return sorted(sections_from_json(stored), key=lambda section: section.start)

    def contents(self, document: WholeDocument) -> Contents:
        """Return the document's whole text by section, or by passage if it has no headings."""
        chunks = self._database.fetch_all(
            self._who,
            "find_chunks",
            DocumentChunk,
            document_id=document.id,
            chunk_id=None,
            limit=None,
            offset=0,
        )
        sections = self.sections(document)
        text = _text_of(chunks)
        parts: list[OutlineSection] = []
        if text.strip() and 2 * len(sections) >= len({chunk.section for chunk in chunks}) and sections:
            ends = [*(section.start for section in sections[1:]), len(text)]
            for section, path, end in zip(sections, section_paths(sections), ends, strict=True):
                body = text[section.start : end]
                parts.append(
                    OutlineSection(section.title, path, section.level, section.start, _below(section.title, body))
                )
        else:
            parts = _parts_of(chunks)
        return Contents(document, tuple(parts), tuple(chunks))


def telling_sentence(text: str, title: str = "") -> str:
    """Return the first complete sentence which is no heading, table row or question, or "" without any.

    If `title` is given, a sentence which shares a word with the title is preferred, because a document's opening is
    often about the company.
    """
    candidates = [sentence for sentence in sentences(text) if is_telling(sentence)]
    stems = {word.casefold()[:STEM_LETTERS] for word in re.findall(r"[^\W\d_]{4,}", title)}
    if stems:
        for sentence in candidates[:MOST_LOOKED_AT]:
            if stems & {word.casefold()[:STEM_LETTERS] for word in re.findall(r"[^\W\d_]{4,}", sentence)}:
                return sentence
    return candidates[0] if candidates else ""


def is_telling(sentence: str) -> bool:
    """Whether a text is a complete sentence with a suitable length to represent a section in an outline."""
    shortest, longest = TELLING_CHARACTERS
    least = shortest // 2 if not sentence.isascii() else shortest
    is_complete = not sentence[:1].islower() and sentence.rstrip("\"'”’)").endswith((".", "!", "。", "！"))
    return least <= len(sentence) <= longest and is_complete


def _parts_of(chunks: Sequence[DocumentChunk]) -> list[OutlineSection]:
    parts: list[OutlineSection] = []
    for chunk in chunks:
        if parts and chunk.section and chunk.section == parts[-1].path:
            parts[-1] = replace(parts[-1], text=f"{parts[-1].text}\n{chunk.content}")
            continue
        title = chunk.section.rpartition(SEPARATOR)[2]
        level = chunk.section.count(SEPARATOR) + 1
        parts.append(OutlineSection(title, chunk.section, level, chunk.start_character, chunk.content))
    return parts


def _text_of(chunks: Sequence[DocumentChunk]) -> str:
    end = max((chunk.end_character for chunk in chunks), default=0)
    characters = ["\n"] * end
    for chunk in chunks:
        length = chunk.end_character - chunk.start_character
        # A chunker may put a table header before the text.
        characters[chunk.start_character : chunk.end_character] = (
            chunk.content[-length:].ljust(length) if length else ""
        )
    return "".join(characters)


def _below(title: str, body: str) -> str:
    title_text = " ".join(title.split())
    lines = body.splitlines()
    for count in (1, 2, 3):
        if title_text and " ".join(" ".join(lines[:count]).split()).strip("# ") == title_text:
            return "\n".join(lines[count:])
    return body


#: Share of a title's words a question must name, besides kinds of documents: "vacation" alone does not name "Vacation
#: policy 2026 for interns".
LEAST_OF_TITLE = 0.5
#: The most documents offered to choose from; a reader can name others.
MOST_CHOICES = 6
YEAR_OR_NUMBER = re.compile(r"\d+")


def labels_of(documents: Iterable[WholeDocument]) -> Mapping[UUID, str]:
    """Label documents by title; equal titles also get the folder, the file name and the day."""
    return distinct_labels(
        documents,
        lambda document: document.id,
        lambda document: document.title,
        lambda document: document.folder,
        lambda document: document.file_name,
        lambda document: f"{document.created_at:%Y-%m-%d}",
    )


def find_named_documents(
    library: ReadableDocuments, subject: str, *, language: str, earlier: Sequence[str] = ()
) -> list[WholeDocument]:
    """Return the documents which a question names, newest first; empty if no document is named.

    `subject` is the question's text for the documents. `earlier` are the previous messages, latest first: "summarise
    it" means a document named there.
    """
    terms = frozenset(tokenize(subject, language))
    everything = library.documents()
    if label := quoted_label(subject):
        folded = " ".join(label.split()).casefold()
        labels = labels_of(everything)
        named = [d for d in everything if folded in (labels[d.id].casefold(), d.title.casefold())]
        exact = [d for d in named if labels[d.id].casefold() == folded]
        if named:
            return exact or named
        terms = frozenset(tokenize(label, language))
    if not quoted_label(subject) and means_any(subject, language):
        if library.has_choice:
            return everything
        mentioned = (d for text in earlier for d in everything if d.title.casefold() in text.casefold())
        first = next(mentioned, None)
        return [first] if first else everything
    if mere := words_of_a_kind(subject):
        terms = frozenset(term for word in mere for term in tokenize(word, language))
    kinds, of_kinds = kinds_in(subject), kind_terms(subject, language)
    fitting, equal = [], []
    for document in everything:
        document_terms = title_terms(document, language)
        missing = {
            term
            for term in terms - document_terms
            if not (kinds & kinds_in(document.title) and (term in of_kinds or kinds_in(term)))
        }
        # Ignore a kind of document which the question names in a different language from the title's.
        relevant_terms = frozenset(
            term for term in terms if not ((term in of_kinds or kinds_in(term)) and term not in document_terms)
        )
        if missing or not (relevant_terms or kinds):
            continue
        shared = len(relevant_terms & document_terms)
        words = {term for term in tokenize(document.title, language) if not YEAR_OR_NUMBER.fullmatch(term)}
        # A file's name may differ from the title: "burlg.md".
        file = frozenset(tokenize(re.sub(r"[_.-]+", " ", document.file_name.rpartition(".")[0]), language))
        is_file = bool(file) and file <= terms
        if not names_a_kind(subject) and not is_file and shared < LEAST_OF_TITLE * max(1, len(words)):
            continue
        fitting.append(document)
        if words and words <= terms:
            equal.append(document)
    return equal or fitting or _find_by_headings(library, mere, language)


def _find_by_headings(library: ReadableDocuments, mere: Sequence[str], language: str) -> list[WholeDocument]:
    """Return the documents with these words in a heading, if there are 2 to `MOST_CHOICES`.

    A single document is ignored, because the match may be a coincidence.
    """
    if not mere:
        return []
    words = [term for word in mere for term in tokenize(word, language)]
    documents = library.documents(words=words, limit=MOST_CHOICES + 1)
    return documents if 1 < len(documents) <= MOST_CHOICES else []


def title_terms(document: WholeDocument, language: str) -> frozenset[str]:
    """Return the index terms in a document's title, folder and file name.

    Terms are split in the document's language and in `language`, the question's.
    """
    names = (
        f"{known_by(document.title, document.folder)} {re.sub(r'[_.-]+', ' ', document.file_name)} {document.file_name}"
    )
    return frozenset(tokenize(names, language)) | frozenset(tokenize(names, document.language or language))
