"""Embed chunks with the built-in embedding model in the background, after documents are searchable by keyword.

A few chunks are stored at a time: a killed process loses only seconds of work. The model uses a whole core. Therefore a
single process per installation does this at a time.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import UUID

import numpy as np
from pgvector import HalfVector

from rag.errors import InvalidInput, ProviderUnavailable
from rag.ingestion.document_jobs import JobControl, JobTaken
from rag.providers.builtin_embedders import MeaningEmbedder
from rag.retrieval.bm25.index import contextual_text
from rag.storage.database import Database, queries
from rag.types import FloatMatrix

try:
    import fcntl
except ImportError:  # Windows: the package with the model has no wheel for it
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("rag.meaning")

#: Passages read together, and passages stored in one transaction.
PASSAGES_READ = 500
PASSAGES_STORED = 8
#: Characters in a part of a passage: a few sentences, or a short section with its heading.
PART_CHARACTERS = 280
#: A shorter rest is joined to the previous part.
LEAST_PART = 80
#: The longest line read as a heading, in characters, unless it is a sentence or a table row.
HEADING_CHARACTERS = 70
_PIECE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_HEADING = re.compile(r"\w[^|]*[^\s.!?。！？,;:|]\s*\n\s*")
#: How long a collection is worked on before the next, in seconds.
SLICE_SECONDS = 30.0
#: The engine ends after this many seconds without a passage; until then the next document may arrive.
IDLE_SECONDS = 60.0


@dataclass(frozen=True)
class UnreadPassage:
    """A chunk which the built-in embedding model has not embedded yet."""

    id: UUID
    document_id: UUID
    title: str
    section: str
    content: str
    language: str

    @property
    def texts(self) -> list[str]:
        """Return the texts to embed: each part of the chunk, with title and section."""
        return [contextual_text(self.title, self.section, part) for part in parts_of(self.content)]


@dataclass(frozen=True)
class MeaningProgress:
    """How many chunks have a vector from the built-in embedding model (`done`), and how many chunks there are
    (`passages`).

    Chunks counted in `unreadable` never get a vector.
    """

    document_id: UUID
    collection_id: UUID
    passages: int
    done: int
    unreadable: int

    @property
    def is_complete(self) -> bool:
        return self.done >= self.passages


class MeaningJob:
    """Embeds chunks with the built-in model, in collections with an embedder which only compares words."""

    def __init__(self, control: JobControl, embedder: MeaningEmbedder, data_dir: Path) -> None:
        self._control = control
        self._embedder = embedder
        self._lock_file = data_dir / "meaning.lock"

    def run(self, tenant_id: str, collection_id: UUID, *, slice_seconds: float = SLICE_SECONDS) -> bool:
        """Embed a collection's chunks for `slice_seconds`. Return whether all chunks have vectors.

        Raises `JobTaken`, `JobInterrupted`, `TenantSuspended`, and `ProviderUnavailable` if the model's process fails.
        """
        ends_at = time.monotonic() + slice_seconds
        with self._only_one(), self._control.claimed(tenant_id, f"meaning {collection_id}"):
            while passages := self._next(tenant_id, collection_id):
                for first in range(0, len(passages), PASSAGES_STORED):
                    batch = passages[first : first + PASSAGES_STORED]
                    self._store(tenant_id, batch, [self._vectors(passage) for passage in batch])
                    if time.monotonic() >= ends_at:
                        return False
        return True

    def store_known(self, tenant_id: str, collection_id: UUID, vectors_by_digest: Mapping[bytes, FloatMatrix]) -> int:
        """Store known vectors, given by the digests of their texts. Returns how many chunks got vectors."""
        vectors_of = dict[UnreadPassage, list[FloatMatrix]]()
        for passage in self._next(tenant_id, collection_id):
            vectors = [vectors_by_digest.get(digest_of(text)) for text in passage.texts]
            there = [vector for vector in vectors if vector is not None]
            if vectors and len(there) == len(vectors):
                vectors_of[passage] = there
        if vectors_of:
            self._store(tenant_id, list(vectors_of), list(vectors_of.values()))
        return len(vectors_of)

    def interrupt(self) -> None:
        """End the model's process. The current chunk is not stored."""
        self._embedder.rest()

    def rest_when_idle(self) -> None:
        """End the model's process if it has been idle for a while."""
        self._embedder.rest(idle_seconds=IDLE_SECONDS)

    def _next(self, tenant_id: str, collection_id: UUID) -> list[UnreadPassage]:
        return self._control.database.fetch_all(
            tenant_id,
            "without_meaning",
            UnreadPassage,
            tenant_id=tenant_id,
            collection_id=collection_id,
            limit=PASSAGES_READ,
        )

    def _vectors(self, passage: UnreadPassage) -> list[FloatMatrix]:
        vectors = list[FloatMatrix]()
        for text in passage.texts:
            self._control.stop_if_asked()
            try:
                vectors.append(self._embedder.embed([text], purpose="document").vectors[0])
            except ProviderUnavailable:
                self._control.stop_if_asked()  # a requested stop ends the process
                raise
            except InvalidInput as exc:
                log.warning("A part of passage %s has no vector of meaning: %s", passage.id, exc.message)
        return vectors

    def _store(self, tenant_id: str, passages: Sequence[UnreadPassage], vectors: Sequence[list[FloatMatrix]]) -> None:
        with self._control.database.transaction(tenant_id) as connection:
            connection.execute(queries["add_meaning"], _columns(passages, vectors))

    @contextmanager
    def _only_one(self) -> Iterator[None]:
        """Hold this installation's lock. Raises `JobTaken` if a different process holds the lock."""
        self._lock_file.parent.mkdir(parents=True, exist_ok=True)
        with self._lock_file.open("a") as file:
            if not _try_lock(file):
                raise JobTaken
            yield


