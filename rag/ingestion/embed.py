"""The step that makes vectors: in fixed batches, several in flight, each stored with its bill in one transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from rag.ingestion import document_rows
from rag.ingestion.document_jobs import DocumentGone, DocumentJob, JobControl, hold, progress
from rag.ingestion.paid_calls import PaidCall, PaidCalls, digest_of, expected_embedding
from rag.ingestion.parallel import groups_in_parallel, in_parallel
from rag.money.ledger import Ledger
from rag.money.price_list import charge, estimate_tokens
from rag.providers import Embedder
from rag.providers.embeddings import generate_embeddings_batch
from rag.retrieval.keywords import contextual_text
from rag.storage.database import queries
from rag.types import Chunk, Embeddings, FloatMatrix, Step, Usage

Answered = tuple[Sequence[Chunk], PaidCall | None, Embeddings]


class EmbeddingStep:
    """Gives a document's chunks their vectors; those that are stored already cost nothing."""

    def __init__(self, control: JobControl, ledger: Ledger, calls: PaidCalls) -> None:
        self._control = control
        self._ledger = ledger
        self._calls = calls

    def run(self, job: DocumentJob, chunks: Sequence[Chunk], embedder: Embedder) -> None:
        """Embed what is missing. Raises `DocumentGone`, `JobInterrupted`, `ProviderError`s; what is paid is kept."""
        document = job.document
        with self._control.database.transaction(document.tenant_id) as connection:
            hold(connection, job)
            stored = document_rows.keep_embedded(connection, document, chunks, embedder.id)
        done = len(stored)
        self._control.note_progress(job, Step.EMBED, done, len(chunks))
        size = job.profile.embedding.embedding_batch_size
        # The batches are the same whenever this runs, and each is stored whole: a call sent again is the same call.
        batches = [chunks[first : first + size] for first in range(0, len(chunks), size)]
        missing = [[chunk for chunk in batch if chunk.index not in stored] for batch in batches]
        started = time.monotonic()
        pause = job.profile.embedding.embedding_delay_ms / 1000

        def embed(numbered: tuple[int, Sequence[Chunk]]) -> tuple[PaidCall | None, Embeddings]:
            number, batch = numbered
            if number and pause:
                self._control.wait(pause)
            return self._embed(job, batch, embedder)

        made = groups_in_parallel(
            embed,
            list(enumerate(batch for batch in missing if batch)),
            threads=self._calls.threads if embedder.is_paid and not pause else 1,
            on_tick=self._control.stop_if_asked,
        )
        for group in made:
            answered = [(batch, call, embeddings) for (_, batch), (call, embeddings) in group]
            done += sum(len(batch) for batch, _, _ in answered)
            self._store(job, answered, embedder, progress(job, Step.EMBED, done, len(chunks), started))
            started = time.monotonic()

    def run_on_stored(self, job: DocumentJob, chunks: Sequence[Chunk], embedder: Embedder) -> None:
        """Give stored chunks that have none their vectors, in batches; what else is known of them stays.

        Raises as `run`.
        """
        size = job.profile.embedding.embedding_batch_size
        batches = [chunks[first : first + size] for first in range(0, len(chunks), size)]
        for number, batch in enumerate(batches):
            if number and job.profile.embedding.embedding_delay_ms:
                self._control.wait(job.profile.embedding.embedding_delay_ms / 1000)
            started = time.monotonic()
            call, embeddings = self._embed(job, batch, embedder)
            noted = progress(job, Step.EMBED, number + 1, len(batches), started)
            self._store(job, [(batch, call, embeddings)], embedder, noted, are_stored=True)

    def _embed(
        self, job: DocumentJob, batch: Sequence[Chunk], embedder: Embedder
    ) -> tuple[PaidCall | None, Embeddings]:
        texts = [contextual_text(job.document.title, chunk.section, chunk.content) for chunk in batch]

        def embed() -> Embeddings:
            return generate_embeddings_batch(texts, embedder=embedder, batch_size=len(texts))

        if not embedder.is_paid:
            return None, embed()
        document = job.document
        texts_and_model = [embedder.id, *texts]
        return self._calls.make(
            document.tenant_id,
            document.id,
            "embedding",
            texts_and_model,
            embed,
            wait=self._control.wait,
            expected=expected_embedding(embedder.provider, embedder.model, texts),
            document_id=document.id,
        )

    def _store(
        self,
        job: DocumentJob,
        answered: Sequence[Answered],
        embedder: Embedder,
        noted: dict[str, object],
        *,
        are_stored: bool = False,
    ) -> None:
        """Chunks, vectors, bills and the end of their calls in one transaction.

        The commit does not wait for the disk: only the server's own crash can undo it, with all that is in it, and then
        the calls are on their way again under their keys. Chunks that are stored already get their vectors only.
        """
        document = job.document
        tokens = [[estimate_tokens(chunk.content) for chunk in batch] for batch, _, _ in answered]
        with self._control.database.transaction(document.tenant_id) as connection:
            connection.execute(queries["commit_without_waiting"])
            is_there = connection.execute(queries["hold_document"], job.key).fetchone() is not None
            for (batch, call, embeddings), counts in zip(answered, tokens, strict=True):
                for usage in embeddings.usages if embedder.is_paid else ():
                    # It was paid for, whatever became of the document.
                    item = charge("embedding", usage, job.prices)
                    self._ledger.record(document.tenant_id, item, document_id=document.id, connection=connection)
                if call is not None:
                    call.finish(connection)
                if is_there and are_stored:
                    document_rows.set_vectors(connection, document, batch, embeddings.vectors, embedder.id)
                elif is_there:
                    document_rows.add_chunks(
                        connection, document, batch, embeddings.vectors, embedder.id, tokens=counts
                    )
            if is_there:
                connection.execute(queries["note_progress"], noted)
        if not is_there:
            raise DocumentGone


