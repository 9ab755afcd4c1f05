"""Vector, keyword and hybrid search with one signature; filters are part of the search, never applied to its result.

Both searches travel in one round trip, and the text of a passage is fetched only for those that remain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.database import Database, queries
from rag.flights import Flight
from rag.retrieval import fusion
from rag.retrieval.hits import FUSED_CANDIDATES, Hit, Hits, find_hits, read_scope
from rag.retrieval.query import SearchQuery, TermStatistics
from rag.retrieval.refine import corrected, refined
from rag.types import Scope, SearchFilters, SearchResult

#: Fused candidates whose text is looked at for their final order: their words' nearness, and the names they carry.
REFINED_CANDIDATES = 24
#: Passages looked at when only those with certain metadata are wanted.
MOST_FILTERED = 20_000


@dataclass
class _Fetched:
    """Passages in the order asked for, and what is known of them beside."""

    results: list[SearchResult] = field(default_factory=list)
    #: The language each document's passages are analysed in.
    languages: dict[UUID, str] = field(default_factory=dict)
    #: Their terms in order, as `keywords.packed_terms` packs them; missing for those indexed by an earlier version.
    terms: dict[UUID, bytes] = field(default_factory=dict)


def vector_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """The passages nearest to the question's vector with at least the threshold's similarity, exactly, best first."""
    with database.flight(scope.who) as flight:
        hits = find_hits(flight, query, read_scope(flight, scope, filters), limit=limit, by_keyword=False)
        return _fetch(flight, scope, hits, {hit.chunk_id: hit.similarity or 0.0 for hit in hits.hits.values()}).results


def keyword_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """The passages with the highest BM25 for the question, exactly, best first."""
    with database.flight(scope.who) as flight:
        hits = find_hits(flight, query, read_scope(flight, scope, filters), limit=limit, by_vector=False)
        return _fetch(flight, scope, hits, {h.chunk_id: h.keyword_score or 0.0 for h in hits.hits.values()}).results


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
    #: Passages left out because another one found is the same.
    repeats: int = 0


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

    def run(query: SearchQuery) -> tuple[Hits, _Fetched]:
        candidates = max(pool, FUSED_CANDIDATES)
        with database.flight(scope.who) as flight:
            reading = read_scope(flight, scope, filters)
            if filters is not None and filters.metadata:
                # Of the documents found by it, only the passages that meet it too; so all of them are looked at.
                candidates = min(max(candidates, int(reading.contents.chunks)), MOST_FILTERED)
            hits = find_hits(flight, query, reading, limit=candidates, by_keyword=by_keyword)
            hits = _meeting(flight, scope, filters, hits)
            return hits, _fetch(flight, scope, hits, dict(_fuse(query, list(hits.hits.values()))[:pool]))

    hits, fetched = run(query)
    asked = corrected(query, hits.statistics, fetched.results, fetched.languages) if by_keyword else query
    if asked.text != query.text:
        hits, fetched = run(asked)
    found = [(result, result.score) for result in fetched.results]
    if by_keyword and query.refine:
        found = refined(asked, hits.statistics, fetched.results, fetched.languages, fetched.terms)
    scores = {result.chunk_id: score for result, score in found}
    distinct = fusion.without_repeats([result for result, _ in found], same_beginning=query.same_beginning)
    return Found(
        results=tuple(replace(result, score=scores[result.chunk_id]) for result in distinct[:limit]),
        repeats=len(found) - len(distinct),
        statistics=hits.statistics,
        languages=fetched.languages,
        text=asked.text,
    )


def _meeting(flight: Flight, scope: Scope, filters: SearchFilters | None, hits: Hits) -> Hits:
    """The hits whose passage or document has the metadata asked for."""
    if filters is None or not filters.metadata or not hits.hits:
        return hits
    values = {
        "tenant_id": scope.tenant_id,
        "chunk_ids": list(hits.hits),
        "metadata": Jsonb(dict(filters.metadata)),
    }
    meeting = {row[0] for row in flight.execute(queries["search_meeting"], values).fetchall()}
    ranks: Counter[str] = Counter()

    def ranked(name: str, rank: int | None) -> int | None:
        """The rank among those that are left: what was filtered out never was a result."""
        if rank is None:
            return None
        ranks[name] += 1
        return ranks[name]

    # Hits stand in the order of the one search, then of the other.
    kept = {}
    for hit in sorted(hits.hits.values(), key=lambda hit: hit.vector_rank or 0):
        if hit.chunk_id in meeting:
            kept[hit.chunk_id] = hit._replace(vector_rank=ranked("vector", hit.vector_rank))
    for hit in sorted(kept.values(), key=lambda hit: hit.keyword_rank or 0):
        kept[hit.chunk_id] = hit._replace(keyword_rank=ranked("keyword", hit.keyword_rank))
    return Hits(hits=kept, statistics=hits.statistics)


def _fuse(query: SearchQuery, hits: Sequence[Hit]) -> list[tuple[UUID, float]]:
    """Ids with their fused score, best first. A similarity below the threshold counts for nothing."""
    hits = [
        hit if hit.similarity is None or hit.similarity >= query.threshold else hit._replace(similarity=None)
        for hit in hits
    ]
    if query.fusion == "rrf":
        scores = fusion.reciprocal_rank_scores(hits, rank_constant=query.rank_constant)
    else:
        scores = fusion.weighted_scores(
            hits,
            vector_weight=query.vector_weight,
            keyword_weight=query.keyword_weight,
            vector_rank_weight=query.vector_rank_weight,
            keyword_rank_weight=query.keyword_rank_weight,
            rank_constant=query.rank_constant,
        )
    scored = ((hit.chunk_id, score) for hit, score in zip(hits, scores, strict=True))
    return sorted(scored, key=lambda item: (-item[1], item[0].int))


def _fetch(flight: Flight, scope: Scope, hits: Hits, scores: Mapping[UUID, float]) -> _Fetched:
    """The passages behind ids in their order, with their scores; those of an unfinished document are left out."""
    fetched = _Fetched()
    ids = list(scores)
    if not ids:
        return fetched
    passages = flight.execute(queries["search_passages"], {"tenant_id": scope.tenant_id, "chunk_ids": ids})
    flight.finish()
    for *columns, language, terms in passages.fetchall():
        result = _result(columns, hits.hits[columns[0]], scores[columns[0]])
        fetched.results.append(result)
        fetched.languages[result.document_id] = language
        if terms is not None:
            fetched.terms[result.chunk_id] = terms
    return fetched


def _result(columns: Sequence[Any], hit: Hit, score: float) -> SearchResult:
    chunk_id, document_id, collection_id, content, first_page, last_page, section, index, metadata, title, name = columns
    # Every search makes two dozen of these, which is a tenth of the time of a small one if their fields are unpacked.
    return SearchResult(
        chunk_id=chunk_id,
        document_id=document_id,
        collection_id=collection_id,
        title=title,
        file_name=name,
        content=content,
        first_page=first_page,
        last_page=last_page,
        section=section,
        chunk_index=index,
        metadata=metadata,
        similarity=hit.similarity,
        vector_rank=hit.vector_rank,
        keyword_score=hit.keyword_score,
        keyword_rank=hit.keyword_rank,
        score=score,
    )


__all__ = [
    "Found",
    "SearchQuery",
    "TermStatistics",
    "hybrid_search",
    "keyword_search",
    "search",
    "vector_search",
]
