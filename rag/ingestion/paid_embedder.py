"""An embedder whose calls go to the ledger as they are made: for cutting by topic, before there are any chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from rag.embeddings import embedding_batches
from rag.prices import charge
from rag.providers import Embedder
from rag.records.ledger import Ledger
from rag.types import Document, Embeddings, Usage


class LedgerEmbedder:
    """Embeds like the one it wraps, in batches, each charged to a document."""

    def __init__(
        self,
        embedder: Embedder,
        ledger: Ledger,
        document: Document,
        prices: Mapping[str, Any],
        *,
        batch_size: int,
        before_batch: Callable[[], None],
    ) -> None:
        self.id = embedder.id
        self.provider = embedder.provider
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.default_threshold = embedder.default_threshold
        self.is_paid = embedder.is_paid
        self._embedder = embedder
        self._ledger = ledger
        self._document = document
        self._prices = prices
        self._batch_size = batch_size
        self._before_batch = before_batch

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Embed in batches; what was paid for before an error is in the ledger."""
        vectors = [np.empty((0, self.dimensions), dtype=np.float32)]
        usages: list[Usage] = []
        self._before_batch()
        for made in embedding_batches(texts, embedder=self._embedder, batch_size=self._batch_size, purpose=purpose):
            for usage in made.usages if self.is_paid else ():
                item = charge("embedding", usage, self._prices)
                self._ledger.record(self._document.tenant_id, item, document_id=self._document.id)
            vectors.append(made.vectors)
            usages.extend(made.usages)
            self._before_batch()
        return Embeddings(vectors=np.concatenate(vectors), usages=tuple(usages))
