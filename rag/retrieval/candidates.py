"""From a question to the passages that match it, without their text: which statements are run, with what.

What the scope holds, where the question's terms stand, and the vectors: asked together where the scope was searched
before and is what it was, which the same answers show; else one after the other. Terms are scored here while Postgres
compares vectors. In a `Database.pipeline` nothing is waited for until its rows are fetched, and all statements see one
moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.retrieval.bm25.analysers import analyser_for
from rag.retrieval.bm25.index import term_id
from rag.retrieval.bm25.scoring import Ranges, best_of, matches_in
from rag.retrieval.meaning import MeaningHit
from rag.retrieval.search_query import SearchQuery, TermStatistics, question_terms
from rag.storage.database import queries
from rag.storage.pipeline import PendingResult, Pipeline
from rag.types import Scope, SearchFilters

#: The least number of candidates of each search that are fused.
FUSED_CANDIDATES = 50
#: Passages up to which every vector is compared. Measured: a vector of 1536 dimensions costs 0.7 … 1.7 µs, bits 0.1 …
#: 0.35 µs and comparing the nearest 400 about 2 ms, so that bits win from 2,000 … 3,000 passages on.
EXACT_SCAN_PASSAGES = 2_000
#: Passages nearest by the signs of their dimensions whose vectors are compared: twice as many with half so many signs.
#: Measured: recall@10 1.000 with 400 of 1536 dimensions and 800 of 384, of which 400 missed one neighbour in 10,000.
BIT_CANDIDATES = 400
SIGNS = 768
#: Passages up to which every vector of meaning is compared. Measured: each costs 1.9 µs, its bits 0.4 µs, and comparing
#: the nearest and the sample 5 … 8 ms.
EXACT_MEANINGS = 5_000
#: Passages nearest by the bits of their meaning whose vectors are compared, of each language.
MEANING_CANDIDATES = 800
#: Passages of each language and collection by which it is known what is usual: their mean is right to 0.05 deviations.
DRAWN = 400
#: Scopes of which it is remembered what was asked of them last.
REMEMBERED_SCOPES = 10_000


class Places(NamedTuple):
    """Where passages are, as statements take it: the position of their collection in the scope, and their number."""

    positions: list[int]
    passages: list[int]


@dataclass(frozen=True, kw_only=True)
class Hits:
    """What the searches found, each best first."""

    #: Ids with their cosine similarity.
    near: Sequence[tuple[UUID, float]]
    #: Places with their BM25.
    matching: Sequence[tuple[int, float]]
    statistics: TermStatistics
    #: By cosine, so many of each language.
    meant: Sequence[MeaningHit] = ()

    @property
    def places(self) -> Places:
        return Places([place >> 32 for place, _ in self.matching], [place & 0xFFFFFFFF for place, _ in self.matching])


class Expected(NamedTuple):
    """What of a scope's contents decides what is asked of it."""

    analysers: frozenset[str]
    #: Whether dense vectors are compared by their bits first.
    is_large: bool
    #: Whether vectors of meaning are.
    has_many_meanings: bool


@dataclass(frozen=True, kw_only=True)
class ScopeContents:
    """What there is to search, as this transaction sees it."""

    #: Passages and terms in the keyword index by the language they were analysed in.
    languages: dict[str, tuple[float, float]]
    #: Documents that meet the filters, and where their passages are; None when all that are indexed do.
    wanted: tuple[UUID, ...] | None
    wanted_places: Ranges | None
    #: Passages among which the search takes place.
    passages: float

    @property
    def chunks(self) -> float:
        return sum(chunks for chunks, _ in self.languages.values())

    @property
    def average_length(self) -> float:
        """Terms in a passage on average, at least 1."""
        return max(1.0, sum(tokens for _, tokens in self.languages.values()) / (self.chunks or 1.0))

    @property
    def expected(self) -> Expected:
        analysers = frozenset(analyser_for(language) for language in self.languages)
        return Expected(analysers, self.passages > EXACT_SCAN_PASSAGES, self.passages > EXACT_MEANINGS)


#: What was last found of scopes that were searched without filters, by their collections.
_expected: dict[tuple[UUID, ...], Expected] = {}


