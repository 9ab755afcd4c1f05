"""Build an approximate vector index for a collection, and use the index if accurate enough.

Normally, searches scan all vectors (`rag.retrieval.hybrid_search`). A scan is exact, but slower with more chunks; from
a few hundred thousand chunks on, an index is faster. How many neighbours an index misses depends on the vectors.
Therefore each index is compared with the scan, with questions asked in the collection and with stored chunks. Searches
use the index if it is faster and finds 99 % of the ten nearest chunks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

import numpy as np
import psycopg
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin
from rag.errors import InvalidInput, ProviderError, SettingsError
from rag.retrieval.calibration import Calibrations
from rag.retrieval.hybrid_search import FUSED_CANDIDATES, SearchQuery, nearest_statement
from rag.retrieval.search_scope import EXACT_SCAN_PASSAGES
from rag.storage.database import Database, queries
from rag.types import Collection, FloatMatrix, Identity

Kind = Literal["hnsw", "ivfflat"]
KINDS: tuple[Kind, ...] = ("hnsw", "ivfflat")
#: Least recall among the ten nearest passages for an index to be used.
LEAST_RECALL = 0.99
NEAREST = 10
#: Search breadths to measure, least first: hnsw.ef_search and ivfflat.probes.
BREADTHS: Mapping[Kind, tuple[int, ...]] = {"hnsw": (40, 100, 200, 400, 800), "ivfflat": (1, 3, 10, 30, 100, 300)}
QUESTIONS, PASSAGES = 50, 100
#: Fewest searches to measure with, and the seconds of exact scans after which no more begin.
LEAST_SEARCHES, MOST_SECONDS = 20, 60.0
#: The graph is built in memory if it fits: with 100,000 passages, 50 s instead of 565 s.
MOST_MEMORY_MB = 2048
#: The version with iterative scans, which continue past unpublished passages.
OLDEST_PGVECTOR = (0, 8)


class Timed(NamedTuple):
    """The search times' median and 95th percentile, in milliseconds."""

    p50: float
    p95: float


@dataclass(frozen=True, kw_only=True)
class Tried:
    """The result for a search breadth: recall (0 to 1, compared with the full scan) and times."""

    breadth: int
    #: Recall among the ten nearest passages, and among as many as a search takes.
    recall: float
    recall_of_all: float
    ms: Timed


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The results of measuring a vector index: recall and times for each search breadth."""

    #: Number of searches by asked questions, and by passages in the collection.
    questions: int
    passages: int
    exact_ms: Timed
    #: Search time without the index: by exact scan, or by bits.
    scan_ms: Timed
    tried: tuple[Tried, ...]

    @property
    def chosen(self) -> Tried:
        """The first breadth with enough recall, else the breadth with the highest recall."""
        enough = (each for each in self.tried if each.recall >= LEAST_RECALL)
        return next(enough, max(self.tried, key=lambda each: each.recall))

    @property
    def finds_enough(self) -> bool:
        return self.chosen.recall >= LEAST_RECALL

    @property
    def is_faster(self) -> bool:
        return self.chosen.ms.p50 < self.scan_ms.p50


@dataclass(frozen=True, kw_only=True)
class VectorIndex:
    """A row in `vector_indexes`, with the index's current size."""

    collection_id: UUID
    embedding_model: str
    dimensions: int
    kind: Kind
    breadth: int
    is_used: bool
    #: The collection's passages when measured.
    passages: int
    measured: dict[str, Any] = field(repr=False)
    built_at: datetime
    measured_at: datetime | None
    #: Whether the index exists and its build was finished.
    is_whole: bool
    bytes: int

    @property
    def seconds(self) -> float:
        return float(self.measured.get("build_seconds", 0.0))

    @property
    def measurement(self) -> Measured | None:
        """The measurement, or `None` if the index was not measured."""
        if "tried" not in self.measured:
            return None
        tried = tuple(Tried(**{**each, "ms": Timed(*each["ms"])}) for each in self.measured["tried"])
        return Measured(
            questions=self.measured["questions"],
            passages=self.measured["passages"],
            exact_ms=Timed(*self.measured["exact_ms"]),
            scan_ms=Timed(*self.measured["scan_ms"]),
            tried=tried,
        )


