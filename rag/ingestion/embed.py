"""Embed chunks in fixed batches, several at the same time, and store each with its bill in one transaction.

`embed_batches` is the only loop which embeds documents: chunks, sentences for cutting by topic, and chunks in
a collection moving to a different model. Free vectors of meaning are made in `meaning.py`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar
from uuid import UUID

import numpy as np

from rag.errors import VectorUnusable
from rag.ingestion import document_rows
from rag.ingestion.document_jobs import DocumentGone, DocumentJob, hold, progress
from rag.ingestion.paid_calls import PaidCall, PaidCalls, PlannedCall, digest_of, expected_embedding, groups_in_parallel
from rag.ingestion.uploads import ON_PAGES, on_pages
from rag.language import N_
from rag.providers import Embedder
from rag.providers.embeddings import generate_embeddings_batch, setting_aside
from rag.retrieval.bm25.index import contextual_text
from rag.storage.database import queries
from rag.text.tokens import estimate_tokens
from rag.types import Chunk, Embeddings, FloatMatrix, Step, Usage

log = logging.getLogger(__name__)
Item = TypeVar("Item")
EmbeddingOperation = Literal["embedding", "chunking"]
#: Characters shown from the first passage without a vector.
SHOWN_CHARACTERS = 60
SET_ASIDE = (
    N_(
        "1 of {total} passages has no vector, because {model} gave no usable numbers for it (“{text}”). Only the words "
        "there are searched for. Choose another embedding model for the collection, or change the text and upload the "
        "document again."
    ),
    N_(
        "{count} of {total} passages have no vector, because {model} gave no usable numbers for them (“{text}”). Only "
        "the words there are searched for. Choose another embedding model for the collection, or change the text and "
        "upload the document again."
    ),
)


@dataclass(frozen=True)
class Batch(Generic[Item]):
    """Items with the texts for a single call, and the document to charge; `None` for items from several documents."""

    items: Sequence[Item]
    texts: Sequence[str]
    document_id: UUID | None


@dataclass(frozen=True)
class EmbeddedBatch(Generic[Item]):
    """A batch with vectors, NaN for texts without a vector. `call` is `None` for free batches."""

    items: Sequence[Item]
    texts: Sequence[str]
    document_id: UUID | None
    embeddings: Embeddings
    call: PaidCall | None

    @property
    def set_aside(self) -> list[Item]:
        """Return the items for which the provider has no vector."""
        missing = [bool(np.isnan(vector).any()) for vector in self.embeddings.vectors]
        return [item for item, is_missing in zip(self.items, missing, strict=True) if is_missing]


@dataclass(frozen=True)
class BatchOwner:
    """The document, move or collection whose batches are embedded."""

    tenant_id: str
    id: UUID
    #: Between calls, also for different documents; with a pause, only one call runs at a time.
    pause_ms: int


def embed_batches(
    calls: PaidCalls,
    embedder: Embedder,
    batches: Sequence[Batch[Item]],
    owner: BatchOwner,
    *,
    operation: EmbeddingOperation = "embedding",
) -> Iterator[list[EmbeddedBatch[Item]]]:
    """Embed batches, and yield groups which are ready together, for storage in a single transaction.

    Raises `JobInterrupted` and `ProviderError`s after yielding the calls under way.
    """
    pause_ms = owner.pause_ms

    def embed(batch: Batch[Item]) -> EmbeddedBatch[Item]:
        def make() -> Embeddings:
            with setting_aside():
                return generate_embeddings_batch(batch.texts, embedder=embedder, batch_size=len(batch.texts))

        if embedder.is_paid:
            planned = PlannedCall(
                owner.tenant_id,
                owner.id,
                operation,
                known_by(operation, embedder, batch.texts),
                expected=expected_embedding(embedder.provider, embedder.model, batch.texts),
                document_id=batch.document_id,
                collection_id=owner.id if batch.document_id is None else None,
            )
            call, embeddings = calls.make(planned, make)
            return EmbeddedBatch(batch.items, batch.texts, batch.document_id, embeddings, call)
        return EmbeddedBatch(batch.items, batch.texts, batch.document_id, make(), None)

    def embed_apart(batch: Batch[Item]) -> EmbeddedBatch[Item]:
        with calls.apart(embedder.id, pause_ms / 1000):
            return embed(batch)

    threads = calls.threads if embedder.is_paid and not pause_ms else 1
    on_tick = calls.control.stop_if_asked
    for group in groups_in_parallel(embed_apart if pause_ms else embed, batches, threads=threads, on_tick=on_tick):
        yield [embedded for _, embedded in group]


def known_by(operation: EmbeddingOperation, embedder: Embedder, texts: Sequence[str]) -> list[str]:
    """Return the texts which identify an embedding call."""
    # A chunk with a single sentence is embedded with its title and section, unlike the sentence alone.
    return [*(("sentences",) if operation == "chunking" else ()), embedder.id, *texts]


def set_aside_message(chunks: Sequence[Chunk], total: int, embedding_model: str) -> str:
    """Tell an admin which passages have no vector; "" if all have vectors."""
    if not chunks:
        return ""
    pages = sorted({chunk.first_page for chunk in chunks})
    first = " ".join(chunks[0].content.split())
    shown = first if len(first) <= SHOWN_CHARACTERS else f"{first[:SHOWN_CHARACTERS].rstrip()}…"
    remark = SET_ASIDE[len(chunks) > 1].format(
        count=f"{len(chunks):,}", total=f"{total:,}", model=embedding_model, text=shown
    )
    return on_pages(ON_PAGES, pages, remark=remark)


class EmbedStep:
    """Embeds a document's chunks; vectors already stored are free."""

    def __init__(self, calls: PaidCalls) -> None:
        self._calls = calls
        self._control = calls.control

    def run(self, job: DocumentJob, chunks: Sequence[Chunk], embedder: Embedder) -> list[Chunk]:
        """Embed the chunks without a vector; return chunks the provider refuses, which are found only by words.

        Paid batches are kept. Raises `DocumentGone`, `JobInterrupted`, `ProviderError`s, and `VectorUnusable` if no
        chunk has a vector.
        """
        document = job.document
        with self._control.database.transaction(document.tenant_id) as connection:
            hold(connection, job)
            stored = document_rows.keep_embedded(connection, document, chunks, embedder.id)
            missing = [chunk for chunk in chunks if chunk.index not in stored]
            stored |= document_rows.take_over(connection, document, missing, embedder.id)
        self._control.note_progress(job, Step.EMBED, len(stored), len(chunks))
        # The batches are the same on every run, and each is stored as a whole: a call sent again is the same call.
        batches = [[c for c in batch if c.index not in stored] for batch in self._batches(job, chunks)]
        return self._embed(job, [batch for batch in batches if batch], embedder, done=len(stored), total=len(chunks))

    def run_together(self, job: DocumentJob, chunks: Sequence[Chunk], embedder: Embedder) -> list[Chunk] | None:
        """Store the chunks and leave their vectors to `SharedRequests`.

        Returns `None` until the vectors were requested, then the same result as `run`. Raises `DocumentGone`,
        `VectorUnusable`.
        """
        document = job.document
        with self._control.database.transaction(document.tenant_id) as connection:
            hold(connection, job)
            is_whole, bare = document_rows.keep_asked(connection, document, chunks, embedder.id)
        if not is_whole:
            self._control.note_progress(job, Step.EMBED, 0, len(chunks))
            return None
        if bare and len(bare) == len(chunks):
            raise VectorUnusable
        return [chunk for chunk in chunks if chunk.index in bare]

    def run_on_stored(self, job: DocumentJob, chunks: Sequence[Chunk], embedder: Embedder) -> list[Chunk]:
        """Embed stored chunks without a vector, and change nothing else in them. Returns and raises like `run`."""
        return self._embed(job, self._batches(job, chunks), embedder, done=0, total=len(chunks), are_stored=True)

    def _batches(self, job: DocumentJob, chunks: Sequence[Chunk]) -> list[Sequence[Chunk]]:
        size = job.profile.embedding.embedding_batch_size
        return [chunks[first : first + size] for first in range(0, len(chunks), size)]

    def _embed(
        self,
        job: DocumentJob,
        batches: Sequence[Sequence[Chunk]],
        embedder: Embedder,
        *,
        done: int,
        total: int,
        are_stored: bool = False,
    ) -> list[Chunk]:
        document = job.document
        set_aside: list[Chunk] = []
        has_titles = job.profile.embedding.index_titles
        wanted = [
            Batch(
                batch,
                [contextual_text(document.title, c.section, c.content) if has_titles else c.content for c in batch],
                document.id,
            )
            for batch in batches
        ]
        started = time.perf_counter()
        for group in embed_batches(
            self._calls,
            embedder,
            wanted,
            BatchOwner(document.tenant_id, document.id, job.profile.embedding.embedding_delay_ms),
        ):
            done += sum(len(embedded.items) for embedded in group)
            noted = progress(job, Step.EMBED, done, total, started)
            self._store(job, group, embedder, noted, are_stored=are_stored)
            set_aside += [chunk for embedded in group for chunk in embedded.set_aside]
            started = time.perf_counter()
        if set_aside and len(set_aside) == total:
            raise VectorUnusable
        if set_aside:
            places = ", ".join(str(chunk.index) for chunk in set_aside)
            log.warning("%s has no vector for passages %s of document %s", embedder.id, places, document.id)
        return sorted(set_aside, key=lambda chunk: chunk.index)

    def _store(
        self,
        job: DocumentJob,
        group: Sequence[EmbeddedBatch[Chunk]],
        embedder: Embedder,
        noted: dict[str, object],
        *,
        are_stored: bool,
    ) -> None:
        """Store chunks, vectors and bills, and end their calls, in one transaction.

        The commit does not wait for the disk: only a server crash can undo it, as a whole, and then the calls are open
        again under the same keys. Chunks already stored only get their vectors.
        """
        document = job.document
        tokens = [[estimate_tokens(chunk.content) for chunk in embedded.items] for embedded in group]
        with self._control.database.transaction(document.tenant_id) as connection:
            connection.execute(queries["commit_without_waiting"])
            is_there = connection.execute(queries["hold_document"], job.key).fetchone() is not None
            for embedded, counts in zip(group, tokens, strict=True):
                chunks, vectors = embedded.items, embedded.embeddings.vectors
                self._calls.settle(connection, embedded.call, embedded.embeddings.usages, job.prices)
                if is_there and are_stored:
                    document_rows.set_vectors(connection, document, chunks, vectors, embedder.id)
                elif is_there:
                    document_rows.add_chunks(connection, document, chunks, vectors, embedder.id, tokens=counts)
            if is_there:
                connection.execute(queries["note_progress"], noted)
        if not is_there:
            raise DocumentGone


