"""The only ordering of the steps: extract, estimate, chunk, embed, tag, publish.

Each step is stored before the next begins, and each batch of vectors with its ledger rows in one transaction: a killed
process goes on where it was, and no chunk is paid for twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.database import Database, queries
from rag.errors import DatabaseUnavailable, DocumentError, NoTextInPdf, RagError, WorkKeepsDying
from rag.files import Originals
from rag.ingestion.chunking import chunk_document, chunks_from_spans, facts_of, figures_for, sizes_for
from rag.ingestion.embedding import EmbeddingStep
from rag.ingestion.estimate import amounts_to_json
from rag.ingestion.extracted import sections_from_json
from rag.ingestion.file_removals import FileRemovals
from rag.ingestion.intake import add_document
from rag.ingestion.messages import reading_message
from rag.ingestion.ocr import text_recognition
from rag.ingestion.paid_calls import PaidCalls
from rag.ingestion.paid_embedder import DurableEmbedder
from rag.ingestion.posts.reading import PostReader
from rag.ingestion.publishing import publish
from rag.ingestion.reading import Reader
from rag.ingestion.recognise_step import RecogniseStep
from rag.ingestion.reembedding_work import ReembeddingWork
from rag.ingestion.sandbox import Sandbox, sandbox_for
from rag.ingestion.tag_step import TagStep
from rag.ingestion.work import (
    TEMPORARY,
    Bench,
    DocumentGone,
    ModelChanged,
    Work,
    WorkedOnElsewhere,
    WorkInterrupted,
)
from rag.providers import Embedder
from rag.providers.call_gate import CallGate
from rag.providers.registry import Providers
from rag.records.ledger import Ledger
from rag.settings import Settings
from rag.types import (
    Chunk,
    ChunkingMethod,
    Collection,
    DocumentPage,
    DocumentStatus,
    Identity,
    Page,
    PdfType,
    ProcessingResult,
    Section,
    Step,
)

__all__ = ["TEMPORARY", "Processor", "WorkInterrupted", "WorkedOnElsewhere"]

log = logging.getLogger("rag.ingestion")
#: Beginnings without any progress after which a document is quarantined: its file seems to end the process each time.
MAXIMUM_STARTS = 8


class Processor:
    """Takes documents through their steps. Thread-safe; one document is worked on by one worker at a time."""

    def __init__(
        self,
        database: Database,
        files: Originals,
        providers: Providers,
        ledger: Ledger,
        settings: Settings,
        *,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._database = database
        self._files = files
        self._providers = providers
        self._ledger = ledger
        self.settings = settings
        self.sandbox = sandbox or sandbox_for(settings)
        self._bench = Bench(database)
        calls = self._calls = PaidCalls(database, CallGate())
        self.recognition = text_recognition(settings, self.sandbox)
        posts = PostReader(self._bench, providers, ledger, calls, self.sandbox)
        self._reader = Reader(self._bench, files, providers, self.sandbox, self.recognition.engine, posts)
        self._recognising = RecogniseStep(self._bench, files, self.recognition, ledger, calls)
        self._embedding = EmbeddingStep(self._bench, ledger, calls)
        self._tagging = TagStep(self._bench, providers, ledger, calls)
        self._removals = FileRemovals(database, files)
        self.reembedding = ReembeddingWork(self._bench, providers, ledger, calls)

    def run(self, tenant_id: str, document_id: UUID) -> None:
        """Do the steps from wherever the document stands, until it is done or waits for an admin.

        What is wrong with the document is written to it. Raises `WorkedOnElsewhere`, `WorkInterrupted`, and the errors
        of `TEMPORARY`, after which it can be run again.
        """
        with self._bench.claimed(tenant_id, document_id):
            try:
                self._note_start(tenant_id, document_id)
                self._read(tenant_id, document_id)
                self._process(tenant_id, document_id)
                self._tag_again(tenant_id, document_id)
                self._database.execute(tenant_id, "note_orderly_end", document_id=document_id)
            except DocumentGone:
                log.info("Document %s was deleted while it was processed", document_id)
            except (WorkInterrupted, *TEMPORARY) as exc:
                if not isinstance(exc, DatabaseUnavailable):
                    self._database.execute(tenant_id, "note_orderly_end", document_id=document_id)
                raise
            except RagError as exc:
                self.mark_failed(tenant_id, document_id, exc.message)
            except Exception:
                log.exception("Processing document %s failed", document_id)
                self.mark_failed(tenant_id, document_id, str(RagError()))

    def process_document(
        self,
        *,
        file: bytes,
        file_name: str,
        tenant_id: str,
        collection: Collection,
        identity: Identity | None = None,
        chunking_method: ChunkingMethod = "smart",
        generate_metadata: bool = True,
        password: str | None = None,
        pdf_type: PdfType = "auto",
    ) -> ProcessingResult:
        """Take a file through the whole pipeline, without asking, and return when it is searchable.

        Raises `DocumentError`s and `ProviderError`s; a document that was stored stays listed as failed.
        """
        document_id = add_document(
            self._database,
            self._files,
            self.sandbox,
            collection,
            file_name,
            file,
            password=password,
            chunking_method=chunking_method,
            generate_metadata=generate_metadata,
            pdf_type=pdf_type,
            added_by=identity,
            queue=None,
        )
        return self.process_stored(tenant_id, document_id)

    def process_stored(self, tenant_id: str, document_id: UUID) -> ProcessingResult:
        """Take a stored document through what is left of the pipeline, without asking; raises as `process_document`."""
        with self._bench.claimed(tenant_id, document_id):
            try:
                self._read(tenant_id, document_id)
                self._database.execute(tenant_id, "confirm_document", document_id=document_id)
                self._process(tenant_id, document_id)
            except RagError as exc:
                self.mark_failed(tenant_id, document_id, exc.message)
                raise
        document = self._bench.work(tenant_id, document_id).document
        if document.status == DocumentStatus.NEEDS_OCR:
            raise NoTextInPdf(document.message)
        if document.status == DocumentStatus.FAILED:
            raise DocumentError(document.message)
        return ProcessingResult(
            document_id=document_id,
            chunk_count=document.chunk_count,
            processing_time=document.processing_ms,
            costs=self._ledger.document_costs(tenant_id, document_id),
        )

    def remove_files(self, tenant_id: str) -> int:
        """Remove the originals of deleted documents; how many wait for another try."""
        with self._bench.claimed(tenant_id, f"files {tenant_id}"):
            return self._removals.run(tenant_id)

    def mark_failed(self, tenant_id: str, document_id: UUID, sentence: str) -> None:
        """End the work on a document with its reason."""
        self._database.execute(tenant_id, "mark_failed", document_id=document_id, message=sentence)

    def note_message(self, tenant_id: str, document_id: UUID, sentence: str) -> None:
        """Say something about a document that is still being worked on."""
        self._database.execute(tenant_id, "note_message", document_id=document_id, message=sentence)

    @property
    def bench(self) -> Bench:
        """Where work is claimed, and told to stop."""
        return self._bench

    def interrupt(self) -> None:
        """Have all work end at its next durable point, at once where a file is being read."""
        self._bench.stop()
        self.sandbox.interrupt()

    def resume(self) -> None:
        """Work again after `interrupt`."""
        self._bench.resume()

    def close(self) -> None:
        """End the processes that read files."""
        self.interrupt()
        self.sandbox.close()
        self.recognition.close()

    # Processing

    def _read(self, tenant_id: str, document_id: UUID) -> None:
        work = self._bench.work(tenant_id, document_id)
        if work.document.status == DocumentStatus.READING:
            self._reader.read(work)
        if work.document.is_synced:
            self._database.execute(tenant_id, "confirm_document", document_id=document_id)

    def _process(self, tenant_id: str, document_id: UUID) -> None:
        while True:
            try:
                self._process_once(tenant_id, document_id)
                return
            except ModelChanged:
                log.info("Document %s is embedded again: its collection changed its model", document_id)

    def _process_once(self, tenant_id: str, document_id: UUID) -> None:
        work = self._bench.work(tenant_id, document_id)
        if work.document.status != DocumentStatus.PROCESSING:
            return
        read, sections, spans = self._pages_of(work)
        pages, sections = self._recognising.run(work, read, sections)
        embedder = self._providers.embedder_for(work.collection.embedding_model)
        chunks = self._chunk(work, pages, sections, spans, embedder)
        self._note_facts(work, chunks)
        self._embedding.run(work, chunks, embedder)
        message = self._tagging.run(work, pages, sections)
        message = " ".join(filter(None, (reading_message(pages), message)))
        publish(self._bench, self._ledger, work, len(chunks), message, embedder.id)

    def _note_facts(self, work: Work, chunks: Sequence[Chunk]) -> None:
        """What cutting found out about the document: searches are narrowed by it."""
        if facts := facts_of(chunks):
            tenant_id, facts_json = work.document.tenant_id, Jsonb(facts)
            self._database.execute(tenant_id, "note_metadata", **work.key, metadata=facts_json, message=None)

    def _tag_again(self, tenant_id: str, document_id: UUID) -> None:
        """Tag a document that goes on answering meanwhile."""
        work = self._bench.work(tenant_id, document_id)
        if Step.TAG not in work.document.pending_steps:
            return
        pages, sections, _ = self._pages_of(work)
        message = self._tagging.run(work, pages, sections)
        costs = self._ledger.document_costs(tenant_id, document_id)
        self._database.execute(
            tenant_id,
            "finish_step",
            **work.key,
            step=Step.TAG,
            message=" ".join(filter(None, (reading_message(pages), message))),
            costs=Jsonb(amounts_to_json(costs)),
        )

    def _pages_of(self, work: Work) -> tuple[list[Page], tuple[Section, ...], Sequence[tuple[int, int]] | None]:
        """Pages and sections as they were read, and where a paid cut has cut."""
        rows = self._database.fetch_all(work.document.tenant_id, "find_pages", DocumentPage, **work.key)
        with self._database.transaction(work.document.tenant_id) as connection:
            found = connection.execute(queries["document_work"], work.key).fetchone()
        if found is None:
            raise DocumentGone
        return [page_from_row(row) for row in rows], tuple(sections_from_json(found[0])), found[1]

    def _chunk(
        self,
        work: Work,
        pages: Sequence[Page],
        sections: Sequence[Section],
        spans: Sequence[tuple[int, int]] | None,
        embedder: Embedder,
    ) -> list[Chunk]:
        """The same chunks whenever it runs; where cutting costs money, the cut is stored."""
        if spans is not None:
            return chunks_from_spans(pages, sections, [(start, end) for start, end in spans])
        self._bench.note_progress(work, Step.CHUNK, 0, 1)
        method = work.document.chunking_method
        is_paid = method == "semantic" and embedder.is_paid
        chunks = chunk_document(
            pages,
            sections,
            method=method,
            embedder=DurableEmbedder(embedder, self._bench, self._ledger, self._calls, work) if is_paid else embedder,
            file_name=work.document.file_name,
            figures=figures_for(work.profile),
            **sizes_for(work.profile, method),
        )
        if is_paid:
            spans_json = Jsonb([(chunk.start, chunk.end) for chunk in chunks])
            with self._database.transaction(work.document.tenant_id) as connection:
                connection.execute(queries["note_chunk_spans"], {**work.key, "spans": spans_json})
                connection.execute(queries["forget_sentence_vectors"], work.key)
        return chunks

    def _note_start(self, tenant_id: str, document_id: UUID) -> None:
        """Count that work begins. Raises `WorkKeepsDying` for a document that keeps taking its process with it."""
        if (self._database.fetch_value(tenant_id, "note_start", document_id=document_id) or 0) > MAXIMUM_STARTS:
            raise WorkKeepsDying


def page_from_row(row: DocumentPage) -> Page:
    return Page(number=row.number, text=row.text, method=row.method, label=row.label, warnings=tuple(row.warnings))
