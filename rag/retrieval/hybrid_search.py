"""Search for one wording by vector, keyword and meaning; filters are part of the search.

All searches travel in a single round trip, and Python scores terms while Postgres compares vectors. A second round trip
reads the best passages with their text. In a `Database.pipeline`, statements wait only when their rows are fetched, and
all see the same snapshot.
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
from rag.retrieval.proximity import refined, with_twin_meant
from rag.retrieval.search_query import SearchQuery, TermStatistics, asked_words, corrected, question_terms
from rag.retrieval.search_scope import Expected, ScopeReading, ranges, read_scope
from rag.storage.database import Database, queries
from rag.storage.pipeline import PendingResult, Pipeline
from rag.types import Scope, SearchFilters, SearchResult

#: Fused candidates to read and reorder by word distance and by names.
REFINED_CANDIDATES = 24
#: Passages nearest by whole-passage meaning, for comparing part by part next.
MEANT_CANDIDATES = 40
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
    """Passages as statement parameters: the collection's position in the scope, and the passage's number."""

    positions: list[int]
    passages: list[int]


@dataclass(frozen=True, kw_only=True)
class Hits:
    """The hits from each search, best first."""

    #: Chunk ids with their cosine similarity.
    near: Sequence[tuple[UUID, float]]
    #: Keyword places with their BM25 score.
    matching: Sequence[tuple[int, float]]
    statistics: TermStatistics
    #: Passages by meaning cosine, the same number per language.
    meant: Sequence[MeaningHit] = ()

    @property
    def places(self) -> ScopePositions:
        return ScopePositions(
            [place >> 32 for place, _ in self.matching], [place & 0xFFFFFFFF for place, _ in self.matching]
        )


@dataclass(frozen=True, kw_only=True)
class SearchHits:
    """The results from `search`, with the data needed to judge them."""

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
    from_others: tuple[UUID, ...] = ()
    #: The nearest passages by meaning, with the usual similarity in their languages; empty without meaning vectors.
    meant: tuple[MeaningHit, ...] = ()
    #: Documents with a near twin named in the question.
    twins: frozenset[UUID] = frozenset()

    @property
    def best_meaning(self) -> float | None:
        """The highest cosine by meaning, or `None` without meaning vectors."""
        return max((hit.cosine for hit in self.meant), default=None)


def vector_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """Return the passages nearest to the question's vector with at least the threshold's similarity, best first."""

    def run(pipeline: Pipeline) -> list[SearchResult]:
        hits = find_hits(pipeline, query, read_scope(pipeline, scope, filters), limit=limit, by_keyword=False)
        shares = FusionScores(near=[similarity for _, similarity in hits.near], matching=())
        return [_result(row, hits, row.score) for row in _fetch(pipeline, query, scope, hits, shares, limit=limit)]

    return database.read(scope.who, run)


def keyword_search(
    database: Database, query: SearchQuery, *, scope: Scope, filters: SearchFilters | None = None, limit: int
) -> list[SearchResult]:
    """Return the passages with the highest exact BM25 for the question's words and synonyms, best first."""

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
    """Search like `hybrid_search` and return all data about the results; vectors only if `by_keyword` is false."""
    pool = max(limit + limit // 2, REFINED_CANDIDATES)

    def run(query: SearchQuery, pipeline: Pipeline) -> tuple[Hits, list[_Row]]:
        candidates = max(pool, FUSED_CANDIDATES)
        reading = read_scope(pipeline, scope, filters)
        if filters is not None and filters.metadata:
            # If filters match only some passages of a document, read them all.
            candidates = min(max(candidates, int(reading.contents.chunks)), MOST_FILTERED)
        hits = find_hits(pipeline, query, reading, limit=candidates, by_keyword=by_keyword)
        hits = _meeting(pipeline, scope, filters, hits)
        hits = replace(hits, meant=meanings.in_order(hits.meant, query.language))
        return hits, _fetch(pipeline, query, scope, hits, _shares(query, hits), limit=pool)

    hits, rows = database.read(scope.who, partial(run, query))
    asked = corrected(query, hits.statistics, rows) if by_keyword else query
    if asked.text != query.text:
        hits, rows = database.read(scope.who, partial(run, asked))
    scored = [(row, row.score) for row in rows]
    if by_keyword and query.refine:
        scored = refined(asked, hits.statistics, rows)
    twins = with_twin_meant(asked, rows) if by_keyword and query.refine else frozenset()
    if hits.meant:
        hits = replace(hits, meant=_by_parts(hits.meant, rows, asked.language))
        scored = _with_meaning(scored, hits, asked, twins)
    others = _from_others(asked, hits.meant)
    if cosines := _in_own_words(database, asked, scope, hits.meant):
        others = _from_others(asked, hits.meant, cosines)
        known = {row.chunk_id for row, _ in scored}
        if missing := [chunk_id for chunk_id in others if chunk_id not in known]:
            scored += [(row, 0.0) for row in database.read(scope.who, partial(_fetch_meant, asked, scope, missing))]
    distinct = without_repeats(scored, same_beginning=query.same_beginning)
    kept = distinct[:limit] + [(row, score) for row, score in distinct[limit:] if row.chunk_id in others]
    return SearchHits(
        results=tuple(_result(row, hits, score) for row, score in kept),
        from_others=tuple(others),
        repeats=len(rows) - len(distinct),
        statistics=hits.statistics,
        languages={row.document_id: row.language for row in rows},
        text=asked.text,
        meant=tuple(hits.meant),
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
    """Run the searches, in a single round trip if the scope has the same contents as in the last search.

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
        meant = _ask_for_meaning(pipeline, query, expected, values) if query.meaning is not None else None
        return terms, near, meant

    guess = scope.guess
    asked = ask(guess) if guess is not None else None
    contents = scope.contents
    if contents.wanted == ():
        return Hits(near=(), matching=(), statistics=TermStatistics(chunks=contents.chunks))
    if asked is None or contents.wanted is not None or contents.expected != guess:
        values["wanted"] = None if contents.wanted is None else list(contents.wanted)
        asked = ask(contents.expected)
    terms, nearest, meant = asked
    # Postgres compares the vectors meanwhile.
    found = matches_in(terms.blocks.fetchall(), ranges(terms.removed.fetchall())) if terms else None
    statistics, matching = TermStatistics(chunks=contents.chunks), list[tuple[int, float]]()
    if found is not None:
        matching = best_of(
            found,
            Bm25(chunks=contents.chunks, average_length=contents.average_length, k1=query.k1, b=query.b),
            wanted=contents.wanted_places,
            limit=limit,
            weights=terms.weights if terms else {},
        )
        statistics = TermStatistics(chunks_by_term=found.passages_by_term, chunks=contents.chunks)
    return Hits(
        near=nearest.fetchall() if nearest else (),
        matching=matching,
        statistics=statistics,
        meant=list(map(MeaningHit._make, meant.fetchall())) if meant else (),
    )


def _ask_for_vectors(
    pipeline: Pipeline, query: SearchQuery, expected: Expected, values: dict[str, Any]
) -> PendingResult:
    statement, wanted = nearest_statement(
        values,
        is_large=expected.is_large and query.is_dense,
        breadth=expected.breadth,
        neighbours=query.neighbours,
    )
    asked = pipeline.execute(statement, wanted)
    pipeline.flush()
    return asked


def nearest_statement(
    values: dict[str, Any], *, is_large: bool, breadth: int = 0, neighbours: int = 0
) -> tuple[str, dict[str, Any]]:
    """Return the statement for the nearest passages: by the collection's index, by bits first, or by a full scan."""
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
    wanted = {**values, "vector": query.meaning_halfvec}
    if expected.has_many_meanings:
        reranked = max(values["limit"], MEANING_CANDIDATES)
        asked = pipeline.execute(queries["search_by_meaning_bits"], {**wanted, "reranked": reranked, "drawn": DRAWN})
    else:
        asked = pipeline.execute(queries["search_by_meaning"], wanted)
    pipeline.flush()
    return asked


class _AskedTerms(NamedTuple):
    #: Weight by term number.
    weights: dict[int, float]
    removed: PendingResult
    blocks: PendingResult


def _ask_for_terms(
    pipeline: Pipeline, query: SearchQuery, expected: Expected, values: dict[str, Any]
) -> _AskedTerms | None:
    """Send the request for the question's terms in each language; `None` if the question has no terms."""
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


def _by_parts(meant: Sequence[MeaningHit], rows: Sequence[_Row], language: str) -> list[MeaningHit]:
    """Rank the nearest passages by the cosine of their nearest part."""
    nearest = {row.chunk_id: row.meaning for row in rows if row.meaning is not None}
    known = [hit._replace(cosine=nearest[hit.chunk_id]) for hit in meant if hit.chunk_id in nearest]
    return meanings.in_order(known, language)


def _with_meaning(
    scored: list[tuple[_Row, float]], hits: Hits, query: SearchQuery, twins: Collection[UUID]
) -> list[tuple[_Row, float]]:
    """Merge three orders of the passages: by shared words, and two by meaning.

    Passages from `twins` say nearly the same about a different subject and come last by meaning. A passage without a
    meaning vector keeps its rank by words in all three orders, so having a vector is no advantage.
    """
    rows = [row for row, _ in scored]
    sharing = [row.chunk_id for row in rows if row.keyword_rank or (row.similarity or 0) >= fusion.RULE.least_words]
    apart = {row.chunk_id for row in rows if row.document_id in twins}
    meant = [[hit.chunk_id for hit in order] for order in (hits.meant, meanings.by_standing(hits.meant))]
    orders = (sharing, *(sorted(order, key=apart.__contains__) for order in meant))
    ranks = [{chunk_id: rank for rank, chunk_id in enumerate(order, 1)} for order in orders]
    unread = {row.chunk_id: ranks[0][row.chunk_id] for row in rows if row.meaning is None and row.chunk_id in ranks[0]}
    ranks = [ranks[0], *(unread | order for order in ranks[1:])]
    words = asked_words(query.text.partition("\n")[0], query.language, query.language or "en")
    scores = fusion.fused_scores(
        *([order.get(row.chunk_id) for row in rows] for order in ranks), words_weight=fusion.words_weight(len(words))
    )
    return sorted(zip(rows, scores, strict=True), key=lambda item: (-item[1], item[0].chunk_id.int))


def _meeting(pipeline: Pipeline, scope: Scope, filters: SearchFilters | None, hits: Hits) -> Hits:
    """Keep hits whose passage or document has the requested metadata."""
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
    wanted: Sequence[UUID] | None = None,
) -> list[_Row]:
    """Return the best passages by the sum of their shares, without documents still being ingested.

    `wanted` replaces the passages nearest in meaning.
    """
    if not hits.near and not hits.matching and not hits.meant and not wanted:
        return []
    meant = _nearest_by_meaning(query, hits.meant, limit) if wanted is None else list(wanted)
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
        "meant": meant,
        "meaning": query.meaning_halfvec,
    }
    passages = pipeline.execute(queries["search_fused"], values)
    pipeline.finish()
    rows = list(map(_Row._make, passages.fetchall()))
    return rows if query.with_folders else [row._replace(folder="") for row in rows]


