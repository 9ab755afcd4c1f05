"""Embed chunks, and store each batch with its cost in a single transaction.

With the setting `share_requests`, several documents share requests. A document's job then only stores the chunks
without vectors. If the waiting chunks fill a request, or if no more chunks will come, the job embeds all waiting
chunks. When all chunks have vectors, the document continues in a new job. A shared request has a single ledger row,
which is charged to the collection.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from rag.errors import RagError, SettingsError, VectorUnusable
from rag.ingestion import document_rows
from rag.ingestion.document_jobs import (
    TEMPORARY,
    DocumentGone,
    DocumentJob,
    JobControl,
    JobTaken,
    find_collection,
    hold,
    progress,
    require_active,
)
from rag.ingestion.document_rows import find_bare_chunks, halfvecs
from rag.ingestion.embedding_batches import Batch, BatchEmbedder, EmbeddedBatch
from rag.ingestion.uploads import ON_PAGES, on_pages
from rag.language import N_
from rag.money.durable_calls import Payer
from rag.profiles import profile_of
from rag.profiles.profile import Profile
from rag.providers import Embedder
from rag.providers.registry import Providers
from rag.retrieval.bm25.index import contextual_text
from rag.storage.database import queries
from rag.text.tokens import estimate_tokens
from rag.types import Chunk, Collection, Step

log = logging.getLogger(__name__)
#: Characters shown from the first passage without a vector.
SHOWN_CHARACTERS = 60
SET_ASIDE = (
    N_(
        "1 of {total} passages cannot be searched by meaning, because {model} cannot process its text (“{text}”). Its "
        "words are still searched for. Choose another search model for the collection, or change the text and upload "
        "the document again."
    ),
    N_(
        "{count} of {total} passages cannot be searched by meaning, because {model} cannot process their text "
        "(“{text}”). Their words are still searched for. Choose another search model for the collection, or change the "
        "text and upload the document again."
    ),
)


def set_aside_message(chunks: Sequence[Chunk], total: int, embedding_model: str) -> str:
    """Return a sentence for administrators about chunks which could not be embedded, or "" if all were embedded."""
    if not chunks:
        return ""
    pages = sorted({chunk.first_page for chunk in chunks})
    first = " ".join(chunks[0].content.split())
    excerpt = first if len(first) <= SHOWN_CHARACTERS else f"{first[:SHOWN_CHARACTERS].rstrip()}…"
    remark = SET_ASIDE[len(chunks) > 1].format(
        count=f"{len(chunks):,}", total=f"{total:,}", model=embedding_model, text=excerpt
    )
    return on_pages(ON_PAGES, pages, remark=remark)


class EmbedStep:
    """The ingestion step which embeds chunks. Chunks with a stored vector are not embedded again."""

    def __init__(self, control: JobControl, batch_embedder: BatchEmbedder) -> None:
        self._control = control
        self._batch_embedder = batch_embedder

    def run(self, job: DocumentJob, chunks: Sequence[Chunk], embedder: Embedder) -> list[Chunk]:
        """Embed and store the chunks which have no vector. Returns the chunks which the provider cannot embed.

        These are stored without a vector and found by keyword search only. Finished batches are kept after an error.
        Raises `DocumentGone`, `JobInterrupted`, `ProviderError`, and `VectorUnusable` if no chunk got a vector.
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
        """Store the chunks without vectors. `SharedRequests` embeds them later, together with chunks from other
        documents.

        Returns `None` until all vectors have been requested, then the chunks which could not be embedded. Raises
        `DocumentGone`, `VectorUnusable`.
        """
        document = job.document
        with self._control.database.transaction(document.tenant_id) as connection:
            hold(connection, job)
            is_complete, bare = document_rows.keep_requested(connection, document, chunks, embedder.id)
        if not is_complete:
            self._control.note_progress(job, Step.EMBED, 0, len(chunks))
            return None
        if bare and len(bare) == len(chunks):
            raise VectorUnusable
        return [chunk for chunk in chunks if chunk.index in bare]

    def run_on_stored(self, job: DocumentJob, chunks: Sequence[Chunk], embedder: Embedder) -> list[Chunk]:
        """Embed stored chunks, and add only their vectors. Returns and raises like `run`."""
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
        requests = [
            Batch(
                batch,
                [contextual_text(document.title, c.section, c.content) if has_titles else c.content for c in batch],
                job.payer,
            )
            for batch in batches
        ]
        started = time.perf_counter()
        pause_ms = job.profile.embedding.embedding_delay_ms
        for group in self._batch_embedder.embed(embedder, requests, pause_ms=pause_ms):
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
        """Store chunks, vectors and cost in a single transaction.

        A server crash may undo the whole transaction; the calls are then repeated with the same idempotency keys.
        """
        document = job.document
        tokens = [[estimate_tokens(chunk.content) for chunk in embedded.items] for embedded in group]
        with self._control.database.transaction(document.tenant_id) as connection:
            connection.execute(queries["commit_without_waiting"])
            is_there = connection.execute(queries["hold_document"], job.key).fetchone() is not None
            for embedded, counts in zip(group, tokens, strict=True):
                chunks, vectors = embedded.items, embedded.vectors
                embedded.receipt.settle(connection)
                if is_there and are_stored:
                    document_rows.set_vectors(connection, document, chunks, vectors, embedder.id)
                elif is_there:
                    document_rows.add_chunks(connection, document, chunks, vectors, embedder.id, tokens=counts)
            if is_there:
                connection.execute(queries["note_progress"], noted)
        if not is_there:
            raise DocumentGone


