"""Search for a single wording by vector, keyword and meaning, within filters.

All searches are sent in a single round trip: Python scores terms while Postgres compares vectors. A second round trip
reads the best chunks with their text. In a `Database.pipeline`, a statement waits only when the rows are fetched, and
all statements see the same snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from pgvector import HalfVector
from psycopg.types.json import Jsonb

from rag.retrieval import fusion
from rag.retrieval import meaning as meanings
from rag.retrieval.bm25.index import term_id
from rag.retrieval.bm25.scoring import Bm25, best_of, matches_in
from rag.retrieval.deduplication import without_repeats
from rag.retrieval.fusion import FusionScores
from rag.retrieval.meaning import Cosines, MeaningHit
from rag.retrieval.proximity import refined, unnamed_twins
from rag.retrieval.search_query import (
    SearchQuery,
    TermStatistics,
    cached_question_words,
    correct_spelling,
    question_terms,
)
from rag.retrieval.search_scope import Expected, ScopeReading, ranges, read_scope
from rag.storage.database import Database, queries
from rag.storage.pipeline import PendingResult, Pipeline
from rag.types import Scope, SearchFilters, SearchResult

#: Fused candidates to read and reorder by word distance and by names.
REFINED_CANDIDATES = 24
#: Passages nearest by whole-passage meaning, for comparing part by part next.
FETCHED_BY_MEANING = 40
#: The most passages read to filter by metadata.
MOST_FILTERED = 20_000
#: The fewest candidates fused from each search.
FUSED_CANDIDATES = 50
#: Passages nearest by the signs of their dimensions; their vectors are compared next. Half the signs need twice as
#: many. Measured: recall@10 is 1.000 with 400 passages at 1536 dimensions and 800 at 384; 400 at 384 missed a neighbour
#: in 10,000.
BIT_CANDIDATES = 400
SIGNS = 768
#: Passages compared first, to set the distance for the rest. Measured with 100,000: 8,000 are equally good, 2,000 a
#: little worse.
FIRST_BITS = 4_000
#: Passages per language, nearest by the bits of their meaning, for which vectors are compared.
MEANING_CANDIDATES = 800
#: Sample size for the usual similarity per language and collection, which makes its mean accurate to 0.05 deviations.
DRAWN = 400


class ScopePositions(NamedTuple):
    """Chunks in two parallel lists: the collection's position in the scope, and the chunk's number."""

    positions: list[int]
    passages: list[int]


@dataclass(frozen=True, kw_only=True)
class Hits:
    """The hits from vector search, keyword search and search by meaning, best first."""

    #: Chunk ids with their cosine similarity.
    near: Sequence[tuple[UUID, float]]
    #: Keyword places with their BM25 score.
    matching: Sequence[tuple[int, float]]
    statistics: TermStatistics
    #: Passages by meaning cosine, the same number per language.
    meaning_hits: Sequence[MeaningHit] = ()

    @property
    def places(self) -> ScopePositions:
        return ScopePositions(
            [place >> 32 for place, _ in self.matching], [place & 0xFFFFFFFF for place, _ in self.matching]
        )


@dataclass(frozen=True, kw_only=True)
class SearchHits:
    """The results from `search`, with all data needed to judge them."""

    results: tuple[SearchResult, ...]
    #: Passage counts for the question's terms.
    statistics: TermStatistics
    #: Each document's analyser language.
    languages: Mapping[UUID, str]
    #: The searched question, with corrected spelling.
    text: str
    #: How many passages were dropped for being identical to a found passage.
    repeats: int = 0
    #: Ids of passages in other languages than the question's, the most unusually near for their language first.
    foreign_ids: tuple[UUID, ...] = ()
    #: The nearest passages by meaning, with the usual similarity in their languages; empty without meaning vectors.
    meaning_hits: tuple[MeaningHit, ...] = ()
    #: Documents with a near twin named in the question.
    twins: frozenset[UUID] = frozenset()

    @property
    def best_meaning(self) -> float | None:
        """The highest cosine by meaning, or `None` if meaning was not compared."""
        return max((hit.cosine for hit in self.meaning_hits), default=None)


def vector_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """Return the chunks nearest to the question's vector, best first.

    Each similarity is at least the query's threshold.
    """

    def run(pipeline: Pipeline) -> list[SearchResult]:
        hits = find_hits(pipeline, query, read_scope(pipeline, scope, filters), limit=limit, by_keyword=False)
        shares = FusionScores(near=[similarity for _, similarity in hits.near], matching=())
        return [_result(row, hits, row.score) for row in _fetch(pipeline, query, scope, hits, shares, limit=limit)]

    return database.read(scope.who, run)


def keyword_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """Return the chunks with the highest exact BM25 score for the question's words and synonyms, best first."""

    def run(pipeline: Pipeline) -> list[SearchResult]:
        hits = find_hits(pipeline, query, read_scope(pipeline, scope, filters), limit=limit, by_vector=False)
        shares = FusionScores(near=(), matching=[score for _, score in hits.matching])
        return [_result(row, hits, row.score) for row in _fetch(pipeline, query, scope, hits, shares, limit=limit)]

    return database.read(scope.who, run)