class VectorIndexes:
    """Builds, measures and drops vector indexes. Needs the connection string for the role which owns the tables."""

    def __init__(self, database: Database, calibrations: Calibrations, owner_conninfo: str) -> None:
        self._database = database
        self._calibrations = calibrations
        self._owner_conninfo = owner_conninfo

    def find(self, collection: Collection) -> VectorIndex | None:
        parameters = {"collection_id": collection.id}
        return self._database.fetch_one(collection.tenant_id, "find_vector_index", VectorIndex, **parameters)

    def make(
        self,
        identity: Identity,
        collection: Collection,
        kind: Kind = "hnsw",
        *,
        breadths: Sequence[int] = (),
        must_be_faster: bool = True,
    ) -> VectorIndex:
        """Build a collection's index again and measure it. Searches use the index if the measurement is good enough.

        Documents can be searched and added during this time. Raises `InvalidInput` if the collection has no vectors,
        the server's pgvector is too old, or a different process is building this index.
        """
        require_admin(identity)
        _, _, digits = collection.embedding_model.rpartition("@")
        passages = self._passages(collection)
        if not digits.isdigit() or not passages:
            raise InvalidInput(f"{collection.name} has no passages with vectors yet.")
        dimensions = int(digits)
        name = f"document_chunks_near_{collection.id.hex}"
        with self._owner(name) as owner:
            # Add the row first: an index without a row has no owner and is dropped.
            row = {"dimensions": dimensions, "kind": kind, "embedding_model": collection.embedding_model}
            self._database.execute(identity, "add_vector_index", collection_id=collection.id, **row)
            _run(owner, "vector_index_drop", name=name)
            lists = max(1, round(passages**0.5))
            started = time.perf_counter()
            values = {
                "name": name, "lists": lists, "tenant_id": collection.tenant_id, "collection_id": collection.id, **row,
            }  # fmt: skip
            try:
                _build(owner, values, passages * (2 * dimensions + 400))
            except psycopg.Error as exc:
                _run(owner, "vector_index_drop", name=name)
                self._database.execute(identity, "remove_vector_index", collection_id=collection.id)
                raise InvalidInput(f"Postgres could not make the index: {exc.diag.message_primary or exc}") from exc
            seconds = time.perf_counter() - started
        return self.measure(
            identity, collection, breadths=breadths, must_be_faster=must_be_faster, build_seconds=round(seconds, 1)
        )

    def measure(
        self,
        identity: Identity,
        collection: Collection,
        *,
        breadths: Sequence[int] = (),
        must_be_faster: bool = True,
        build_seconds: float | None = None,
    ) -> VectorIndex:
        """Measure a collection's index, and store and return the result, which decides whether searches use the index.

        Raises `InvalidInput` without an index.
        """
        require_admin(identity)
        index = self.find(collection)
        if index is None or not index.is_whole:
            raise InvalidInput(f"{collection.name} has no index, or its making was interrupted. Make it once more.")
        questions, passages = self._questions(collection), self._sample_passages(collection)
        measurement = self._measure_searches(collection, questions, passages, breadths or BREADTHS[index.kind])
        seconds = index.seconds if build_seconds is None else build_seconds
        details = {
            "build_seconds": seconds, "questions": measurement.questions, "passages": measurement.passages,
            "exact_ms": measurement.exact_ms, "scan_ms": measurement.scan_ms,
            "tried": [vars(each) for each in measurement.tried],
        }  # fmt: skip
        self._database.execute(
            identity,
            "note_vector_index",
            collection_id=collection.id,
            embedding_model=index.embedding_model,
            breadth=measurement.chosen.breadth,
            is_used=measurement.finds_enough and (measurement.is_faster or not must_be_faster),
            passages=self._passages(collection),
            measured=Jsonb(details),
        )
        measured = self.find(collection)
        if measured is None:
            raise InvalidInput(f"{collection.name} was embedded by another model meanwhile, and its index is gone.")
        return measured

    def drop(self, identity: Identity, collection: Collection) -> bool:
        """Drop a collection's index while searches continue. Returns whether there was an index."""
        require_admin(identity)
        name = f"document_chunks_near_{collection.id.hex}"
        with self._owner(name) as owner:
            removed = self._database.execute(identity, "remove_vector_index", collection_id=collection.id)
            _run(owner, "vector_index_drop", name=name)
        return bool(removed)

    @contextmanager
    def _owner(self, name: str) -> Iterator[psycopg.Connection]:
        """Yield a connection with the role which owns the tables, because only this role may build an index.

        A lock prevents two processes from building the same index.
        """
        with psycopg.connect(self._owner_conninfo, autocommit=True, prepare_threshold=None) as owner:
            owner.execute("SELECT set_config('search_path', 'public, extensions, pg_temp', false)")
            version = str((owner.execute(queries["pgvector_version"]).fetchone() or ("0",))[0])
            if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PGVECTOR:
                raise InvalidInput(f"An index needs pgvector 0.8 or newer, and this server has {version}. Update it.")
            if owner.execute(queries["vector_index_lock"], {"name": name}).fetchone() != (True,):
                raise InvalidInput("Another program is making or dropping this index. Wait until it is done.")
            yield owner

    def _passages(self, collection: Collection) -> int:
        parameters = {"tenant_id": collection.tenant_id, "collection_id": collection.id}
        return int(self._database.fetch_value(collection.tenant_id, "keyword_total", **parameters))

    def _questions(self, collection: Collection) -> FloatMatrix | None:
        """Embed questions asked earlier in the collection. Returns `None` without questions, or after an error."""
        parameters = {"collection_id": collection.id, "wanted": QUESTIONS}
        with self._database.transaction(collection.tenant_id) as connection:
            texts = [row[0] for row in connection.execute(queries["questions_to_search_for"], parameters).fetchall()]
        try:
            return self._calibrations.embed_questions(collection, texts) if texts else None
        except (ProviderError, SettingsError):
            return None

    def _sample_passages(self, collection: Collection) -> list[tuple[UUID, HalfVector]]:
        parameters = {"collection_id": collection.id, "embedding_model": collection.embedding_model, "wanted": PASSAGES}
        with self._database.transaction(collection.tenant_id) as connection:
            return connection.execute(queries["passages_to_search_for"], parameters).fetchall()

    def _measure_searches(
        self,
        collection: Collection,
        questions: FloatMatrix | None,
        passages: Sequence[tuple[UUID, HalfVector]],
        breadths: Sequence[int],
    ) -> Measured:
        """Search for each question and chunk with and without the index. Returns recall and times for each search
        breadth.

        A search for a chunk's vector ignores this chunk.
        """
        question_searches: list[tuple[UUID | None, HalfVector]] = []
        question_searches += [(None, HalfVector(row)) for row in (() if questions is None else questions) if row.any()]
        # Alternate questions and passages, so even a few searches are a fair sample.
        searches = [each for pair in zip(question_searches, passages, strict=False) for each in pair]
        both = len(searches) // 2
        searches += [*question_searches[both:], *passages[both:]]
        exact = _Way(self._search(collection))
        # A small collection's normal search is the exact scan: do not time both.
        by_bits = self._passages(collection) > EXACT_SCAN_PASSAGES and _is_dense(collection)
        scan = _Way(self._search(collection, is_large=True)) if by_bits else exact
        indexed = {breadth: _Way(self._search(collection, breadth=breadth)) for breadth in breadths}
        started, done = time.perf_counter(), 0
        for chunk_id, vector in searches:
            if done >= LEAST_SEARCHES and time.perf_counter() - started > MOST_SECONDS:
                break
            for way in dict.fromkeys((exact, scan, *indexed.values())):
                way.search(vector, without=chunk_id)
            done += 1
        by_questions = len([chunk_id for chunk_id, _ in searches[:done] if chunk_id is None])
        return Measured(
            questions=by_questions,
            passages=done - by_questions,
            exact_ms=exact.timed,
            scan_ms=scan.timed,
            tried=tuple(
                Tried(
                    breadth=breadth,
                    recall=way.recall(exact, NEAREST),
                    recall_of_all=way.recall(exact, FUSED_CANDIDATES),
                    ms=way.timed,
                )
                for breadth, way in indexed.items()
            ),
        )

    def _search(
        self, collection: Collection, *, is_large: bool = False, breadth: int = 0
    ) -> Callable[[HalfVector], tuple[list[UUID], float]]:
        """Return a function which searches for a vector, and returns the chunk ids and the time in milliseconds."""
        where = {
            "tenant_id": collection.tenant_id, "collection_ids": [collection.id], "wanted": None, "threshold": -1.0,
            "embedding_model": collection.embedding_model, "limit": FUSED_CANDIDATES + 1,
        }  # fmt: skip

        def run(vector: HalfVector) -> tuple[list[UUID], float]:
            statement, values = nearest_statement({**where, "vector": vector}, is_large=is_large, breadth=breadth)
            with self._database.pipeline(collection.tenant_id) as pipeline:
                pipeline.execute(queries["search_scope"], where).fetchall()  # the transaction has begun
                started = time.perf_counter()
                rows = pipeline.execute(statement, values).fetchall()
                return [row[0] for row in rows], 1000 * (time.perf_counter() - started)

        return run


