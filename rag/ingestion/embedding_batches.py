"""Embed texts in fixed batches, several in parallel.

All calls to a collection's embedder are made by `BatchEmbedder`: for chunks, for sentences when chunking by topic, and
for chunks when a collection moves to a different model. The built-in model, which runs without a key, is called in
`meaning.py` instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import numpy as np

from rag.ingestion.document_jobs import JobControl
from rag.ingestion.parallel import in_parallel
from rag.money.durable_calls import DurableCalls, DurableEmbedder, Payer, Receipt
from rag.providers import Embedder
from rag.providers.embeddings import setting_aside
from rag.types import FloatMatrix

Item = TypeVar("Item")
EmbeddingOperation = Literal["embedding", "chunking"]


@dataclass(frozen=True)
class Batch(Generic[Item]):
    """The items for an embedding call, with a text for each item, and the payer."""

    items: Sequence[Item]
    texts: Sequence[str]
    payer: Payer


@dataclass(frozen=True)
class EmbeddedBatch(Generic[Item]):
    """A batch with vectors, and the receipt to settle when the vectors are stored. A vector of NaN is missing."""

    items: Sequence[Item]
    texts: Sequence[str]
    vectors: FloatMatrix
    receipt: Receipt

    @property
    def set_aside(self) -> list[Item]:
        """Return the items without a vector."""
        missing = [bool(np.isnan(vector).any()) for vector in self.vectors]
        return [item for item, is_missing in zip(self.items, missing, strict=True) if is_missing]


class BatchEmbedder:
    """Embed batches, several in parallel. Thread-safe."""

    def __init__(self, control: JobControl, calls: DurableCalls) -> None:
        self._control = control
        self._calls = calls

    def embed(
        self,
        embedder: Embedder,
        batches: Sequence[Batch[Item]],
        *,
        pause_ms: int,
        operation: EmbeddingOperation = "embedding",
    ) -> Iterator[list[EmbeddedBatch[Item]]]:
        """Embed batches, and yield finished batches in groups. A group can be stored in a single transaction.

        With `pause_ms` above 0, calls run one after the other, across all documents. Raises `JobInterrupted` and
        `ProviderError` after the batches in progress were yielded.
        """

        def embed(batch: Batch[Item]) -> EmbeddedBatch[Item]:
            receipt = self._calls.receipt(batch.payer, operation, [embedder.id, *batch.texts])
            with setting_aside():
                embeddings = DurableEmbedder(embedder, receipt).embed(batch.texts, purpose="document")
            return EmbeddedBatch(batch.items, batch.texts, embeddings.vectors, receipt)

        def embed_after_pause(batch: Batch[Item]) -> EmbeddedBatch[Item]:
            with self._calls.gate.spaced(embedder.id, pause_ms / 1000, wait=self._control.wait):
                return embed(batch)

        threads = self._calls.threads if embedder.is_paid and not pause_ms else 1
        yield from in_parallel(
            embed_after_pause if pause_ms else embed, batches, threads=threads, on_tick=self._control.stop_if_asked
        )
