"""The step that makes vectors: in fixed batches, several in flight, each stored with its bill in one transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rag.ingestion import chunk_rows
from rag.ingestion.paid_calls import PaidCall, PaidCalls, expected_embedding
from rag.ingestion.parallel import groups_in_parallel
from rag.ingestion.work import Bench, DocumentGone, Work, hold, progress
from rag.money.ledger import Ledger
from rag.money.price_list import charge, estimate_tokens
from rag.providers import Embedder
from rag.providers.embeddings import generate_embeddings_batch
from rag.retrieval.keywords import contextual_text
from rag.storage.database import queries
from rag.types import Chunk, Embeddings, Step

Answered = tuple[Sequence[Chunk], PaidCall | None, Embeddings]


class EmbeddingStep:
    """Gives a document's chunks their vectors; those that are stored already cost nothing."""

    def __init__(self, bench: Bench, ledger: Ledger, calls: PaidCalls) -> None:
        self._bench = bench
        self._ledger = ledger
        self._calls = calls

    def run(self, work: Work, chunks: Sequence[Chunk], embedder: Embedder) -> None:
        """Embed what is missing. Raises `DocumentGone`, `WorkInterrupted`, `ProviderError`s; what is paid is kept."""
        document = work.document
        with self._bench.database.transaction(document.tenant_id) as connection:
            hold(connection, work)
            stored = chunk_rows.keep_embedded(connection, document, chunks, embedder.id)
        done = len(stored)
        self._bench.note_progress(work, Step.EMBED, done, len(chunks))
        size = work.profile.embedding_batch_size
        # The batches are the same whenever this runs, and each is stored whole: a call sent again is the same call.
        batches = [chunks[first : first + size] for first in range(0, len(chunks), size)]
        missing = [[chunk for chunk in batch if chunk.index not in stored] for batch in batches]
        started = time.monotonic()
        pause = work.profile.embedding_delay_ms / 1000

        def embed(numbered: tuple[int, Sequence[Chunk]]) -> tuple[PaidCall | None, Embeddings]:
            number, batch = numbered
            if number and pause:
                self._bench.wait(pause)
            return self._embed(work, batch, embedder)

        made = groups_in_parallel(
            embed,
            list(enumerate(batch for batch in missing if batch)),
            threads=self._calls.threads if embedder.is_paid and not pause else 1,
            on_tick=self._bench.stop_if_asked,
        )
        for group in made:
            answered = [(batch, call, embeddings) for (_, batch), (call, embeddings) in group]
            done += sum(len(batch) for batch, _, _ in answered)
            self._store(work, answered, embedder, progress(work, Step.EMBED, done, len(chunks), started))
            started = time.monotonic()

    def run_on_stored(self, work: Work, chunks: Sequence[Chunk], embedder: Embedder) -> None:
        """Give stored chunks that have none their vectors, in batches; what else is known of them stays.

        Raises as `run`.
        """
        size = work.profile.embedding_batch_size
        batches = [chunks[first : first + size] for first in range(0, len(chunks), size)]
        for number, batch in enumerate(batches):
            if number and work.profile.embedding_delay_ms:
                self._bench.wait(work.profile.embedding_delay_ms / 1000)
            started = time.monotonic()
            call, embeddings = self._embed(work, batch, embedder)
            noted = progress(work, Step.EMBED, number + 1, len(batches), started)
            self._store(work, [(batch, call, embeddings)], embedder, noted, are_stored=True)

    def _embed(self, work: Work, batch: Sequence[Chunk], embedder: Embedder) -> tuple[PaidCall | None, Embeddings]:
        texts = [contextual_text(work.document.title, chunk.section, chunk.content) for chunk in batch]

        def embed() -> Embeddings:
            return generate_embeddings_batch(texts, embedder=embedder, batch_size=len(texts))

        if not embedder.is_paid:
            return None, embed()
        document = work.document
        texts_and_model = [embedder.id, *texts]
        return self._calls.make(
            document.tenant_id,
            document.id,
            "embedding",
            texts_and_model,
            embed,
            wait=self._bench.wait,
            expected=expected_embedding(embedder.provider, embedder.model, texts),
            document_id=document.id,
        )

    def _store(
        self,
        work: Work,
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
        document = work.document
        tokens = [[estimate_tokens(chunk.content) for chunk in batch] for batch, _, _ in answered]
        with self._bench.database.transaction(document.tenant_id) as connection:
            connection.execute(queries["commit_without_waiting"])
            is_there = connection.execute(queries["hold_document"], work.key).fetchone() is not None
            for (batch, call, embeddings), counts in zip(answered, tokens, strict=True):
                for usage in embeddings.usages if embedder.is_paid else ():
                    # It was paid for, whatever became of the document.
                    item = charge("embedding", usage, work.prices)
                    self._ledger.record(document.tenant_id, item, document_id=document.id, connection=connection)
                if call is not None:
                    call.finish(connection)
                if is_there and are_stored:
                    chunk_rows.set_vectors(connection, document, batch, embeddings.vectors, embedder.id)
                elif is_there:
                    chunk_rows.add_chunks(connection, document, batch, embeddings.vectors, embedder.id, tokens=counts)
            if is_there:
                connection.execute(queries["note_progress"], noted)
        if not is_there:
            raise DocumentGone
