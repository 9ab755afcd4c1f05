"""The only ordering of the steps: extract, recognise, chunk, embed, tag, publish.

Each step is stored before the next begins, and each batch of vectors with its ledger rows in one transaction: a killed
process goes on where it was, and no chunk is paid for twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.errors import ProviderError
from rag.ingestion.chunking import chunk_document, chunks_from_spans, facts_of, figures_for, sizes_for
from rag.ingestion.embedding import EmbeddingStep
from rag.ingestion.estimate import amounts_to_json
from rag.ingestion.extracted import sections_from_json
from rag.ingestion.imports.passages import EXPORT_TYPE, chunks_from_bytes
from rag.ingestion.intake import find_pages
from rag.ingestion.messages import TAGS_WAIT, reading_message
from rag.ingestion.ocr import TextRecognition
from rag.ingestion.paid_calls import PaidCalls
from rag.ingestion.paid_embedder import DurableEmbedder
from rag.ingestion.posts.reading import PostReader
from rag.ingestion.publishing import publish
from rag.ingestion.reading import Reader
from rag.ingestion.recognise_step import RecogniseStep
from rag.ingestion.sandbox import Sandbox
from rag.ingestion.tag_step import TagStep
from rag.ingestion.work import WAITED_FOR, Bench, DocumentGone, ModelChanged, Work
from rag.money.ledger import Ledger
from rag.providers import Embedder
from rag.providers.registry import Providers
from rag.storage.database import queries
from rag.storage.files import Originals
from rag.types import Chunk, DocumentPage, DocumentStatus, Page, Section, Step

log = logging.getLogger("rag.ingestion")


class DocumentSteps:
    """Takes a document that is claimed from wherever it stands to where it waits for an admin, or is published."""

    def __init__(
        self,
        bench: Bench,
        files: Originals,
        providers: Providers,
        ledger: Ledger,
        calls: PaidCalls,
        sandbox: Sandbox,
        recognition: TextRecognition,
    ) -> None:
        self._bench = bench
        self._database = bench.database
        self._files = files
        self._providers = providers
        self._ledger = ledger
        self._calls = calls
        posts = PostReader(bench, providers, ledger, calls, sandbox)
        self._reader = Reader(bench, files, providers, sandbox, recognition.engine, posts)
        self._recognising = RecogniseStep(bench, files, recognition, ledger, calls)
        self._embedding = EmbeddingStep(bench, ledger, calls)
        self._tagging = TagStep(bench, providers, ledger, calls)

    def read(self, tenant_id: str, document_id: UUID) -> None:
        """Pages and estimate, where that is still to be done. Raises what is wrong with the file."""
        work = self._bench.work(tenant_id, document_id)
        if work.document.status == DocumentStatus.READING:
            self._reader.read(work)
        if work.document.is_synced:
            self._database.execute(tenant_id, "confirm_document", document_id=document_id)

    def process(self, tenant_id: str, document_id: UUID) -> None:
        """From a confirmed estimate to a document that is found; does nothing in any other state.

        A document whose tags are refused for the key or the money is found without them and has that step pending;
        the error, which is raised then, says so in `details["is_searchable"]`.
        """
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
        refused: ProviderError | None = None
        try:
            message = self._tagging.run(work, pages, sections)
        except WAITED_FOR as exc:
            refused, message = exc, TAGS_WAIT
        message = " ".join(filter(None, (reading_message(pages), message)))
        waits_for = Step.TAG if refused else None
        publish(self._bench, self._ledger, work, len(chunks), message, embedder.id, waits_for=waits_for)
        if refused is not None:
            refused.details["is_searchable"] = True
            raise refused

    def _note_facts(self, work: Work, chunks: Sequence[Chunk]) -> None:
        """What cutting found out about the document: searches are narrowed by it."""
        if facts := facts_of(chunks):
            tenant_id, facts_json = work.document.tenant_id, Jsonb(facts)
            self._database.execute(tenant_id, "note_metadata", **work.key, metadata=facts_json, message=None)

    def tag_again(self, tenant_id: str, document_id: UUID) -> None:
        """Tag a document that goes on answering meanwhile."""
        work = self._bench.work(tenant_id, document_id)
        if Step.TAG not in work.document.pending_steps:
            return
        pages, sections, _ = self._pages_of(work)
        try:
            message = self._tagging.run(work, pages, sections)
        except WAITED_FOR as exc:
            exc.details["is_searchable"] = True
            raise
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
        rows = find_pages(self._database, work.document.tenant_id, work.document.id)
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
        if work.document.mime_type == EXPORT_TYPE:
            return chunks_from_bytes(self._files.get(work.document.tenant_id, work.document.file_path))
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


def page_from_row(row: DocumentPage) -> Page:
    return Page(number=row.number, text=row.text, method=row.method, label=row.label, warnings=tuple(row.warnings))
