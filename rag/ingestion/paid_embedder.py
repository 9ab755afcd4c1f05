"""An embedder whose calls survive a kill: cutting by topic pays before there are chunks to keep vectors in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from rag.ingestion.paid_calls import PaidCall, PaidCalls, digest_of, expected_embedding
from rag.ingestion.parallel import in_parallel
from rag.ingestion.work import Bench, DocumentGone, Work, progress
from rag.money.ledger import Ledger
from rag.money.price_list import charge
from rag.providers import Embedder
from rag.providers.embeddings import generate_embeddings_batch
from rag.storage.database import queries
from rag.types import Embeddings, FloatMatrix, Step, Usage


class DurableEmbedder:
    """Embeds like the one it wraps, in batches, each kept with its bill in one transaction until the cut is stored."""

    def __init__(self, embedder: Embedder, bench: Bench, ledger: Ledger, calls: PaidCalls, work: Work) -> None:
        self.id = embedder.id
        self.provider = embedder.provider
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.default_threshold = embedder.default_threshold
        self.is_paid = embedder.is_paid
        self._embedder = embedder
        self._bench = bench
        self._ledger = ledger
        self._calls = calls
        self._work = work

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Embed what no earlier try has paid for. Raises `DocumentGone`, `WorkInterrupted`, `ProviderError`s."""
        size = self._work.profile.embedding_batch_size
        batches = [(first, texts[first : first + size]) for first in range(0, len(texts), size)]
        vectors: FloatMatrix = np.empty((len(texts), self.dimensions), dtype=np.float32)
        missing = []
        for first, batch in batches:
            kept = self._kept(batch)
            if kept is None:
                missing.append((first, batch))
            else:
                vectors[first : first + len(batch)] = kept
        pause = self._work.profile.embedding_delay_ms / 1000
        usages: list[Usage] = []
        done, started = len(batches) - len(missing), time.monotonic()

        def call(numbered: tuple[int, Sequence[str]]) -> tuple[PaidCall, Embeddings]:
            _, batch = numbered
            if pause and numbered is not missing[0]:
                self._bench.wait(pause)
            embed = partial(generate_embeddings_batch, batch, embedder=self._embedder, batch_size=len(batch))
            document = self._work.document
            return self._calls.make(
                document.tenant_id,
                document.id,
                "chunking",
                self._signature(batch),
                embed,
                wait=self._bench.wait,
                expected=expected_embedding(self.provider, self.model, batch),
                document_id=document.id,
            )

        threads = 1 if pause else self._calls.threads
        made = in_parallel(call, missing, threads=threads, on_tick=self._bench.stop_if_asked)
        for (first, batch), (paid, embeddings) in made:
            done += 1
            noted = progress(self._work, Step.CHUNK, done, len(batches), started)
            self._keep(batch, paid, embeddings, noted)
            started = time.monotonic()
            vectors[first : first + len(batch)] = embeddings.vectors
            usages.extend(embeddings.usages)
        return Embeddings(vectors=vectors, usages=tuple(usages))

    def _signature(self, batch: Sequence[str]) -> list[str]:
        # Apart from the calls for chunks: a chunk of one sentence is embedded with its title and section.
        return ["sentences", self.id, *batch]

    def _kept(self, batch: Sequence[str]) -> FloatMatrix | None:
        document = self._work.document
        parameters = {"document_id": document.id, "digest": digest_of(self._signature(batch))}
        found = self._bench.database.fetch_value(document.tenant_id, "find_sentence_vectors", **parameters)
        return None if found is None else np.frombuffer(found, dtype="<f4").reshape(len(batch), self.dimensions)

    def _keep(self, batch: Sequence[str], paid: PaidCall, embeddings: Embeddings, noted: dict[str, Any]) -> None:
        document = self._work.document
        with self._bench.database.transaction(document.tenant_id) as connection:
            is_there = connection.execute(queries["hold_document"], self._work.key).fetchone() is not None
            for usage in embeddings.usages:  # was paid for, whatever became of the document
                item = charge("chunking", usage, self._work.prices)
                self._ledger.record(document.tenant_id, item, document_id=document.id, connection=connection)
            paid.finish(connection)
            if is_there:
                vectors = embeddings.vectors.astype("<f4").tobytes()
                parameters = {**self._work.key, "digest": digest_of(self._signature(batch)), "vectors": vectors}
                connection.execute(queries["keep_sentence_vectors"], parameters)
                connection.execute(queries["note_progress"], noted)
        if not is_there:
            raise DocumentGone
