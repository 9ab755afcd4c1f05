"""The work of moving a collection to another embedding model; goes on where a killed process left it."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pgvector import HalfVector

from rag.errors import RagError
from rag.ingestion.paid_calls import PaidCall, PaidCalls, expected_embedding, note_costs
from rag.ingestion.parallel import in_parallel
from rag.ingestion.reembedding import MissingVector, Reembedding, Reembeddings, batches_of, find_missing, switch
from rag.ingestion.work import TEMPORARY, Bench, find_collection, price_overrides
from rag.money.ledger import Ledger
from rag.money.price_list import charge
from rag.profiles import Profile, profile_by_name, with_overrides
from rag.providers import Embedder
from rag.providers.embeddings import generate_embeddings_batch
from rag.providers.registry import Providers
from rag.storage.database import queries
from rag.types import Embeddings


class ReembeddingWork:
    """Makes the missing vectors, then switches. One move is worked on by one worker at a time."""

    def __init__(self, bench: Bench, providers: Providers, ledger: Ledger, calls: PaidCalls) -> None:
        self._bench = bench
        self._providers = providers
        self._ledger = ledger
        self._calls = calls
        self._moves = Reembeddings(bench.database, providers)

    def run(self, tenant_id: str, reembedding_id: UUID) -> Reembedding:
        """Work until the new vectors are searched. What cannot be mended by waiting is written to the move.

        Raises `WorkedOnElsewhere`, `WorkInterrupted`, and the errors of `TEMPORARY`, after which it can be run again.
        """
        with self._bench.claimed(tenant_id, reembedding_id):
            move = self._moves.get(tenant_id, reembedding_id)
            if move.status == "running":
                try:
                    self._work(move)
                except TEMPORARY:
                    raise
                except RagError as exc:
                    self.fail(tenant_id, reembedding_id, exc.message)
        return self._moves.get(tenant_id, reembedding_id)

    def fail(self, tenant_id: str, reembedding_id: UUID, sentence: str) -> None:
        """End a move with its reason; searches are on the old vectors."""
        self._bench.database.execute(tenant_id, "fail_reembedding", id=reembedding_id, message=sentence)

    def note_waiting(self, tenant_id: str, reembedding_id: UUID, sentence: str) -> None:
        """Say why a move that is under way waits."""
        self._bench.database.execute(tenant_id, "note_reembedding_waits", id=reembedding_id, message=sentence)

    def _work(self, move: Reembedding) -> None:
        database = self._bench.database
        embedder = self._providers.embedder_for(move.to_model)
        collection = find_collection(database, move.tenant_id, move.collection_id)
        profile = with_overrides(profile_by_name(collection.profile), collection.overrides)
        try:
            while True:
                with database.transaction(move.tenant_id) as connection:
                    missing = find_missing(connection, move.collection_id, move.to_model)
                self._embed(move, missing, embedder, profile)
                with database.transaction(move.tenant_id) as connection:
                    if switch(connection, move):
                        break
        finally:
            self._note_costs(move)

    def _embed(self, move: Reembedding, missing: Sequence[MissingVector], embedder: Embedder, profile: Profile) -> None:
        prices = price_overrides(self._bench.database, move.tenant_id)
        total = max(move.chunks_total, len(missing))
        done = total - len(missing)

        pause = profile.embedding_delay_ms / 1000

        def embed(numbered: tuple[int, list[MissingVector]]) -> tuple[PaidCall | None, Embeddings]:
            number, batch = numbered
            if number and pause:
                self._bench.wait(pause)
            texts = [chunk.text for chunk in batch]

            def call() -> Embeddings:
                return generate_embeddings_batch(texts, embedder=embedder, batch_size=len(texts))

            if not embedder.is_paid:
                return None, call()
            return self._calls.make(
                move.tenant_id,
                move.id,
                "embedding",
                [embedder.id, *texts],
                call,
                wait=self._bench.wait,
                expected=expected_embedding(embedder.provider, embedder.model, texts),
                document_id=batch[0].document_id,
            )

        threads = self._calls.threads if embedder.is_paid and not pause else 1
        batches = list(enumerate(batches_of(missing, profile.embedding_batch_size)))
        made = in_parallel(embed, batches, threads=threads, on_tick=self._bench.stop_if_asked)
        for (_, batch), (call, embeddings) in made:
            done += len(batch)
            with self._bench.database.transaction(move.tenant_id) as connection:
                for usage in embeddings.usages if embedder.is_paid else ():
                    item = charge("embedding", usage, prices)
                    self._ledger.record(move.tenant_id, item, document_id=batch[0].document_id, connection=connection)
                if call is not None:
                    call.finish(connection)
                with connection.cursor() as cursor:
                    rows = [
                        {"chunk_id": chunk.chunk_id, "embedding_model": embedder.id, "embedding": HalfVector(vector)}
                        for chunk, vector in zip(batch, embeddings.vectors, strict=True)
                    ]
                    cursor.executemany(queries["add_spare_vector"], rows)
                connection.execute(queries["note_reembedding"], {"id": move.id, "done": done, "total": total})
            # Only now: what has been paid for is kept.
            self._bench.stop_if_suspended(move.tenant_id)

    def _note_costs(self, move: Reembedding) -> None:
        parameters = {"collection_id": move.collection_id}
        with self._bench.database.transaction(move.tenant_id) as connection:
            ids = [row[0] for row in connection.execute(queries["documents_of_collection"], parameters).fetchall()]
        for document_id in ids:
            note_costs(self._bench.database, self._ledger, move.tenant_id, document_id)
