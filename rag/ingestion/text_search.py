"""Find the documents whose text holds all words looked for, by the keyword index; nothing is paid for it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import numpy as np

from rag.retrieval.bm25.index import term_id, tokenize
from rag.retrieval.bm25.scoring import Ranges, matches_in
from rag.storage.database import Database, queries
from rag.types import Who


def documents_with_words(database: Database, who: Who, collection_ids: Sequence[UUID], text: str) -> list[UUID]:
    """Return the searchable documents that hold every word of `text`, in any of its forms.

    The words are taken apart as each language of the collections is; filler words count for nothing.
    """
    if not collection_ids or not text.strip():
        return []
    tenant_id = who if isinstance(who, str) else who.tenant_id
    scope = {"tenant_id": tenant_id, "collection_ids": list(collection_ids)}
    with database.transaction(who) as connection:
        languages = {row[0] for row in connection.execute(queries["search_scope"], scope).fetchall()}
        wanted = {frozenset(map(term_id, tokenize(text, language))) for language in languages} - {frozenset()}
        if not wanted:
            return []
        terms = sorted(frozenset.union(*wanted))
        removed = connection.execute(queries["search_removed"], scope).fetchall()
        blocks = connection.execute(queries["search_postings"], {**scope, "terms": terms}).fetchall()
        documents = connection.execute(queries["keyword_documents_of"], scope).fetchall()
    gone = Ranges.of((position << 32 | first, passages) for position, first, passages in removed)
    matches = matches_in(blocks, gone)
    places = sorted((position << 32 | first, passages, document) for document, position, first, passages in documents)
    holding = Ranges.of((first, passages) for first, passages, _ in places).holding(matches.places)
    held: dict[int, set[int]] = {}
    for term in terms:
        held[term] = set(np.unique(holding[(matches.terms == term) & (holding >= 0)]).tolist())
    found = set[int]().union(*(set.intersection(*(held[term] for term in group)) for group in wanted))
    return [places[at][2] for at in sorted(found)]