MarkFailed = Callable[[str, UUID, str], None]
"""Ends the work on a tenant's document with a sentence."""


@dataclass(frozen=True)
class WaitingPassage:
    """A stored chunk which has no vector yet."""

    id: UUID
    document_id: UUID
    title: str
    section: str
    content: str


class SharedRequests:
    """Embeds waiting chunks from several documents in shared requests.

    Thread-safe. Only one worker at a time works on a collection.
    """

    def __init__(
        self,
        control: JobControl,
        providers: Providers,
        batch_embedder: BatchEmbedder,
        embed_step: EmbedStep,
        mark_failed: MarkFailed,
    ) -> None:
        self._control = control
        self._database = control.database
        self._providers = providers
        self._batch_embedder = batch_embedder
        self._embed_step = embed_step
        self._mark_failed = mark_failed

    def run_if_due(self, tenant_id: str, document_id: UUID) -> None:
        """Embed the chunks waiting in this document's collection.

        Full requests are sent immediately. The rest is sent when no more chunks will come. Raises `JobInterrupted`, and
        the errors in `TEMPORARY`, after which the job can be run again.
        """
        collection_id = self._database.fetch_value(tenant_id, "collection_that_shares", document_id=document_id)
        if collection_id is None:
            return
        try:
            collection = find_collection(self._database, tenant_id, collection_id)
            embedder = self._providers.embedder_for(collection.embedding_model)
        except (DocumentGone, SettingsError):  # without a model, each document reports the error
            return
        profile = profile_of(collection)
        # A worker checks again after releasing the lock, so passages arriving meanwhile are not forgotten.
        while self._due(collection, embedder, profile):
            try:
                with self._control.claimed(tenant_id, collection.id):
                    self._embed(collection, self._due(collection, embedder, profile), embedder, profile)
            except JobTaken:
                return

    def _due(self, collection: Collection, embedder: Embedder, profile: Profile) -> list[Sequence[WaitingPassage]]:
        size = profile.embedding.embedding_batch_size
        key = {"collection_id": collection.id, "embedding_model": embedder.id}
        with self._database.transaction(collection.tenant_id) as connection:
            more = connection.execute(queries["passages_still_come"], key).fetchone()
            rows = connection.execute(queries["chunks_to_share"], key).fetchall()
        waiting = [WaitingPassage(*row) for row in rows]
        batches = [waiting[first : first + size] for first in range(0, len(waiting), size)]
        return [batch for batch in batches if len(batch) == size or not (more and more[0])]

    def _embed(
        self, collection: Collection, batches: Sequence[Sequence[WaitingPassage]], embedder: Embedder, profile: Profile
    ) -> None:
        has_titles = profile.embedding.index_titles
        payer = Payer(collection.tenant_id, collection.id, collection_id=collection.id)
        requests = [
            Batch(
                batch,
                [contextual_text(p.title, p.section, p.content) if has_titles else p.content for p in batch],
                payer,
            )
            for batch in batches
        ]
        try:
            pause_ms = profile.embedding.embedding_delay_ms
            for group in self._batch_embedder.embed(embedder, requests, pause_ms=pause_ms):
                self._store(collection, group, embedder)
        except TEMPORARY:
            raise
        except RagError:
            # A refused text must not stop the other documents.
            self._embed_separately(collection, batches, embedder)

    def _store(
        self, collection: Collection, group: Sequence[EmbeddedBatch[WaitingPassage]], embedder: Embedder
    ) -> None:
        with self._database.transaction(collection.tenant_id) as connection:
            for embedded in group:
                embedded.receipt.settle(connection)
                parameters = {
                    "embedding_model": embedder.id,
                    "embeddings": halfvecs(embedded.vectors),
                    "ids": [passage.id for passage in embedded.items],
                }
                connection.execute(queries["set_shared_vectors"], parameters)
                touched = list({passage.document_id for passage in embedded.items})
                connection.execute(
                    queries["enqueue_whole_documents"], {"document_ids": touched, "embedding_model": embedder.id}
                )
            require_active(connection)

    def _embed_separately(
        self, collection: Collection, batches: Sequence[Sequence[WaitingPassage]], embedder: Embedder
    ) -> None:
        tenant_id = collection.tenant_id
        passages = [passage for batch in batches for passage in batch]
        for document_id, _ in groupby(passages, key=lambda passage: passage.document_id):
            try:
                job = self._control.job(tenant_id, document_id)
                bare = find_bare_chunks(self._database, job.document, embedder.id)
                self._embed_step.run_on_stored(job, bare, embedder)
            except DocumentGone:
                continue
            except TEMPORARY:
                raise
            except RagError as exc:
                self._mark_failed(tenant_id, document_id, str(exc))
            else:
                parameters = {"document_ids": [document_id], "embedding_model": embedder.id}
                self._database.execute(tenant_id, "enqueue_whole_documents", **parameters)