class DurableEmbedder:
    """Embeds like the one it wraps, in batches, each kept with its bill in one transaction until the cut is stored."""

    def __init__(
        self, embedder: Embedder, control: JobControl, ledger: Ledger, calls: PaidCalls, job: DocumentJob
    ) -> None:
        self.id = embedder.id
        self.provider = embedder.provider
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.default_threshold = embedder.default_threshold
        self.is_paid = embedder.is_paid
        self._embedder = embedder
        self._control = control
        self._ledger = ledger
        self._calls = calls
        self._job = job

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Embed what no earlier try has paid for. Raises `DocumentGone`, `JobInterrupted`, `ProviderError`s."""
        size = self._job.profile.embedding.embedding_batch_size
        batches = [(first, texts[first : first + size]) for first in range(0, len(texts), size)]
        vectors: FloatMatrix = np.empty((len(texts), self.dimensions), dtype=np.float32)
        missing = []
        for first, batch in batches:
            kept = self._kept(batch)
            if kept is None:
                missing.append((first, batch))
            else:
                vectors[first : first + len(batch)] = kept
        pause = self._job.profile.embedding.embedding_delay_ms / 1000
        usages: list[Usage] = []
        done, started = len(batches) - len(missing), time.monotonic()

        def call(numbered: tuple[int, Sequence[str]]) -> tuple[PaidCall, Embeddings]:
            _, batch = numbered
            if pause and numbered is not missing[0]:
                self._control.wait(pause)
            embed = partial(generate_embeddings_batch, batch, embedder=self._embedder, batch_size=len(batch))
            document = self._job.document
            return self._calls.make(
                document.tenant_id,
                document.id,
                "chunking",
                self._signature(batch),
                embed,
                wait=self._control.wait,
                expected=expected_embedding(self.provider, self.model, batch),
                document_id=document.id,
            )

        threads = 1 if pause else self._calls.threads
        made = in_parallel(call, missing, threads=threads, on_tick=self._control.stop_if_asked)
        for (first, batch), (paid, embeddings) in made:
            done += 1
            noted = progress(self._job, Step.CHUNK, done, len(batches), started)
            self._keep(batch, paid, embeddings, noted)
            started = time.monotonic()
            vectors[first : first + len(batch)] = embeddings.vectors
            usages.extend(embeddings.usages)
        return Embeddings(vectors=vectors, usages=tuple(usages))

    def _signature(self, batch: Sequence[str]) -> list[str]:
        # Apart from the calls for chunks: a chunk of one sentence is embedded with its title and section.
        return ["sentences", self.id, *batch]

    def _kept(self, batch: Sequence[str]) -> FloatMatrix | None:
        document = self._job.document
        parameters = {"document_id": document.id, "digest": digest_of(self._signature(batch))}
        found = self._control.database.fetch_value(document.tenant_id, "find_sentence_vectors", **parameters)
        return None if found is None else np.frombuffer(found, dtype="<f4").reshape(len(batch), self.dimensions)

    def _keep(self, batch: Sequence[str], paid: PaidCall, embeddings: Embeddings, noted: dict[str, Any]) -> None:
        document = self._job.document
        with self._control.database.transaction(document.tenant_id) as connection:
            is_there = connection.execute(queries["hold_document"], self._job.key).fetchone() is not None
            for usage in embeddings.usages:  # was paid for, whatever became of the document
                item = charge("chunking", usage, self._job.prices)
                self._ledger.record(document.tenant_id, item, document_id=document.id, connection=connection)
            paid.finish(connection)
            if is_there:
                vectors = embeddings.vectors.astype("<f4").tobytes()
                parameters = {**self._job.key, "digest": digest_of(self._signature(batch)), "vectors": vectors}
                connection.execute(queries["keep_sentence_vectors"], parameters)
                connection.execute(queries["note_progress"], noted)
        if not is_there:
            raise DocumentGone
