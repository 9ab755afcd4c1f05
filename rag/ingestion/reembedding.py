"""Move a collection to a different embedding model, while searches keep using the current vectors.

New vectors are stored in a table which no search reads. When all are stored, a single transaction swaps the vectors and
the collection's model. The old vectors are kept, to undo the move at no cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from pgvector import HalfVector
from psycopg import Connection

from rag.access.sessions import require_admin
from rag.errors import InvalidInput, NotFound, RagError
from rag.ingestion.document_jobs import TEMPORARY, DocumentGone, JobControl, find_collection
from rag.ingestion.document_rows import halfvecs
from rag.ingestion.embedding_batches import Batch, BatchEmbedder
from rag.ingestion.estimate import FIRST_SPREAD
from rag.money.durable_calls import Payer
from rag.money.ledger import Ledger
from rag.money.price_list import charge, price_overrides
from rag.profiles import profile_of
from rag.profiles.profile import Profile
from rag.providers import Embedder
from rag.providers.registry import Providers
from rag.retrieval.bm25.index import contextual_text, index_vectors
from rag.storage.database import Database, queries
from rag.types import Identity, Usage, Who


@dataclass(frozen=True, kw_only=True)
class Reembedding:
    """A collection's move to a different embedding model; a row in `reembeddings`.

    `estimated_cost` is in US dollars, `None` if no price is known.
    """

    id: UUID
    tenant_id: str
    collection_id: UUID
    from_model: str
    to_model: str
    status: str
    chunks_done: int
    chunks_total: int
    estimated_tokens: int
    estimated_cost: Decimal | None
    message: str
    created_at: datetime
    switched_at: datetime | None
    cleaned_at: datetime | None

    @property
    def is_open(self) -> bool:
        """Whether the move waits for confirmation, is running, or has failed."""
        return self.status in ("estimated", "running", "failed")

    @property
    def can_be_undone(self) -> bool:
        return self.status == "switched" and self.cleaned_at is None


def expected_range(cost: Decimal | None) -> tuple[Decimal | None, Decimal | None]:
    """Return the lowest and highest cost to expect for an estimate."""
    if cost is None:
        return None, None
    spread = Decimal(str(FIRST_SPREAD))
    return cost * (1 - spread), cost * (1 + spread)


class MoveCost(NamedTuple):
    """The size and cost of a move. `cost` is in US dollars, `None` if no price is known."""

    chunks: int
    tokens: int
    cost: Decimal | None


#: Placeholder for a vector the model does not give; a real direction has a length.
NO_VECTOR = HalfVector([0.0])


class MissingVector(NamedTuple):
    """A chunk which has no vector from the new model yet."""

    document_id: UUID
    title: str
    section: str
    content: str
    chunk_id: UUID
    chunk_index: int

    @property
    def text(self) -> str:
        return contextual_text(self.title, self.section, self.content)


class Reembeddings:
    """Estimates, confirms, cancels and undoes moves to a different embedding model. Changes need an administrator."""

    def __init__(self, database: Database, providers: Providers) -> None:
        self._database = database
        self._providers = providers

    def find(self, who: Who, *, collection_id: UUID | None = None) -> list[Reembedding]:
        """List the tenant's or a collection's moves, latest first."""
        return self._database.fetch_all(who, "find_reembeddings", Reembedding, id=None, collection_id=collection_id)

    def get(self, tenant_id: str, reembedding_id: UUID) -> Reembedding:
        """Return a move. Raises `NotFound`."""
        parameters = {"id": reembedding_id, "collection_id": None}
        reembedding = self._database.fetch_one(tenant_id, "find_reembeddings", Reembedding, **parameters)
        if reembedding is None:
            raise NotFound
        return reembedding

    def estimate(self, identity: Identity, collection_id: UUID, to_model: str) -> Reembedding:
        """Estimate and store the cost of a move. No money is spent before `confirm`.

        Vectors which are still stored for this model are free. Raises `SettingsError` for an unusable model, and
        `InvalidInput` if the collection already uses the model or a different move is open.
        """
        require_admin(identity)
        embedder = self._other_embedder(identity, collection_id, to_model)
        with self._database.transaction(identity) as connection:
            move = self._cost(connection, identity, collection_id, embedder)
            parameters = {"collection_id": collection_id, "to_model": embedder.id, **move._asdict()}
            row = connection.execute(queries["add_reembedding"], parameters).fetchone()
        if row is None:
            raise InvalidInput("This collection is being moved to another model already. Cancel this move first.")
        return self.get(identity.tenant_id, row[0])

    def cost_of(self, identity: Identity, collection_id: UUID, to_model: str) -> MoveCost:
        """Estimate like `estimate`, but without storing. Raises the same errors."""
        require_admin(identity)
        embedder = self._other_embedder(identity, collection_id, to_model)
        with self._database.transaction(identity) as connection:
            return self._cost(connection, identity, collection_id, embedder)

    def _other_embedder(self, identity: Identity, collection_id: UUID, to_model: str) -> Embedder:
        try:
            collection = find_collection(self._database, identity.tenant_id, collection_id)
        except DocumentGone as exc:
            raise NotFound from exc
        embedder = self._providers.embedder_for(to_model)
        if embedder.id == collection.embedding_model:
            raise InvalidInput(f"This collection already uses the search model {embedder.model}.")
        return embedder

    def _cost(self, connection: Connection, identity: Identity, collection_id: UUID, embedder: Embedder) -> MoveCost:
        parameters = {"collection_id": collection_id, "to_model": embedder.id}
        chunks, tokens = connection.execute(queries["count_chunks_to_reembed"], parameters).fetchone() or (0, 0)
        cost: Decimal | None = Decimal(0)
        if embedder.is_paid and chunks:
            usage = Usage(provider=embedder.provider, model=embedder.model, input_tokens=tokens)
            cost = charge("embedding", usage, price_overrides(self._database, identity.tenant_id)).cost
        return MoveCost(chunks, tokens, cost)

    def undo(self, identity: Identity, switched: Reembedding) -> Reembedding:
        """Estimate a move back to the old model. Only chunks added since the last move cost anything."""
        if not switched.can_be_undone:
            raise InvalidInput(
                "This move cannot be undone, because the search data of the old model has been removed. Start a new "
                "move to that model instead."
            )
        return self.estimate(identity, switched.collection_id, switched.from_model)

    def confirm(self, identity: Identity, reembedding_id: UUID, *, enqueue: bool = True) -> Reembedding:
        """Confirm the cost of a move, or retry a failed move. Queues the job."""
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            parameters = {"id": reembedding_id, "tenant_id": identity.tenant_id}
            if connection.execute(queries["begin_reembedding"], parameters).rowcount and enqueue:
                parameters["id"] = str(reembedding_id)
                connection.execute(queries["enqueue_reembedding"], parameters)
        return self.get(identity.tenant_id, reembedding_id)

    def cancel(self, identity: Identity, reembedding_id: UUID) -> None:
        """Cancel an incomplete move, and delete the new vectors."""
        require_admin(identity)
        reembedding = self.get(identity.tenant_id, reembedding_id)
        with self._database.transaction(identity) as connection:
            if connection.execute(queries["cancel_reembedding"], {"id": reembedding_id}).rowcount:
                _remove_vectors(connection, reembedding.collection_id, reembedding.to_model)

    def clean_up(self, identity: Identity, collection_id: UUID) -> None:
        """Delete the vectors of earlier models. Afterwards, the last move cannot be undone."""
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            for move in self.find(identity, collection_id=collection_id):
                if move.can_be_undone:
                    _remove_vectors(connection, collection_id, move.from_model)
            connection.execute(queries["clean_reembedding"], {"collection_id": collection_id})


def find_missing(connection: Connection, collection_id: UUID, to_model: str) -> list[MissingVector]:
    """Return the searchable chunks which have no vector from the new model, sorted by document."""
    parameters = {"collection_id": collection_id, "to_model": to_model}
    return [MissingVector(*row) for row in connection.execute(queries["chunks_to_reembed"], parameters)]


def batches_of(missing: Sequence[MissingVector], size: int) -> list[list[MissingVector]]:
    """Group chunks into batches, each with chunks from a single document, to which the call is charged.

    A batch repeated after an interruption is not charged again.
    """
    groups: dict[tuple[UUID, int], list[MissingVector]] = {}
    for chunk in missing:
        groups.setdefault((chunk.document_id, chunk.chunk_index // size), []).append(chunk)
    return list(groups.values())


def switch(connection: Connection, move: Reembedding) -> bool:
    """Swap vectors and model, in the caller's transaction. Returns `False` if vectors are missing."""
    parameters: dict[str, Any] = {"id": move.id, "collection_id": move.collection_id, "to_model": move.to_model}
    connection.execute(queries["lock_collection"], parameters)  # publishing waits until the vectors are exchanged
    is_missing = connection.execute(queries["has_chunks_to_reembed"], parameters).fetchone()
    if is_missing is not None and is_missing[0]:
        return False  # a document was published meanwhile
    connection.execute(queries["keep_old_vectors"], parameters)
    connection.execute(queries["take_new_vectors"], parameters)
    for (document_id,) in connection.execute(queries["documents_of_collection"], parameters).fetchall():
        index_vectors(connection, tenant_id=move.tenant_id, collection_id=move.collection_id, document_id=document_id)
    _remove_vectors(connection, move.collection_id, move.to_model)
    connection.execute(queries["set_embedding_model"], parameters)
    # If the new embedder compares words, passages get vectors of meaning too.
    connection.execute(queries["enqueue_meaning"], {**parameters, "tenant_id": move.tenant_id, "wait_seconds": 0.0})
    connection.execute(queries["finish_reembedding"], parameters)
    return True


