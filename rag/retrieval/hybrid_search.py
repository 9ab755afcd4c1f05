"""Vector, keyword and hybrid search with one signature; filters are part of the search, never applied to its result.

Both searches travel in one round trip, and those passages that are best by both come with their text in the next.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.retrieval import fusion
from rag.retrieval import meaning as meanings
from rag.retrieval.candidates import FUSED_CANDIDATES, Hits, find_hits, read_scope
from rag.retrieval.fusion import FusionScores
from rag.retrieval.meaning import MeaningHit
from rag.retrieval.refine import corrected, refined
from rag.retrieval.search_query import SearchQuery, TermStatistics, asked_words
from rag.storage.database import Database, queries
from rag.storage.pipeline import Pipeline
from rag.types import Scope, SearchFilters, SearchResult

#: Fused candidates whose text is looked at for their final order: their words' nearness, and the names they carry.
REFINED_CANDIDATES = 24
#: Passages nearest by meaning as a whole of which the parts are looked at.
MEANT_CANDIDATES = 40
#: Passages looked at when only those with certain metadata are wanted.
MOST_FILTERED = 20_000


def vector_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """Return the passages nearest to the question's vector with at least the threshold's similarity, exactly, best
    first.
    """
    with database.pipeline(scope.who) as pipeline:
        hits = find_hits(pipeline, query, read_scope(pipeline, scope, filters), limit=limit, by_keyword=False)
        shares = FusionScores(near=[similarity for _, similarity in hits.near], matching=())
        return [_result(row, hits, row.score) for row in _fetch(pipeline, query, scope, hits, shares, limit=limit)]


def keyword_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """Return the passages with the highest BM25 for the question's words and others for the same, exactly, best
    first.
    """
    with database.pipeline(scope.who) as pipeline:
        hits = find_hits(pipeline, query, read_scope(pipeline, scope, filters), limit=limit, by_vector=False)
        shares = FusionScores(near=(), matching=[score for _, score in hits.matching])
        return [_result(row, hits, row.score) for row in _fetch(pipeline, query, scope, hits, shares, limit=limit)]


def hybrid_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """Return the best passages by both searches, fused as the query says; each passage once."""
    return list(search(database, query, scope=scope, filters=filters, limit=limit).results)


@dataclass(frozen=True, kw_only=True)
class SearchHits:
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
    #: Ids of passages in other languages than the question's, best first by how far they stand out there.
    from_others: tuple[UUID, ...] = ()
    #: The nearest by meaning with what is usual in their languages; empty where there are no such vectors.
    meant: tuple[MeaningHit, ...] = ()

    @property
    def best_meaning(self) -> float | None:
        """The highest cosine by meaning of any passage; None where there are no such vectors."""
        return max((hit.cosine for hit in self.meant), default=None)


def search(
    database: Database,
    query: SearchQuery,
    *,
    scope: Scope,
    filters: SearchFilters | None = None,
    limit: int,
    by_keyword: bool = True,
) -> SearchHits:
    """`hybrid_search` with everything known about its results; by vector alone when `by_keyword` is false."""
    pool = max(limit + limit // 2, REFINED_CANDIDATES)

    def run(query: SearchQuery) -> tuple[Hits, list[_Row]]:
        candidates = max(pool, FUSED_CANDIDATES)
        with database.pipeline(scope.who) as pipeline:
            reading = read_scope(pipeline, scope, filters)
            if filters is not None and filters.metadata:
                # Of the documents found by it, only the passages that meet it too; so all of them are looked at.
                candidates = min(max(candidates, int(reading.contents.chunks)), MOST_FILTERED)
            hits = find_hits(pipeline, query, reading, limit=candidates, by_keyword=by_keyword)
            hits = _meeting(pipeline, scope, filters, hits)
            hits = replace(hits, meant=meanings.in_order(hits.meant, query.language))
            return hits, _fetch(pipeline, query, scope, hits, _shares(query, hits), limit=pool)

    hits, rows = run(query)
    asked = corrected(query, hits.statistics, rows) if by_keyword else query
    if asked.text != query.text:
        hits, rows = run(asked)
    scored = [(row, row.score) for row in rows]
    if by_keyword and query.refine:
        scored = refined(asked, hits.statistics, rows)
    if hits.meant:
        hits = replace(hits, meant=_by_parts(hits.meant, rows, asked.language))
        scored = _with_meaning(scored, hits, asked)
    distinct = fusion.without_repeats(scored, same_beginning=query.same_beginning)
    others = _from_others(asked, hits.meant)
    kept = distinct[:limit] + [(row, score) for row, score in distinct[limit:] if row.chunk_id in others]
    return SearchHits(
        results=tuple(_result(row, hits, score) for row, score in kept),
        from_others=tuple(others),
        repeats=len(rows) - len(distinct),
        statistics=hits.statistics,
        languages={row.document_id: row.language for row in rows},
        text=asked.text,
        meant=tuple(hits.meant),
    )


def _by_parts(meant: Sequence[MeaningHit], rows: Sequence[_Row], language: str) -> list[MeaningHit]:
    """Return the nearest by meaning in their order, each as near as the nearest of its parts."""
    nearest = {row.chunk_id: row.meaning for row in rows if row.meaning is not None}
    known = [hit._replace(cosine=nearest[hit.chunk_id]) for hit in meant if hit.chunk_id in nearest]
    return meanings.in_order(known, language)


def _with_meaning(scored: list[tuple[_Row, float]], hits: Hits, query: SearchQuery) -> list[tuple[_Row, float]]:
    """One order of three: that of the words, as far as there are any in common, and two of what is meant."""
    rows = [row for row, _ in scored]
    sharing = [row.chunk_id for row in rows if row.keyword_rank or (row.similarity or 0) >= meanings.LEAST_WORDS]
    orders = (sharing, [hit.chunk_id for hit in hits.meant], [hit.chunk_id for hit in meanings.by_standing(hits.meant)])
    ranks = [{chunk_id: rank for rank, chunk_id in enumerate(order, 1)} for order in orders]
    words = asked_words(query.text.partition("\n")[0], query.language, query.language or "en")
    scores = meanings.fused_scores(
        *([order.get(row.chunk_id) for row in rows] for order in ranks), words_weight=meanings.words_weight(len(words))
    )
    return sorted(zip(rows, scores, strict=True), key=lambda item: (-item[1], item[0].chunk_id.int))


def _meeting(pipeline: Pipeline, scope: Scope, filters: SearchFilters | None, hits: Hits) -> Hits:
    """Return the hits whose passage or document has the metadata asked for."""
    if filters is None or not filters.metadata or not (hits.near or hits.matching or hits.meant):
        return hits
    values = {
        "tenant_id": scope.tenant_id,
        "collection_ids": list(scope.collection_ids),
        "near": [*(chunk_id for chunk_id, _ in hits.near), *(hit.chunk_id for hit in hits.meant)],
        **hits.places._asdict(),
        "metadata": Jsonb(dict(filters.metadata)),
    }
    ranks = {row[0] for row in pipeline.execute(queries["search_meeting"], values).fetchall()}
    return replace(
        hits,
        near=[hit for rank, hit in enumerate(hits.near, 1) if rank in ranks],
        matching=[hit for rank, hit in enumerate(hits.matching, 1) if -rank in ranks],
        meant=[hit for rank, hit in enumerate(hits.meant, len(hits.near) + 1) if rank in ranks],
    )


def _shares(query: SearchQuery, hits: Hits) -> FusionScores:
    similarities, keyword_scores = [s for _, s in hits.near], [s for _, s in hits.matching]
    if query.fusion == "rrf":
        return fusion.reciprocal_rank_fusion(similarities, keyword_scores, rank_constant=query.rank_constant)
    return fusion.weighted_fusion(
        similarities,
        keyword_scores,
        vector_weight=query.vector_weight,
        keyword_weight=query.keyword_weight,
        vector_rank_weight=query.vector_rank_weight,
        keyword_rank_weight=query.keyword_rank_weight,
        rank_constant=query.rank_constant,
        is_raw=query.fusion == "raw",
    )


def _fetch(
    pipeline: Pipeline, query: SearchQuery, scope: Scope, hits: Hits, shares: FusionScores, *, limit: int
) -> list[_Row]:
    """Return the best passages by the sum of their shares; those of an unfinished document are left out."""
    if not hits.near and not hits.matching and not hits.meant:
        return []
    values = {
        "tenant_id": scope.tenant_id,
        "collection_ids": list(scope.collection_ids),
        "near": [chunk_id for chunk_id, _ in hits.near],
        "similarities": [similarity for _, similarity in hits.near],
        "near_shares": list(shares.near),
        **hits.places._asdict(),
        "matching_shares": list(shares.matching),
        "similarity_share": shares.similarity,
        "threshold": query.threshold,
        "vector": query.halfvec,
        "embedding_model": query.embedding_model,
        "limit": limit,
        "meant": _nearest_by_meaning(query, hits.meant, limit),
        "meaning": query.meaning_halfvec,
    }
    passages = pipeline.execute(queries["search_fused"], values)
    pipeline.finish()
    return list(map(_Row._make, passages.fetchall()))


def _nearest_by_meaning(query: SearchQuery, meant: Sequence[MeaningHit], limit: int) -> list[UUID]:
    """So many in their order, and the best of other languages, which cosines alone hide."""
    first = meant[: max(limit, MEANT_CANDIDATES)]
    return list(dict.fromkeys([*(hit.chunk_id for hit in first), *_from_others(query, meant)]))


def _from_others(query: SearchQuery, meant: Sequence[MeaningHit]) -> list[UUID]:
    if not query.language:
        return []
    others = meanings.from_other_languages(meant, query.language, meanings.named_languages(query.text))
    return [hit.chunk_id for hit in others[: meanings.FROM_OTHERS]]


class _Row(NamedTuple):
    """A row of `search_fused`."""

    chunk_id: UUID
    document_id: UUID
    collection_id: UUID
    content: str
    first_page: int
    last_page: int
    section: str
    chunk_index: int
    #: As JSON.
    metadata: str
    title: str
    file_name: str
    #: What the document's passages are analysed in.
    language: str
    #: Its terms in order, as `keywords.packed_terms` packs them; None where an earlier version indexed it.
    terms: bytes | None
    similarity: float | None
    vector_rank: int | None
    keyword_rank: int | None
    meaning_rank: int | None
    #: By words, before meaning has a say.
    score: float
    #: Cosine by meaning, of its nearest part, and of each part.
    meaning: float | None
    part_meanings: list[float] | None


def _result(row: _Row, hits: Hits, score: float) -> SearchResult:
    return SearchResult(
        chunk_id=row.chunk_id,
        document_id=row.document_id,
        collection_id=row.collection_id,
        title=row.title,
        file_name=row.file_name,
        content=row.content,
        first_page=row.first_page,
        last_page=row.last_page,
        section=row.section,
        chunk_index=row.chunk_index,
        metadata=json.loads(row.metadata),
        similarity=row.similarity,
        vector_rank=row.vector_rank,
        keyword_score=None if row.keyword_rank is None else hits.matching[row.keyword_rank - 1][1],
        keyword_rank=row.keyword_rank,
        meaning=row.meaning,
        part_meanings=tuple(row.part_meanings or ()),
        meaning_rank=row.meaning_rank,
        score=score,
    )


__all__ = [
    "SearchHits",
    "SearchQuery",
    "TermStatistics",
    "hybrid_search",
    "keyword_search",
    "search",
    "vector_search",
]