class DurableEmbedder:
    """Embeds the sentences for cutting by topic, and keeps their vectors until the cut is stored.

    Cutting by topic is paid before there are chunks to hold the vectors.
    """

    def __init__(self, embedder: Embedder, calls: PaidCalls, job: DocumentJob) -> None:
        self.id = embedder.id
        self.provider = embedder.provider
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.default_threshold = embedder.default_threshold
        self.is_paid = embedder.is_paid
        self._embedder = embedder
        self._calls = calls
        self._database = calls.control.database
        self._job = job

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Embed the texts not yet paid for by an earlier attempt.

        Raises `DocumentGone`, `JobInterrupted`, `ProviderError`s.
        """
        document = self._job.document
        size = self._job.profile.embedding.embedding_batch_size
        vectors: FloatMatrix = np.empty((len(texts), self.dimensions), dtype=np.float32)
        missing: list[Batch[int]] = []
        batches = [range(first, min(first + size, len(texts))) for first in range(0, len(texts), size)]
        for places in batches:
            batch = Batch(places, texts[places.start : places.stop], document.id)
            kept = self._find_kept(batch.texts)
            if kept is None:
                missing.append(batch)
            else:
                vectors[places.start : places.stop] = kept
        usages: list[Usage] = []
        done, started = len(batches) - len(missing), time.perf_counter()
        for group in embed_batches(
            self._calls,
            self._embedder,
            missing,
            BatchOwner(document.tenant_id, document.id, self._job.profile.embedding.embedding_delay_ms),
            operation="chunking",
        ):
            done += len(group)
            self._keep(group, progress(self._job, Step.CHUNK, done, len(batches), started))
            started = time.perf_counter()
            for embedded in group:
                vectors[list(embedded.items)] = embedded.embeddings.vectors
                usages.extend(embedded.embeddings.usages)
        return Embeddings(vectors=_of_neighbours(vectors), usages=tuple(usages))

    def _digest(self, texts: Sequence[str]) -> str:
        return digest_of(known_by("chunking", self._embedder, texts))

    def _find_kept(self, texts: Sequence[str]) -> FloatMatrix | None:
        document = self._job.document
        parameters = {"document_id": document.id, "digest": self._digest(texts)}
        found = self._database.fetch_value(document.tenant_id, "find_sentence_vectors", **parameters)
        return None if found is None else np.frombuffer(found, dtype="<f4").reshape(len(texts), self.dimensions)

    def _keep(self, group: Sequence[EmbeddedBatch[int]], noted: dict[str, object]) -> None:
        job = self._job
        with self._database.transaction(job.document.tenant_id) as connection:
            is_there = connection.execute(queries["hold_document"], job.key).fetchone() is not None
            for embedded in group:
                self._calls.settle(connection, embedded.call, embedded.embeddings.usages, job.prices)
                if is_there:
                    vectors = embedded.embeddings.vectors.astype("<f4").tobytes()
                    parameters = {**job.key, "digest": self._digest(embedded.texts), "vectors": vectors}
                    connection.execute(queries["keep_sentence_vectors"], parameters)
            if is_there:
                connection.execute(queries["note_progress"], noted)
        if not is_there:
            raise DocumentGone


def _of_neighbours(vectors: FloatMatrix) -> FloatMatrix:
    """Give a sentence without a vector its neighbour's vector: no topic ends there.

    Raises `VectorUnusable` if all vectors are missing.
    """
    usable = np.flatnonzero(~np.isnan(vectors).any(axis=1))
    if len(usable) == len(vectors):
        return vectors
    if not len(usable):
        raise VectorUnusable
    nearest = np.searchsorted(usable, np.arange(len(vectors)), side="right") - 1
    made: FloatMatrix = vectors[usable[np.maximum(nearest, 0)]]
    return made