def hybrid_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """Return the best passages from vector and keyword search, fused by the query's formula, without duplicates."""
    return list(search(database, query, scope=scope, filters=filters, limit=limit).results)


def search(
    database: Database,
    query: SearchQuery,
    *,
    scope: Scope,
    filters: SearchFilters | None = None,
    limit: int,
    by_keyword: bool = True,
) -> SearchHits:
    """Search like `hybrid_search`, and return all data about the results.

    If `by_keyword` is false, keywords are not searched.
    """
    pool = max(limit + limit // 2, REFINED_CANDIDATES)

    def run(query: SearchQuery, pipeline: Pipeline) -> tuple[Hits, list[_Row]]:
        candidates = max(pool, FUSED_CANDIDATES)
        reading = read_scope(pipeline, scope, filters)
        if filters is not None and filters.metadata:
            # If filters match only some passages of a document, read them all.
            candidates = min(max(candidates, int(reading.contents.chunks)), MOST_FILTERED)
        hits = find_hits(pipeline, query, reading, limit=candidates, by_keyword=by_keyword)
        hits = _meeting(pipeline, scope, filters, hits)
        hits = replace(hits, meaning_hits=meanings.in_order(hits.meaning_hits, query.language))
        return hits, _fetch(pipeline, query, scope, hits, _shares(query, hits), limit=pool)

    hits, rows = database.read(scope.who, partial(run, query))
    corrected_query = correct_spelling(query, hits.statistics, rows) if by_keyword else query
    if corrected_query.text != query.text:
        hits, rows = database.read(scope.who, partial(run, corrected_query))
    scored = [(row, row.score) for row in rows]
    if by_keyword and query.refine:
        scored = refined(corrected_query, hits.statistics, rows)
    twins = unnamed_twins(corrected_query, rows) if by_keyword and query.refine else frozenset()
    if hits.meaning_hits:
        hits = replace(hits, meaning_hits=_rank_by_parts(hits.meaning_hits, rows, corrected_query.language))
        scored = _add_meaning(scored, hits, corrected_query, twins)
    foreign_ids = _foreign_ids(corrected_query, hits.meaning_hits)
    if cosines := _translated_cosines(database, corrected_query, scope, hits.meaning_hits):
        foreign_ids = _foreign_ids(corrected_query, hits.meaning_hits, cosines)
        scored_ids = {row.chunk_id for row, _ in scored}
        if missing := [chunk_id for chunk_id in foreign_ids if chunk_id not in scored_ids]:
            scored += [
                (row, 0.0) for row in database.read(scope.who, partial(_fetch_by_id, corrected_query, scope, missing))
            ]
    distinct = without_repeats(scored, same_beginning=query.same_beginning)
    selected = distinct[:limit] + [(row, score) for row, score in distinct[limit:] if row.chunk_id in foreign_ids]
    return SearchHits(
        results=tuple(_result(row, hits, score) for row, score in selected),
        foreign_ids=tuple(foreign_ids),
        repeats=len(rows) - len(distinct),
        statistics=hits.statistics,
        languages={row.document_id: row.language for row in rows},
        text=corrected_query.text,
        meaning_hits=tuple(hits.meaning_hits),
        twins=twins,
    )


def find_hits(
    pipeline: Pipeline,
    query: SearchQuery,
    scope: ScopeReading,
    *,
    limit: int,
    by_vector: bool = True,
    by_keyword: bool = True,
) -> Hits:
    """Run the searches, in a single round trip if the scope's contents have not changed since the last search.

    Raises `InvalidInput` if the query's vector has the wrong number of dimensions for its embedding model.
    """
    vector = query.halfvec
    values: dict[str, Any] = {
        **scope.where,
        "wanted": None,
        "vector": vector,
        "embedding_model": query.embedding_model,
        "threshold": query.threshold,
        "limit": limit,
    }

    def ask(expected: Expected) -> tuple[_AskedTerms | None, PendingResult | None, PendingResult | None]:
        terms = _ask_for_terms(pipeline, query, expected, values) if by_keyword else None
        near = _ask_for_vectors(pipeline, query, expected, values) if by_vector and vector is not None else None
        meaning = _ask_for_meaning(pipeline, query, expected, values) if query.meaning is not None else None
        return terms, near, meaning

    guess = scope.guess
    pending = ask(guess) if guess is not None else None
    contents = scope.contents
    if contents.document_ids == ():
        return Hits(near=(), matching=(), statistics=TermStatistics(chunks=contents.chunks))
    if pending is None or contents.document_ids is not None or contents.expected != guess:
        values["wanted"] = None if contents.document_ids is None else list(contents.document_ids)
        pending = ask(contents.expected)
    terms, nearest, meaning = pending
    # Postgres compares the vectors meanwhile.
    matches = matches_in(terms.blocks.fetchall(), ranges(terms.removed.fetchall())) if terms else None
    statistics, matching = TermStatistics(chunks=contents.chunks), list[tuple[int, float]]()
    if matches is not None:
        matching = best_of(
            matches,
            Bm25(chunks=contents.chunks, average_length=contents.average_length, k1=query.k1, b=query.b),
            allowed=contents.document_places,
            limit=limit,
            weights=terms.weights if terms else {},
        )
        statistics = TermStatistics(chunks_by_term=matches.passages_by_term, chunks=contents.chunks)
    return Hits(
        near=nearest.fetchall() if nearest else (),
        matching=matching,
        statistics=statistics,
        meaning_hits=list(map(MeaningHit._make, meaning.fetchall())) if meaning else (),
    )


def _ask_for_vectors(
    pipeline: Pipeline, query: SearchQuery, expected: Expected, values: dict[str, Any]
) -> PendingResult:
    statement, parameters = nearest_statement(
        values,
        is_large=expected.is_large and query.is_dense,
        breadth=expected.breadth,
        neighbours=query.neighbours,
    )
    pending = pipeline.execute(statement, parameters)
    pipeline.flush()
    return pending


def nearest_statement(
    values: dict[str, Any], *, is_large: bool, breadth: int = 0, neighbours: int = 0
) -> tuple[str, dict[str, Any]]:
    """Return the SQL statement for the nearest chunks: by vector index, by sign bits first, or by a full scan."""
    if breadth:
        return queries["search_by_index"], {**values, "breadth": breadth, "neighbours": neighbours}
    if is_large:
        candidates = BIT_CANDIDATES * max(1, SIGNS // values["vector"].dimensions())
        statement = "search_by_bits" if values["wanted"] is None else "search_wanted_by_bits"
        reranked = max(values["limit"], candidates, neighbours)
        return queries[statement], {**values, "reranked": reranked, "first": FIRST_BITS}
    return queries["search_by_vector"], values


def _ask_for_meaning(
    pipeline: Pipeline, query: SearchQuery, expected: Expected, values: dict[str, Any]
) -> PendingResult:
    parameters = {**values, "vector": query.meaning_halfvec}
    if expected.has_many_meanings:
        reranked = max(values["limit"], MEANING_CANDIDATES)
        pending = pipeline.execute(
            queries["search_by_meaning_bits"], {**parameters, "reranked": reranked, "drawn": DRAWN}
        )
    else:
        pending = pipeline.execute(queries["search_by_meaning"], parameters)
    pipeline.flush()
    return pending


class _AskedTerms(NamedTuple):
    #: Weight by term number.
    weights: dict[int, float]
    removed: PendingResult
    blocks: PendingResult


def _ask_for_terms(
    pipeline: Pipeline, query: SearchQuery, expected: Expected, values: dict[str, Any]
) -> _AskedTerms | None:
    weights: dict[int, float] = {}
    for analyser in expected.analysers:
        for term, weight in question_terms(query.text, query.language, analyser).items():
            weights[term_id(term)] = max(weight, weights.get(term_id(term), 0.0))
    if not weights:
        return None
    removed = pipeline.execute(queries["search_removed"], values)
    blocks = pipeline.execute(queries["search_postings"], {**values, "terms": sorted(weights)})
    pipeline.flush()
    return _AskedTerms(weights, removed, blocks)


def _rank_by_parts(meaning_hits: Sequence[MeaningHit], rows: Sequence[_Row], language: str) -> list[MeaningHit]:
    nearest = {row.chunk_id: row.meaning for row in rows if row.meaning is not None}
    compared = [hit._replace(cosine=nearest[hit.chunk_id]) for hit in meaning_hits if hit.chunk_id in nearest]
    return meanings.in_order(compared, language)


def _add_meaning(
    scored: list[tuple[_Row, float]], hits: Hits, query: SearchQuery, twins: Collection[UUID]
) -> list[tuple[_Row, float]]:
    rows = [row for row, _ in scored]
    sharing = [row.chunk_id for row in rows if row.keyword_rank or (row.similarity or 0) >= fusion.RULE.least_words]
    twin_ids = {row.chunk_id for row in rows if row.document_id in twins}
    meaning_orders = [
        [hit.chunk_id for hit in order] for order in (hits.meaning_hits, meanings.by_standing(hits.meaning_hits))
    ]
    orders = (sharing, *(sorted(order, key=twin_ids.__contains__) for order in meaning_orders))
    ranks = [{chunk_id: rank for rank, chunk_id in enumerate(order, 1)} for order in orders]
    unread = {row.chunk_id: ranks[0][row.chunk_id] for row in rows if row.meaning is None and row.chunk_id in ranks[0]}
    ranks = [ranks[0], *(unread | order for order in ranks[1:])]
    words = cached_question_words(query.text.partition("\n")[0], query.language, query.language or "en")
    scores = fusion.fused_scores(
        *([order.get(row.chunk_id) for row in rows] for order in ranks), words_weight=fusion.words_weight(len(words))
    )
    return sorted(zip(rows, scores, strict=True), key=lambda item: (-item[1], item[0].chunk_id.int))


def _meeting(pipeline: Pipeline, scope: Scope, filters: SearchFilters | None, hits: Hits) -> Hits:
    if filters is None or not filters.metadata or not (hits.near or hits.matching or hits.meaning_hits):
        return hits
    values = {
        "tenant_id": scope.tenant_id,
        "collection_ids": list(scope.collection_ids),
        "near": [*(chunk_id for chunk_id, _ in hits.near), *(hit.chunk_id for hit in hits.meaning_hits)],
        **hits.places._asdict(),
        "metadata": Jsonb(dict(filters.metadata)),
    }
    ranks = {row[0] for row in pipeline.execute(queries["search_meeting"], values).fetchall()}
    return replace(
        hits,
        near=[hit for rank, hit in enumerate(hits.near, 1) if rank in ranks],
        matching=[hit for rank, hit in enumerate(hits.matching, 1) if -rank in ranks],
        meaning_hits=[hit for rank, hit in enumerate(hits.meaning_hits, len(hits.near) + 1) if rank in ranks],
    )


def _shares(query: SearchQuery, hits: Hits) -> FusionScores:
    similarities, keyword_scores = [s for _, s in hits.near], [s for _, s in hits.matching]
    if query.fusion == "rrf":
        return fusion.reciprocal_rank_fusion(similarities, keyword_scores, rank_constant=query.weights.rank_constant)
    return fusion.weighted_fusion(similarities, keyword_scores, query.weights, is_raw=query.fusion == "raw")


def _fetch(
    pipeline: Pipeline,
    query: SearchQuery,
    scope: Scope,
    hits: Hits,
    shares: FusionScores,
    *,
    limit: int,
    chunk_ids: Sequence[UUID] | None = None,
) -> list[_Row]:
    if not hits.near and not hits.matching and not hits.meaning_hits and not chunk_ids:
        return []
    meaning_ids = _nearest_by_meaning(query, hits.meaning_hits, limit) if chunk_ids is None else list(chunk_ids)
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
        "meant": meaning_ids,
        "meaning": query.meaning_halfvec,
    }
    passages = pipeline.execute(queries["search_fused"], values)
    pipeline.finish()
    rows = list(map(_Row._make, passages.fetchall()))
    return rows if query.with_folders else [row._replace(folder="") for row in rows]


def _fetch_by_id(query: SearchQuery, scope: Scope, chunk_ids: Sequence[UUID], pipeline: Pipeline) -> list[_Row]:
    none = Hits(near=(), matching=(), statistics=TermStatistics())
    return _fetch(
        pipeline, query, scope, none, FusionScores(near=(), matching=()), limit=len(chunk_ids), chunk_ids=chunk_ids
    )


def _nearest_by_meaning(query: SearchQuery, meaning_hits: Sequence[MeaningHit], limit: int) -> list[UUID]:
    first = meaning_hits[: max(limit, FETCHED_BY_MEANING)]
    return list(dict.fromkeys([*(hit.chunk_id for hit in first), *_foreign_ids(query, meaning_hits)]))


def _translated_cosines(
    database: Database, query: SearchQuery, scope: Scope, meaning_hits: Sequence[MeaningHit]
) -> dict[UUID, Cosines]:
    ids_by_language: dict[str, list[UUID]] = {}
    for hit in meaning_hits:
        if hit.language != query.language:
            ids_by_language.setdefault(hit.language, []).append(hit.chunk_id)
    if not ids_by_language or query.meaning is None or query.meaning_in_words_of is None or not query.language:
        return {}
    vectors = query.meaning_in_words_of(ids_by_language)
    if not vectors:
        return {}

    def read(pipeline: Pipeline) -> dict[UUID, Cosines]:
        compared = [
            pipeline.execute(
                queries["meaning_of_chunks"],
                {
                    "switched": HalfVector(vector),
                    "vector": query.meaning_halfvec,
                    "chunk_ids": ids_by_language[language],
                },
            )
            for language, vector in vectors.items()
        ]
        pipeline.finish()
        return {row[0]: Cosines(*row[1:]) for pending in compared for row in pending.fetchall()}

    return database.read(scope.who, read)


def _foreign_ids(
    query: SearchQuery, meaning_hits: Sequence[MeaningHit], translated_cosines: Mapping[UUID, Cosines] | None = None
) -> list[UUID]:
    if not query.language:
        return []
    named = meanings.named_languages(query.text)
    foreign_hits = meanings.from_other_languages(meaning_hits, query.language, named, translated_cosines)
    return [
        hit.chunk_id
        for hit in foreign_hits[: meanings.FROM_NAMED_LANGUAGES if named else meanings.FROM_OTHER_LANGUAGES]
    ]


class _Row(NamedTuple):
    chunk_id: UUID
    document_id: UUID
    collection_id: UUID
    content: str
    first_page: int
    last_page: int
    section: str
    chunk_index: int
    #: JSON text.
    metadata: str
    title: str
    file_name: str
    #: Empty if titles are not indexed.
    folder: str
    #: The analyser of the document's passages.
    language: str
    #: Terms in order, from `keywords.packed_terms`; `None` if an earlier product version indexed the passage.
    terms: bytes | None
    similarity: float | None
    vector_rank: int | None
    keyword_rank: int | None
    meaning_rank: int | None
    #: The score by words, before meaning is added.
    score: float
    #: The cosine by meaning, from the nearest part; and all parts' cosines.
    meaning: float | None
    part_meanings: list[float] | None


def _result(row: _Row, hits: Hits, score: float) -> SearchResult:
    return SearchResult(
        chunk_id=row.chunk_id,
        document_id=row.document_id,
        collection_id=row.collection_id,
        title=row.title,
        file_name=row.file_name,
        folder=row.folder,
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
