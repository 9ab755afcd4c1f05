"""Find documents which contain given words, and the places in a document, without paid calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from rag.retrieval.bm25.index import term_id, tokenize
from rag.retrieval.bm25.scoring import Ranges, matches_in
from rag.storage.database import Database, queries
from rag.types import DocumentPage, Who


def documents_with_words(database: Database, who: Who, collection_ids: Sequence[UUID], text: str) -> list[UUID]:
    """Return the ids of searchable documents with every word in `text`, in any inflected form.

    The words are analysed in each language of the collections; stopwords are ignored.
    """
    if not collection_ids or not text.strip():
        return []
    tenant_id = who if isinstance(who, str) else who.tenant_id
    scope = {"tenant_id": tenant_id, "collection_ids": list(collection_ids)}
    with database.transaction(who) as connection:
        languages = {row[0] for row in connection.execute(queries["search_scope"], scope).fetchall()}
        term_groups = {frozenset(map(term_id, tokenize(text, language))) for language in languages} - {frozenset()}
        if not term_groups:
            return []
        terms = sorted(frozenset.union(*term_groups))
        removed = connection.execute(queries["search_removed"], scope).fetchall()
        blocks = connection.execute(queries["search_postings"], {**scope, "terms": terms}).fetchall()
        documents = connection.execute(queries["keyword_documents_of"], scope).fetchall()
    removed_ranges = Ranges.of((position << 32 | first, passages) for position, first, passages in removed)
    matches = matches_in(blocks, removed_ranges)
    places = sorted((position << 32 | first, passages, document) for document, position, first, passages in documents)
    holding = Ranges.of((first, passages) for first, passages, _ in places).holding(matches.places)
    documents_with: dict[int, set[int]] = {}
    for term in terms:
        documents_with[term] = set(np.unique(holding[(matches.terms == term) & (holding >= 0)]).tolist())
    matching = set[int]().union(*(set.intersection(*(documents_with[term] for term in group)) for group in term_groups))
    return [places[at][2] for at in sorted(matching)]


#: Not within a word, in scripts with spaces between words.
BEGINS = r"(?<![A-Za-z0-9\u00c0-\u052f])"
#: Characters shown before and after a match.
AROUND = 70


@dataclass(frozen=True)
class Finding:
    """A match for searched words in a document: the page, the surrounding text, and the words as written."""

    page: int
    text: str
    words: tuple[str, ...]


def find_in_pages(pages: Sequence[DocumentPage], text: str, *, limit: int) -> list[Finding]:
    """Find `text` literally in pages.

    If the pages do not contain the whole text, the words are found on pages which contain them all. A word also matches
    the beginning of a longer word: "holiday" finds "holidays".
    """
    words = text.split()
    if not words:
        return []
    phrase = re.compile(BEGINS + r"\W+".join(map(re.escape, words)) + r"\w*", re.IGNORECASE)
    findings = [place for page in pages for place in _places(page, phrase)]
    if not findings and len(words) > 1:
        each = [re.compile(rf"{BEGINS}{re.escape(word)}\w*", re.IGNORECASE) for word in words]
        holding = [page for page in pages if all(pattern.search(page.text) for pattern in each)]
        findings = [place for page in holding for pattern in each for place in _places(page, pattern)]
    return findings[:limit]


def page_with_words(pages: Sequence[DocumentPage], text: str) -> int:
    """Return the page on which `find_in_pages` finds `text`.

    If the text is not found, return the page with most words in any form, else the first page.
    """
    if places := find_in_pages(pages, text, limit=1):
        return places[0].page

    def forms(page: DocumentPage) -> int:
        return len(set(tokenize(text, page.language)) & set(tokenize(page.text, page.language)))

    # The first of equal ones.
    best = max(pages, key=forms, default=None) if text.strip() else None
    return best.number if best is not None and forms(best) else 1


def _places(page: DocumentPage, pattern: re.Pattern[str]) -> list[Finding]:
    places, covered = [], 0
    for match in pattern.finditer(page.text):
        if match.start() < covered:
            continue  # already within the previous surrounding text
        start, covered = max(match.start() - AROUND, 0), match.end() + AROUND
        start = page.text.find(" ", start, match.start()) + 1 if start else 0
        end = page.text.rfind(" ", match.end(), covered)
        around = page.text[start : end if end > 0 else covered]
        text = " ".join(around.split())
        before, after = "…" if start else "", "…" if covered < len(page.text) else ""
        places.append(Finding(page.number, f"{before}{text}{after}", (" ".join(match.group().split()),)))
    return places
