"""Which documents a question means: by the name in quotation marks, by the words of their titles, or all there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from rag.answering.labels import distinct_labels
from rag.answering.routes.documents import Library, WholeDocument
from rag.answering.routes.recognise import kinds_in, means_any, names_a_kind, quoted_label
from rag.retrieval.bm25.index import tokenize

#: Words that name no kind of document have to be so much of a title: "vacation" alone is not "Vacation policy 2026".
LEAST_OF_TITLE = 0.5
#: Documents offered to choose from; whoever means another one names it.
MOST_CHOICES = 6
YEAR_OR_NUMBER = re.compile(r"\d+")


def labels_of(documents: Iterable[WholeDocument]) -> Mapping[UUID, str]:
    """Documents by titles that tell them apart: with the file's name and the day where titles are equal."""
    return distinct_labels(
        documents,
        lambda document: document.id,
        lambda document: document.title,
        lambda document: document.file_name,
        lambda document: f"{document.created_at:%Y-%m-%d}",
    )


def documents_meant(
    library: Library, subject: str, *, language: str, earlier: Sequence[str] = ()
) -> list[WholeDocument]:
    """The documents that a question's words name, newest first; none where they name no document.

    `earlier` are the messages before it, the latest first: "summarise it" means what was spoken of.
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
        spoken = (d for text in earlier for d in everything if d.title.casefold() in text.casefold())
        first = next(spoken, None)
        return [first] if first else everything
    kinds = kinds_in(subject)
    fitting, equal = [], []
    for document in everything:
        held = title_terms(document, language)
        missing = {term for term in terms - held if not (kinds & kinds_in(document.title) and kinds_in(term))}
        # A kind said in another language than the title's is not among its terms.
        said = frozenset(term for term in terms if not (kinds_in(term) and term not in held))
        if missing or not (said or kinds):
            continue
        shared = len(said & held)
        words = {term for term in tokenize(document.title, language) if not YEAR_OR_NUMBER.fullmatch(term)}
        # A file may be called otherwise than its title: "burlg.md".
        file = frozenset(tokenize(re.sub(r"[_.-]+", " ", document.file_name.rpartition(".")[0]), language))
        is_file = bool(file) and file <= terms
        if not names_a_kind(subject) and not is_file and shared < LEAST_OF_TITLE * max(1, len(words)):
            continue
        fitting.append(document)
        if words and words <= terms:
            equal.append(document)
    return equal or fitting


def title_terms(document: WholeDocument, language: str) -> frozenset[str]:
    """The terms of a document's title and of its file's name, in its own language and in the question's."""
    names = f"{document.title} {re.sub(r'[_.-]+', ' ', document.file_name)} {document.file_name}"
    return frozenset(tokenize(names, language)) | frozenset(tokenize(names, document.language or language))
