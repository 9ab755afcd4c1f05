"""Fill requests to the embedding model with passages from several documents in a source.

With `share_requests`, a document's job stores its passages and ends. The job which fills a request, or finds that no
more passages come, embeds all waiting passages. A document with all its vectors then continues in a new job. A request
has one ledger row, charged to the collection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from rag.errors import RagError, SettingsError
from rag.ingestion.document_jobs import (
    TEMPORARY,
    DocumentGone,
    JobControl,
    JobTaken,
    find_collection,
    require_active,
)
from rag.ingestion.document_rows import find_bare_chunks, halfvecs
from rag.ingestion.embed import Batch, BatchEmbedder, EmbeddedBatch, EmbedStep
from rag.money.durable_calls import Payer
from rag.profiles import profile_of
from rag.profiles.profile import Profile
from rag.providers import Embedder
from rag.providers.registry import Providers
from rag.retrieval.bm25.index import contextual_text
from rag.storage.database import queries
from rag.types import Collection

MarkFailed = Callable[[str, UUID, str], None]
"""Ends the work on a tenant's document with a sentence."""


@dataclass(frozen=True)
class WaitingPassage:
    """A stored passage without a vector, from a document which shares requests."""

    id: UUID
    document_id: UUID
    title: str
    section: str
    content: str


class SharedRequests:
    """Embeds waiting passages together. Thread-safe; only one worker at a time serves a collection."""

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
        """Embed waiting passages in this document's collection: full requests, and the rest when no more passages come.

        Raises `JobInterrupted`, and the errors in `TEMPORARY`, after which it can be run again.
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
        wanted = [
            Batch(
                batch,
                [contextual_text(p.title, p.section, p.content) if has_titles else p.content for p in batch],
                payer,
            )
            for batch in batches
        ]
        try:
            pause_ms = profile.embedding.embedding_delay_ms
            for group in self._batch_embedder.embed(embedder, wanted, pause_ms=pause_ms):
                self._store(collection, group, embedder)
        except TEMPORARY:
            raise
        except RagError:
            # A refused text must not stop the other documents.
            self._embed_apart(collection, batches, embedder)

    def _store(
        self, collection: Collection, group: Sequence[EmbeddedBatch[WaitingPassage]], embedder: Embedder
    ) -> None:
        with self._database.transaction(collection.tenant_id) as connection:
            for embedded in group:
                embedded.receipt.settle(connection)
                made = {
                    "embedding_model": embedder.id,
                    "embeddings": halfvecs(embedded.vectors),
                    "ids": [passage.id for passage in embedded.items],
                }
                connection.execute(queries["set_shared_vectors"], made)
                touched = list({passage.document_id for passage in embedded.items})
                connection.execute(
                    queries["enqueue_whole_documents"], {"document_ids": touched, "embedding_model": embedder.id}
                )
            require_active(connection)

    def _embed_apart(
        self, collection: Collection, batches: Sequence[Sequence[WaitingPassage]], embedder: Embedder
    ) -> None:
        """Embed each document with separate requests, and end the work on documents which fail."""
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
                whole = {"document_ids": [document_id], "embedding_model": embedder.id}
                self._database.execute(tenant_id, "enqueue_whole_documents", **whole)