def _fetch_meant(query: SearchQuery, scope: Scope, wanted: Sequence[UUID], pipeline: Pipeline) -> list[_Row]:
    """Fetch passages which were found only by meaning."""
    none = Hits(near=(), matching=(), statistics=TermStatistics())
    return _fetch(pipeline, query, scope, none, FusionScores(near=(), matching=()), limit=len(wanted), wanted=wanted)


def _nearest_by_meaning(query: SearchQuery, meant: Sequence[MeaningHit], limit: int) -> list[UUID]:
    """Return the first `limit` passages, plus the best in other languages, which rank low by cosine."""
    first = meant[: max(limit, MEANT_CANDIDATES)]
    return list(dict.fromkeys([*(hit.chunk_id for hit in first), *_from_others(query, meant)]))


def _in_own_words(
    database: Database, query: SearchQuery, scope: Scope, meant: Sequence[MeaningHit]
) -> dict[UUID, Cosines]:
    """Compare passages in other languages with the question in translated words, if translations are known."""
    others: dict[str, list[UUID]] = {}
    for hit in meant:
        if hit.language != query.language:
            others.setdefault(hit.language, []).append(hit.chunk_id)
    if not others or query.meaning is None or query.meaning_in_words_of is None or not query.language:
        return {}
    vectors = query.meaning_in_words_of(others)
    if not vectors:
        return {}

    def read(pipeline: Pipeline) -> dict[UUID, Cosines]:
        compared = [
            pipeline.execute(
                queries["meaning_of_chunks"],
                {"switched": HalfVector(vector), "vector": query.meaning_halfvec, "chunk_ids": others[language]},
            )
            for language, vector in vectors.items()
        ]
        pipeline.finish()
        return {row[0]: Cosines(*row[1:]) for asked in compared for row in asked.fetchall()}

    return database.read(scope.who, read)


def _from_others(
    query: SearchQuery, meant: Sequence[MeaningHit], in_own_words: Mapping[UUID, Cosines] | None = None
) -> list[UUID]:
    if not query.language:
        return []
    named = meanings.named_languages(query.text)
    others = meanings.from_other_languages(meant, query.language, named, in_own_words)
    return [hit.chunk_id for hit in others[: meanings.FROM_NAMED if named else meanings.FROM_OTHERS]]


class _Row(NamedTuple):
    """A row returned by `search_fused`."""

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
