"""Vectors of meaning, made in the background: documents are searchable by their words long before.

What is made is stored a few passages at a time, so that a killed process loses seconds of work. One process of an
installation is at it at a time: the model takes one core for as long as there is something to do.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import UUID

from pgvector import HalfVector

from rag.database import Database, queries
from rag.errors import InvalidInput, ProviderUnavailable
from rag.ingestion.work import Bench, WorkedOnElsewhere
from rag.providers.meaning import MeaningEmbedder
from rag.retrieval.keywords import contextual_text
from rag.types import FloatMatrix

try:
    import fcntl
except ImportError:  # Windows: the package with the model has no wheel for it
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("rag.meaning")

#: Passages read at once, and stored in one transaction.
PASSAGES_READ = 500
PASSAGES_STORED = 8
#: After so long another collection has its turn, in seconds.
TURN_SECONDS = 30.0
#: After so long without a passage the engine ends, in seconds: the next document may be on its way.
IDLE_SECONDS = 60.0


@dataclass(frozen=True)
class UnreadPassage:
    """A passage that has no vector of meaning yet."""

    id: UUID
    document_id: UUID
    title: str
    section: str
    content: str
    language: str

    @property
    def text(self) -> str:
        """What is embedded of it."""
        return contextual_text(self.title, self.section, self.content)


@dataclass(frozen=True)
class MeaningProgress:
    """How far a document is: passages with a vector of meaning, of how many; `unreadable` will have none."""

    document_id: UUID
    collection_id: UUID
    passages: int
    done: int
    unreadable: int

    @property
    def is_complete(self) -> bool:
        return self.done >= self.passages


class MeaningWork:
    """Gives the passages of collections on the built-in embedder their vectors of meaning."""

    def __init__(self, bench: Bench, embedder: MeaningEmbedder, data_dir: Path) -> None:
        self._bench = bench
        self._embedder = embedder
        self._lock_file = data_dir / "meaning.lock"

    def run(self, tenant_id: str, collection_id: UUID, *, turn_seconds: float = TURN_SECONDS) -> bool:
        """Work on a collection until nothing is left; False when its turn is over before.

        Raises `WorkedOnElsewhere`, `WorkInterrupted`, `TenantSuspended`, and `ProviderUnavailable` when the engine does
        not answer.
        """
        ends_at = time.monotonic() + turn_seconds
        with self._only_one(), self._bench.claimed(tenant_id, f"meaning {collection_id}"):
            while passages := self._next(tenant_id, collection_id):
                for first in range(0, len(passages), PASSAGES_STORED):
                    batch = passages[first : first + PASSAGES_STORED]
                    self._store(tenant_id, batch, [self._vector(passage) for passage in batch])
                    if time.monotonic() >= ends_at:
                        return False
        return True

    def store_known(self, tenant_id: str, collection_id: UUID, known: Mapping[bytes, FloatMatrix]) -> int:
        """Store vectors that are known by the digest of their text; how many passages there were to store them for."""
        passages = [passage for passage in self._next(tenant_id, collection_id) if digest_of(passage.text) in known]
        if passages:
            self._store(tenant_id, passages, [known[digest_of(passage.text)] for passage in passages])
        return len(passages)

    def interrupt(self) -> None:
        """End the process that embeds passages; a passage under way is given up."""
        self._embedder.rest()

    def rest_when_idle(self) -> None:
        """End that process when it had nothing to do for a while."""
        self._embedder.rest(idle_seconds=IDLE_SECONDS)

    def _next(self, tenant_id: str, collection_id: UUID) -> list[UnreadPassage]:
        return self._bench.database.fetch_all(
            tenant_id,
            "without_meaning",
            UnreadPassage,
            tenant_id=tenant_id,
            collection_id=collection_id,
            limit=PASSAGES_READ,
        )

    def _vector(self, passage: UnreadPassage) -> FloatMatrix | None:
        """Its vector; None for a text that the model cannot read."""
        self._bench.stop_if_asked()
        try:
            vector: FloatMatrix = self._embedder.embed([passage.text], purpose="document").vectors[0]
        except ProviderUnavailable:
            self._bench.stop_if_asked()  # then it was ended for that
            raise
        except InvalidInput as exc:
            log.warning("Passage %s has no vector of meaning: %s", passage.id, exc.message)
            return None
        return vector

    def _store(self, tenant_id: str, passages: Sequence[UnreadPassage], vectors: Sequence[FloatMatrix | None]) -> None:
        with self._bench.database.transaction(tenant_id) as connection:
            connection.execute(queries["add_meaning"], _columns(passages, vectors))

    @contextmanager
    def _only_one(self) -> Iterator[None]:
        """Hold what one process of this installation has at a time. Raises `WorkedOnElsewhere`."""
        self._lock_file.parent.mkdir(parents=True, exist_ok=True)
        with self._lock_file.open("a") as file:
            if not _locked(file):
                raise WorkedOnElsewhere
            yield


def digest_of(text: str) -> bytes:
    """By what a text is known that was embedded elsewhere."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16]


def meaning_progress(
    database: Database, tenant_id: str, *, collection_id: UUID | None = None, document_id: UUID | None = None
) -> list[MeaningProgress]:
    """How far each searchable document is, of all collections on the built-in embedder or of one."""
    return database.fetch_all(
        tenant_id, "meaning_progress", MeaningProgress, collection_id=collection_id, document_id=document_id
    )


def _columns(
    passages: Sequence[UnreadPassage], vectors: Sequence[FloatMatrix | None]
) -> dict[str, list[UUID] | list[str] | list[HalfVector | None]]:
    return {
        "chunk_ids": [passage.id for passage in passages],
        "languages": [passage.language for passage in passages],
        "embeddings": [None if vector is None else HalfVector(vector) for vector in vectors],
    }


def _locked(file: IO[str]) -> bool:
    """Whether this process has the file's lock now, until it closes the file, however it ends."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
