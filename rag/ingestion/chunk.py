"""Split a document into chunks, with the same result on every run.

Chunking by topic embeds sentences before any chunks are stored. With a paid model, the sentences' vectors are stored
until the chunks' positions are stored. If the process is killed, no sentence is paid for twice.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Literal

import numpy as np
from psycopg.types.json import Jsonb

from rag.errors import VectorUnusable
from rag.ingestion.chunking import chunk_document, facts_of, sizes_for
from rag.ingestion.document_jobs import DocumentGone, DocumentJob, JobControl, progress
from rag.ingestion.embedding_batches import Batch, BatchEmbedder, EmbeddedBatch
from rag.ingestion.passages import EXPORT_TYPE, chunks_from_bytes
from rag.providers import Embedder, EmbedderWrapper
from rag.storage.database import queries
from rag.storage.files import Originals
from rag.text.spans import chunks_from_spans
from rag.types import Chunk, Embeddings, FloatMatrix, Page, Section, Step


class ChunkStep:
    """The ingestion step which splits a document into chunks."""

    def __init__(self, control: JobControl, files: Originals, batch_embedder: BatchEmbedder) -> None:
        self._control = control
        self._files = files
        self._batch_embedder = batch_embedder

    def run(
        self, job: DocumentJob, pages: Sequence[Page], sections: Sequence[Section], embedder: Embedder
    ) -> list[Chunk]:
        """Split the text into chunks, and store their categories and years in the document's metadata, for search
        filters.

        Raises `DocumentGone` and, if the method is `semantic`, the errors from embedding.
        """
        document, database = job.document, self._control.database
        spans = database.fetch_value(document.tenant_id, "chunk_spans", **job.key)
        if spans is not None:
            chunks = chunks_from_spans(pages, sections, [(start, end) for start, end in spans])
        else:
            self._control.note_progress(job, Step.CHUNK, 0, 1)
            chunks = self._split(job, pages, sections, embedder)
        if facts := facts_of(chunks):
            database.execute(document.tenant_id, "note_metadata", **job.key, metadata=Jsonb(facts), message=None)
        return chunks

    def _split(
        self, job: DocumentJob, pages: Sequence[Page], sections: Sequence[Section], embedder: Embedder
    ) -> list[Chunk]:
        """Split a document's text into chunks.

        If chunking needed paid model calls, the chunk positions are stored, and a retry need not pay again.
        """
        document = job.document
        if document.mime_type == EXPORT_TYPE:
            return chunks_from_bytes(self._files.get(document.tenant_id, document.file_path))
        is_paid = document.chunking_method == "semantic" and embedder.is_paid
        chunks = chunk_document(
            pages,
            sections,
            method=document.chunking_method,
            embedder=SentenceEmbedder(embedder, self._control, self._batch_embedder, job) if is_paid else embedder,
            file_name=document.file_name,
            limits=job.profile.chunking,
            **sizes_for(job.profile, document.chunking_method),
        )
        if is_paid:
            spans = Jsonb([(chunk.start, chunk.end) for chunk in chunks])
            with self._control.database.transaction(document.tenant_id) as connection:
                connection.execute(queries["note_chunk_spans"], {**job.key, "spans": spans})
                connection.execute(queries["forget_sentence_vectors"], job.key)
        return chunks


class SentenceEmbedder(EmbedderWrapper):
    """An embedder for a document's sentences. Stores their vectors until the chunks' positions are stored."""

    def __init__(
        self, embedder: Embedder, control: JobControl, batch_embedder: BatchEmbedder, job: DocumentJob
    ) -> None:
        super().__init__(embedder)
        self._database = control.database
        self._batch_embedder = batch_embedder
        self._job = job

    def embed(self, texts: Sequence[str], *, purpose: Literal["document", "query"]) -> Embeddings:
        """Embed the texts. Batches embedded in an earlier attempt are read from the database.

        Raises `DocumentGone`, `JobInterrupted`, `ProviderError`.
        """
        embedding = self._job.profile.embedding
        size = embedding.embedding_batch_size
        vectors: FloatMatrix = np.empty((len(texts), self.dimensions), dtype=np.float32)
        missing: list[Batch[int]] = []
        batches = [range(first, min(first + size, len(texts))) for first in range(0, len(texts), size)]
        for places in batches:
            batch = Batch(places, texts[places.start : places.stop], self._job.payer)
            stored = self._find_stored(batch.texts)
            if stored is None:
                missing.append(batch)
            else:
                vectors[places.start : places.stop] = stored
        done, started = len(batches) - len(missing), time.perf_counter()
        for group in self._batch_embedder.embed(
            self._inner, missing, pause_ms=embedding.embedding_delay_ms, operation="chunking"
        ):
            done += len(group)
            self._keep(group, progress(self._job, Step.CHUNK, done, len(batches), started))
            started = time.perf_counter()
            for embedded in group:
                vectors[list(embedded.items)] = embedded.vectors
        return Embeddings(vectors=_fill_missing(vectors))

    def _digest(self, texts: Sequence[str]) -> str:
        return hashlib.sha256("\0".join(("sentences", self.id, *texts)).encode("utf-8", "replace")).hexdigest()

    def _find_stored(self, texts: Sequence[str]) -> FloatMatrix | None:
        document = self._job.document
        parameters = {"document_id": document.id, "digest": self._digest(texts)}
        content = self._database.fetch_value(document.tenant_id, "find_sentence_vectors", **parameters)
        return None if content is None else np.frombuffer(content, dtype="<f4").reshape(len(texts), self.dimensions)

    def _keep(self, group: Sequence[EmbeddedBatch[int]], noted: dict[str, object]) -> None:
        job = self._job
        with self._database.transaction(job.document.tenant_id) as connection:
            is_there = connection.execute(queries["hold_document"], job.key).fetchone() is not None
            for embedded in group:
                embedded.receipt.settle(connection)
                if is_there:
                    vectors = embedded.vectors.astype("<f4").tobytes()
                    parameters = {**job.key, "digest": self._digest(embedded.texts), "vectors": vectors}
                    connection.execute(queries["keep_sentence_vectors"], parameters)
            if is_there:
                connection.execute(queries["note_progress"], noted)
        if not is_there:
            raise DocumentGone


def _fill_missing(vectors: FloatMatrix) -> FloatMatrix:
    """Replace each missing sentence vector by the preceding usable vector, or by the first usable vector.

    Raises `VectorUnusable` if all vectors are missing.
    """
    usable = np.flatnonzero(~np.isnan(vectors).any(axis=1))
    if len(usable) == len(vectors):
        return vectors
    if not len(usable):
        raise VectorUnusable
    nearest = np.searchsorted(usable, np.arange(len(vectors)), side="right") - 1
    filled: FloatMatrix = vectors[usable[np.maximum(nearest, 0)]]
    return filled
