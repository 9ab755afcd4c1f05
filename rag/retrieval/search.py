"""Vector, keyword and hybrid search with one signature; filters are part of the search, never applied to its result.

Both searches travel in one round trip, and the text of a passage is fetched only for those that remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from pgvector import HalfVector
from psycopg import Connection
from psycopg.rows import dict_row

from rag.database import Database, queries
from rag.retrieval import fusion
from rag.retrieval.analysers import LANGUAGES
from rag.retrieval.keywords import term_id
from rag.retrieval.query import SearchQuery, TermStatistics, question_terms
from rag.retrieval.refine import corrected, refined
from rag.types import Scope, SearchFilters, SearchResult

#: Candidates by the weights of an earlier day that are scored again with today's average length. Measured: with an
#: average off by a factor of two, 50 restore the exact ten best.
RESCORED_CANDIDATES = 50
#: Fused candidates whose text is looked at for their final order: their words' nearness, and the names they carry.
REFINED_CANDIDATES = 24


class Hit(NamedTuple):
    """A passage found, without its text. None where one of the searches did not find it."""

    chunk_id: UUID
    similarity: float | None
    vector_rank: int | None
    keyword_score: float | None
    keyword_rank: int | None


@dataclass(frozen=True, kw_only=True)
class Hits:
    """What the searches found: each passage once, those of the vector search first."""

    hits: dict[UUID, Hit]
    statistics: TermStatistics


def vector_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """The passages nearest to the question's vector with at least the threshold's similarity, exactly, best first."""
    with database.transaction(scope.tenant_id, snapshot=True) as connection:
        hits = find_hits(connection, query, scope=scope, filters=filters, limit=limit, by_keyword=False)
        return [replace(r, score=r.similarity or 0.0) for r in _fetch(connection, scope, hits, hits.hits)]


def keyword_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """The passages with the highest BM25 for the question, exactly, best first."""
    with database.transaction(scope.tenant_id, snapshot=True) as connection:
        hits = find_hits(connection, query, scope=scope, filters=filters, limit=limit, by_vector=False)
        return [replace(r, score=r.keyword_score or 0.0) for r in _fetch(connection, scope, hits, hits.hits)]


def hybrid_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """The best passages by both searches, fused as the query says; each passage once."""
    return list(search(database, query, scope=scope, filters=filters, limit=limit).results)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What `search` found, with what is needed to judge it."""

    results: tuple[SearchResult, ...]
    #: What the keyword index knows of the question's terms.
    statistics: TermStatistics
    #: The language each document's passages are analysed in.
    languages: Mapping[UUID, str]
    #: The question as it was searched for: misspelt words put right.
    text: str