class ScopeReading:
    """What the scope holds, asked and not yet waited for."""

    def __init__(self, pipeline: Pipeline, scope: Scope, filters: SearchFilters) -> None:
        self.where: dict[str, Any] = {"tenant_id": scope.tenant_id, "collection_ids": list(scope.collection_ids)}
        self._pipeline, self._filters = pipeline, filters
        self._totals = pipeline.execute(queries["search_scope"], self.where)
        self._key = scope.collection_ids if filters.is_empty else None

    @property
    def guess(self) -> Expected | None:
        """What the scope probably needs to be asked: what it needed last time."""
        return _expected.get(self._key) if self._key is not None else None

    @cached_property
    def contents(self) -> ScopeContents:
        """What there is; waits for it."""
        languages: dict[str, tuple[float, float]] = {}
        for language, chunks, tokens in self._totals.fetchall():
            others = languages.get(language, (0.0, 0.0))
            if chunks > 0:
                languages[language] = (others[0] + chunks, others[1] + tokens)
        wanted, places, passages = None, None, sum(chunks for chunks, _ in languages.values())
        if not self._filters.is_empty:
            rows = self._pipeline.execute(
                queries["search_wanted"], self.where | filter_conditions(self._filters)
            ).fetchall()
            wanted = tuple(row[0] for row in rows)
            places = _ranges(row[1:] for row in rows)
            passages = sum(row[3] for row in rows)
        contents = ScopeContents(
            languages=languages,
            wanted=wanted,
            wanted_places=places,
            passages=passages,
        )
        if self._key is not None:
            if len(_expected) >= REMEMBERED_SCOPES:
                _expected.clear()  # one more round trip for each of them
            _expected[self._key] = contents.expected
        return contents


def read_scope(pipeline: Pipeline, scope: Scope, filters: SearchFilters | None) -> ScopeReading:
    """Ask what the scope holds and, with filters, which documents of it are wanted."""
    return ScopeReading(pipeline, scope, filters or SearchFilters())


def find_hits(
    pipeline: Pipeline,
    query: SearchQuery,
    scope: ScopeReading,
    *,
    limit: int,
    by_vector: bool = True,
    by_keyword: bool = True,
) -> Hits:
    """Run the searches, in one round trip where the scope holds what it held last time.

    Raises `InvalidInput` when the query's vector has not the dimensions its embedding model names.
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
    # The vectors are being compared meanwhile.
    found = matches_in(terms.blocks.fetchall(), _ranges(terms.removed.fetchall())) if terms else None
    statistics, matching = TermStatistics(chunks=contents.chunks), list[tuple[int, float]]()
    if found is not None:
        matching = best_of(
            found,
            chunks=contents.chunks,
            average_length=contents.average_length,
            wanted=contents.wanted_places,
            limit=limit,
            weights=terms.weights if terms else {},
            k1=query.k1,
            b=query.b,
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
    if expected.is_large and query.is_dense:
        candidates = BIT_CANDIDATES * max(1, SIGNS // values["vector"].dimensions())
        reranked = max(values["limit"], candidates, query.neighbours)
        asked = pipeline.execute(queries["search_by_bits"], {**values, "reranked": reranked})
    else:
        asked = pipeline.execute(queries["search_by_vector"], values)
    pipeline.flush()
    return asked


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
    #: The terms by number, each with what it counts.
    weights: dict[int, float]
    removed: PendingResult
    blocks: PendingResult


def _ask_for_terms(
    pipeline: Pipeline, query: SearchQuery, expected: Expected, values: dict[str, Any]
) -> _AskedTerms | None:
    """Ask where the question's terms stand, by the analysers of the languages there are; None when it has no terms."""
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


def _ranges(rows: Iterable[tuple[int, int, int]]) -> Ranges:
    """Places from a collection's position, the first passage's number and how many there are."""
    return Ranges.of(((position << 32) + first, passages) for position, first, passages in rows)


def filter_conditions(filters: SearchFilters) -> dict[str, Any]:
    """Return what the named statements call the conditions of a search; None for one that is not set."""
    return {
        "document_ids": list(filters.document_ids) or None,
        "categories": list(filters.categories) or None,
        "document_types": list(filters.document_types) or None,
        "years": list(filters.years) or None,
        "date_from": filters.date_from,
        "date_to": filters.date_to,
        "important_only": filters.important_only,
        "metadata": Jsonb(dict(filters.metadata)) if filters.metadata else None,
    }