def _remove_vectors(connection: Connection, collection_id: UUID, model: str) -> None:
    parameters = {"collection_id": collection_id, "embedding_model": model}
    connection.execute(queries["remove_spare_vectors"], parameters)


class ReembeddingJob:
    """Embeds a collection's chunks with a new model, then switches to the new vectors. Workers never share a move."""

    def __init__(
        self, control: JobControl, providers: Providers, ledger: Ledger, batch_embedder: BatchEmbedder
    ) -> None:
        self._control = control
        self._providers = providers
        self._ledger = ledger
        self._batch_embedder = batch_embedder
        self._moves = Reembeddings(control.database, providers)

    def run(self, tenant_id: str, reembedding_id: UUID) -> Reembedding:
        """Work on a move until searches use the new vectors.

        A permanent error is stored with the move. Raises `JobTaken`, `JobInterrupted`, and the errors in `TEMPORARY`,
        after which the job can be run again.
        """
        with self._control.claimed(tenant_id, reembedding_id):
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
        """Mark a move as failed, with a reason. Searches keep using the old vectors."""
        self._control.database.execute(tenant_id, "fail_reembedding", id=reembedding_id, message=sentence)

    def note_waiting(self, tenant_id: str, reembedding_id: UUID, sentence: str) -> None:
        """Store why a running move is waiting."""
        self._control.database.execute(tenant_id, "note_reembedding_waits", id=reembedding_id, message=sentence)

    def _work(self, move: Reembedding) -> None:
        database = self._control.database
        embedder = self._providers.embedder_for(move.to_model)
        collection = find_collection(database, move.tenant_id, move.collection_id)
        profile = profile_of(collection)
        try:
            while True:
                with database.transaction(move.tenant_id) as connection:
                    missing = find_missing(connection, move.collection_id, move.to_model)
                self._embed(move, missing, embedder, profile)
                with database.transaction(move.tenant_id) as connection:
                    if switch(connection, move):
                        break
            database.fetch_value(move.tenant_id, "drop_unused_indexes")
        finally:
            self._note_costs(move)

    def _embed(self, move: Reembedding, missing: Sequence[MissingVector], embedder: Embedder, profile: Profile) -> None:
        """Embed the missing chunks. Their vectors are stored separately from the vectors in use."""
        total = max(move.chunks_total, len(missing))
        done = total - len(missing)
        batches = [
            Batch(
                chunks,
                [chunk.text for chunk in chunks],
                Payer(move.tenant_id, move.id, document_id=chunks[0].document_id),
            )
            for chunks in batches_of(missing, profile.embedding.embedding_batch_size)
        ]
        pause_ms = profile.embedding.embedding_delay_ms
        for group in self._batch_embedder.embed(embedder, batches, pause_ms=pause_ms):
            done += sum(len(embedded.items) for embedded in group)
            rows = [
                {"chunk_id": chunk.chunk_id, "embedding_model": embedder.id, "embedding": vector or NO_VECTOR}
                for embedded in group
                for chunk, vector in zip(embedded.items, halfvecs(embedded.vectors), strict=True)
            ]
            with self._control.database.transaction(move.tenant_id) as connection, connection.cursor() as cursor:
                for embedded in group:
                    embedded.receipt.settle(connection)
                cursor.executemany(queries["add_spare_vector"], rows)
                cursor.execute(queries["note_reembedding"], {"id": move.id, "done": done, "total": total})
            # Check only now, to keep everything already paid for.
            self._control.stop_if_suspended(move.tenant_id)

    def _note_costs(self, move: Reembedding) -> None:
        parameters = {"collection_id": move.collection_id}
        with self._control.database.transaction(move.tenant_id) as connection:
            ids = [row[0] for row in connection.execute(queries["documents_of_collection"], parameters).fetchall()]
        for document_id in ids:
            self._ledger.note_document_costs(move.tenant_id, document_id)