def search(
    database: Database,
    query: SearchQuery,
    *,
    scope: Scope,
    filters: SearchFilters | None = None,
    limit: int,
    by_keyword: bool = True,
) -> Found:
    """`hybrid_search` with everything known about its results; by vector alone when `by_keyword` is false."""
    pool = max(limit + limit // 2, REFINED_CANDIDATES)
    candidates = max(pool, RESCORED_CANDIDATES)
    languages: dict[UUID, str] = {}
    # A version that is replaced between two statements would be found by the one and not be there for the other.
    with database.transaction(scope.tenant_id, snapshot=True) as connection:

        def run(query: SearchQuery) -> tuple[Hits, list[SearchResult]]:
            hits = find_hits(connection, query, scope=scope, filters=filters, limit=candidates, by_keyword=by_keyword)
            fused = dict(_fuse(query, list(hits.hits.values()))[:pool])
            rows = _fetch(connection, scope, hits, fused, languages)
            return hits, [replace(r, score=fused[r.chunk_id]) for r in rows]

        hits, found = run(query)
        asked = corrected(query, hits.statistics, found, languages) if by_keyword else query
        if asked.text != query.text:
            hits, found = run(asked)
    if by_keyword:
        found = refined(asked, hits.statistics, found, languages)
    return Found(
        results=tuple(fusion.without_repeats(found)[:limit]),
        statistics=hits.statistics,
        languages=languages,
        text=asked.text,
    )


def find_hits(
    connection: Connection,
    query: SearchQuery,
    *,
    scope: Scope,
    filters: SearchFilters | None = None,
    limit: int,
    by_vector: bool = True,
    by_keyword: bool = True,
) -> Hits:
    """Run the searches in one round trip; ids and scores only."""
    parameters = _parameters(query, scope, filters or SearchFilters(), limit)
    by_vector = by_vector and parameters["vector"] is not None
    by_keyword = by_keyword and bool(parameters["terms"])
    with connection.pipeline(), connection.cursor() as vector_cursor, connection.cursor() as keyword_cursor:
        if by_vector:
            vector_cursor.execute(queries["search_by_vector"], parameters)
        if by_keyword:
            keyword_cursor.execute(queries["search_by_keyword"], parameters)
        near = vector_cursor.fetchall() if by_vector else []
        matching = keyword_cursor.fetchall() if by_keyword else []
    hits = {row[0]: Hit(row[0], row[1], rank, None, None) for rank, row in enumerate(near, 1)}
    for rank, row in enumerate(matching, 1):
        known = hits.get(row[0])
        hits[row[0]] = Hit(row[0], row[6], known.vector_rank if known else None, row[1], rank)
    _, _, _, terms, chunks, total, _ = matching[0] if matching else (None, 0.0, [], [], [], 0.0, None)
    statistics = TermStatistics(chunks_by_term=dict(zip(terms, chunks, strict=True)), chunks=total)
    return Hits(hits=hits, statistics=statistics)


def _parameters(query: SearchQuery, scope: Scope, filters: SearchFilters, limit: int) -> dict[str, Any]:
    languages: list[str] = []
    terms: list[int] = []
    for analyser in LANGUAGES:
        for term in question_terms(query.text, query.language, analyser):
            languages.append(analyser)
            terms.append(term_id(term))
    vector = query.vector
    has_direction = vector is not None and bool(np.any(vector))
    return {
        "tenant_id": scope.tenant_id,
        "collection_ids": list(scope.collection_ids),
        "languages": languages,
        "terms": terms,
        "known_languages": list(LANGUAGES),
        "vector": HalfVector(vector) if vector is not None and has_direction else None,
        "embedding_model": query.embedding_model,
        "threshold": query.threshold,
        "document_ids": list(filters.document_ids) or None,
        "categories": list(filters.categories) or None,
        "years": list(filters.years) or None,
        "limit": limit,
        "candidates": max(limit, RESCORED_CANDIDATES),
    }


def _fuse(query: SearchQuery, hits: Sequence[Hit]) -> list[tuple[UUID, float]]:
    """Ids with their fused score, best first."""
    if query.fusion == "rrf":
        scores = fusion.reciprocal_rank_scores(hits)
    else:
        scores = fusion.weighted_scores(
            hits,
            vector_weight=query.vector_weight,
            keyword_weight=query.keyword_weight,
            vector_rank_weight=query.vector_rank_weight,
            keyword_rank_weight=query.keyword_rank_weight,
        )
    scored = ((hit.chunk_id, score) for hit, score in zip(hits, scores, strict=True))
    return sorted(scored, key=lambda item: (-item[1], item[0].int))


def _fetch(
    connection: Connection,
    scope: Scope,
    hits: Hits,
    chunk_ids: Iterable[UUID],
    languages: dict[UUID, str] | None = None,
) -> list[SearchResult]:
    """The rows of passages in the order of their ids; one that was deleted meanwhile is left out."""
    ids = list(chunk_ids)
    if not ids:
        return []
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(queries["search_passages"], {"tenant_id": scope.tenant_id, "chunk_ids": ids})
        rows = {row["chunk_id"]: row for row in cursor.fetchall()}
    for row in rows.values():
        language = row.pop("language")
        if languages is not None:
            languages[row["document_id"]] = language
    return [SearchResult(**rows[i], **_scores(hits.hits[i])) for i in ids if i in rows]


def _scores(hit: Hit) -> dict[str, Any]:
    scores = hit._asdict()
    del scores["chunk_id"]
    return scores


__all__ = [
    "Found",
    "SearchQuery",
    "TermStatistics",
    "find_hits",
    "hybrid_search",
    "keyword_search",
    "search",
    "vector_search",
]