def _is_dense(collection: Collection) -> bool:
    return SearchQuery(text="", embedding_model=collection.embedding_model).is_dense


class _Way:
    def __init__(self, run: Callable[[HalfVector], tuple[list[UUID], float]]) -> None:
        self._run = run
        self.results: list[list[UUID]] = []
        self.ms: list[float] = []

    def search(self, vector: HalfVector, *, without: UUID | None) -> None:
        if not self.results:
            self._run(vector)  # The first search on a connection is slower: it plans statements and fills caches.
        ids, ms = self._run(vector)
        self.results.append([each for each in ids if each != without][:FUSED_CANDIDATES])
        self.ms.append(ms)

    @property
    def timed(self) -> Timed:
        return Timed(*(round(float(ms), 2) for ms in np.percentile(self.ms, (50, 95))))

    def recall(self, exact: _Way, places: int) -> float:
        """Return the share (0 to 1) of the scan's first `places` chunks which are also among the first `places` chunks
        here.
        """
        pairs = [(set(hits[:places]), truth[:places]) for hits, truth in zip(self.results, exact.results, strict=True)]
        expected = sum(len(truth) for _, truth in pairs)
        return round(sum(len(hits & set(truth)) for hits, truth in pairs) / expected, 4) if expected else 1.0


def _build(owner: psycopg.Connection, values: Mapping[str, Any], graph_bytes: int) -> None:
    """Build the index in memory if possible. Use parallel workers if the machine has enough shared memory."""
    memory = f"{min(MOST_MEMORY_MB, 64 + 2 * graph_bytes // 2**20)}MB"
    owner.execute(queries["vector_index_memory"], {"memory": memory, "processes": "2"})
    try:
        _run(owner, "vector_index_statement", **values)
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory):
        # Containers often have 64 MB shared memory.
        _run(owner, "vector_index_drop", name=values["name"])
        owner.execute(queries["vector_index_memory"], {"memory": memory, "processes": "0"})
        _run(owner, "vector_index_statement", **values)


def _run(owner: psycopg.Connection, statement: str, /, **values: Any) -> None:
    """Let Postgres compose a statement, and run the result. CREATE INDEX and DROP INDEX take no parameters."""
    row = owner.execute(queries[statement], values).fetchone()
    owner.execute(str(row[0]).encode() if row else b"")
