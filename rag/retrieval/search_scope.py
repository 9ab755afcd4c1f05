"""Read a search scope's contents: the chunk counts by language, and the documents which match the filters.

Searches assume unchanged contents since the last search. They are sent together with the request for the current
contents, and repeated if the contents differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.retrieval.bm25.scoring import Ranges
from rag.storage.database import queries
from rag.storage.pipeline import PendingResult, Pipeline
from rag.text.analysers import analyser_for
from rag.types import Scope, SearchFilters

#: Up to this many passages, every vector is compared. Measured: a vector with 1536 dimensions takes 0.7 … 1.7 µs, bits
#: 0.1 … 0.35 µs, and comparing the nearest 400 about 2 ms; bits are faster from 2,000 … 3,000 passages on.
EXACT_SCAN_PASSAGES = 2_000
#: Up to this many passages, every meaning vector is compared. Measured: each takes 1.9 µs, its bits 0.4 µs, and
#: comparing the nearest and the sample 5 … 8 ms.
EXACT_MEANINGS = 5_000
#: A vector index is used until the collection has this many times the passages it had when recall was measured.
MOST_GROWTH = 2
#: The most scopes with remembered contents.
REMEMBERED_SCOPES = 10_000


class Expected(NamedTuple):
    """The properties of a scope (the searched collections) which decide how to search."""

    analysers: frozenset[str]
    #: Whether vectors are compared by bits first.
    is_large: bool
    #: Whether meaning vectors are compared by bits first.
    has_many_meanings: bool
    #: The search breadth in the collection's vector index (`rag.retrieval.vector_index`); 0 means a scan.
    breadth: int = 0


@dataclass(frozen=True, kw_only=True)
class ScopeContents:
    """The searchable documents, visible in this transaction."""

    #: Passages and terms in the keyword index, by analyser language.
    languages: dict[str, tuple[float, float]]
    #: Documents matching the filters, and their passages' places; `None` if all indexed documents match.
    document_ids: tuple[UUID, ...] | None
    document_places: Ranges | None
    #: Passages to search.
    passages: float
    #: As in `Expected`.
    breadth: int = 0

    @property
    def chunks(self) -> float:
        return sum(chunks for chunks, _ in self.languages.values())

    @property
    def average_length(self) -> float:
        """The average chunk length in terms, at least 1."""
        return max(1.0, sum(tokens for _, tokens in self.languages.values()) / (self.chunks or 1.0))

    @property
    def expected(self) -> Expected:
        analysers = frozenset(analyser_for(language) for language in self.languages)
        return Expected(analysers, self.is_large, self.passages > EXACT_MEANINGS, self.breadth)

    @property
    def is_large(self) -> bool:
        return self.passages > EXACT_SCAN_PASSAGES


#: The last known contents of scopes without filters, by collections.
_expected: dict[tuple[UUID, ...], Expected] = {}


class ScopeReading:
    """A request for a scope's contents which is sent, but not yet answered."""

    def __init__(self, pipeline: Pipeline, scope: Scope, filters: SearchFilters) -> None:
        self.where: dict[str, Any] = {"tenant_id": scope.tenant_id, "collection_ids": list(scope.collection_ids)}
        self._pipeline, self._filters = pipeline, filters
        self._totals = pipeline.execute(queries["search_scope"], self.where)
        self._key = scope.collection_ids if filters.is_empty else None
        # Only a single collection has an index, and filtered passages are found by their documents.
        self._may_have_index = filters.is_empty and len(scope.collection_ids) == 1
        self._index = self._ask_index() if self.guess is None or self.guess.is_large else None

    def _ask_index(self) -> PendingResult | None:
        return self._pipeline.execute(queries["search_index"], self.where) if self._may_have_index else None

    @property
    def guess(self) -> Expected | None:
        """Return the scope's properties from the last search, or `None`."""
        return _expected.get(self._key) if self._key is not None else None

    @cached_property
    def contents(self) -> ScopeContents:
        """Return the scope's contents. Waits for the database."""
        languages: dict[str, tuple[float, float]] = {}
        for language, chunks, tokens in self._totals.fetchall():
            previous = languages.get(language, (0.0, 0.0))
            if chunks > 0:
                languages[language] = (previous[0] + chunks, previous[1] + tokens)
        document_ids, document_places, passages = None, None, sum(chunks for chunks, _ in languages.values())
        if not self._filters.is_empty:
            rows = self._pipeline.execute(
                queries["search_wanted"], self.where | filter_conditions(self._filters)
            ).fetchall()
            document_ids = tuple(row[0] for row in rows)
            document_places = ranges(row[1:] for row in rows)
            passages = sum(row[3] for row in rows)
        contents = ScopeContents(
            languages=languages,
            document_ids=document_ids,
            document_places=document_places,
            passages=passages,
        )
        contents = replace(contents, breadth=self._breadth(contents))
        if self._key is not None:
            if len(_expected) >= REMEMBERED_SCOPES:
                _expected.clear()  # Costs each scope an extra round trip.
            _expected[self._key] = contents.expected
        return contents

    def _breadth(self, contents: ScopeContents) -> int:
        pending = (self._index or self._ask_index()) if contents.is_large else None
        breadth, measured = (pending.fetchone() if pending else None) or (0, 0)
        return int(breadth) if contents.passages <= MOST_GROWTH * measured else 0


def read_scope(pipeline: Pipeline, scope: Scope, filters: SearchFilters | None) -> ScopeReading:
    """Request the scope's contents and, with filters, the matching documents. Returns without waiting."""
    return ScopeReading(pipeline, scope, filters or SearchFilters())


def ranges(rows: Iterable[tuple[int, int, int]]) -> Ranges:
    """Convert rows (collection's position, first chunk number, chunk count) to ranges over `Matches.places`."""
    return Ranges.of(((position << 32) + first, passages) for position, first, passages in rows)


def filter_conditions(filters: SearchFilters) -> dict[str, Any]:
    """Return filters by the statements' parameter names; `None` for unset filters."""
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