def parts_of(content: str) -> list[str]:
    """Split a chunk into parts of similar length, at sentence or line ends. Headings stay with the following text."""
    pieces, ends = list[str](), [match.end() for match in _PIECE.finditer(content)]
    for start, end in zip([0, *ends], [*ends, len(content)], strict=True):
        piece = content[start:end]
        if pieces and len(pieces[-1]) <= HEADING_CHARACTERS and _HEADING.fullmatch(pieces[-1]):
            pieces[-1] += piece
        elif piece:
            pieces.append(piece)
    length = len(content) / max(1, round(len(content) / PART_CHARACTERS))
    parts = [""]
    for piece in pieces:
        if parts[-1] and len(parts[-1]) + len(piece) / 2 > length:
            parts.append("")
        parts[-1] += piece
    if len(parts) > 1 and len(parts[-1].strip()) < LEAST_PART:
        parts[-2:] = ["".join(parts[-2:])]
    return [part for part in parts if part.strip()]


def digest_of(text: str) -> bytes:
    """Hash a text, to look up the vector."""
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16]


def meaning_progress(
    database: Database, tenant_id: str, *, collection_id: UUID | None = None, document_id: UUID | None = None
) -> list[MeaningProgress]:
    """Count the chunks with and without a vector from the built-in model, in searchable documents."""
    return database.fetch_all(
        tenant_id, "meaning_progress", MeaningProgress, collection_id=collection_id, document_id=document_id
    )


def _columns(passages: Sequence[UnreadPassage], vectors: Sequence[list[FloatMatrix]]) -> dict[str, list[Any]]:
    parts = [
        (passage.id, number, HalfVector(vector))
        for passage, part_vectors in zip(passages, vectors, strict=True)
        for number, vector in enumerate(part_vectors)
    ]
    return {
        "chunk_ids": [passage.id for passage in passages],
        "languages": [passage.language for passage in passages],
        "embeddings": [HalfVector(_mean(part_vectors)) if part_vectors else None for part_vectors in vectors],
        "part_of": [chunk_id for chunk_id, _, _ in parts],
        "parts": [number for _, number, _ in parts],
        "part_embeddings": [vector for _, _, vector in parts],
    }


def _mean(vectors: Sequence[FloatMatrix]) -> FloatMatrix:
    """Return the mean vector, normalised to length 1."""
    mean: FloatMatrix = np.mean(vectors, axis=0)
    return mean / np.linalg.norm(mean)


def _try_lock(file: IO[str]) -> bool:
    """Lock a file without waiting. Returns False if a different process holds the lock."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
