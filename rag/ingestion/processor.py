"""The only ordering of the steps: extract, estimate, chunk, embed, tag, publish.

Each step is stored before the next begins, and each batch of vectors with its ledger rows in one transaction: a killed
process goes on where it was, and no chunk is paid for twice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.database import Database, queries
from rag.embeddings import generate_embeddings_batch
from rag.errors import (
    DatabaseUnavailable,
    NoTextInPdf,
    ProviderError,
    ProviderQuotaExhausted,
    ProviderUnavailable,
    RagError,
)
from rag.files import FileStore
from rag.ingestion import chunk_rows
from rag.ingestion.chunking import chunk_document, chunks_from_spans, join_pages, sizes_for
from rag.ingestion.estimate import amounts_to_json, estimate_costs
from rag.ingestion.extracted import ExtractedPdf, sections_from_json
from rag.ingestion.intake import add_document, find_documents
from rag.ingestion.messages import no_text_message, reading_message
from rag.ingestion.paid_embedder import LedgerEmbedder
from rag.ingestion.sandbox import Sandbox, sandbox_for
from rag.ingestion.tagging import questions_from_sections, tag_document
from rag.ingestion.titles import title_from_metadata
from rag.prices import charge
from rag.profiles import Profile, profile_by_name, with_overrides
from rag.providers import Embedder
from rag.providers.registry import Providers
from rag.records.ledger import Ledger
from rag.retrieval.keywords import contextual_text, index_document
from rag.retrieval.query_analysis import detect_language, detect_language_heuristic
from rag.settings import Settings
from rag.types import (
    Chunk,
    ChunkingMethod,
    Collection,
    Document,
    DocumentPage,
    DocumentStatus,
    Identity,
    Page,
    ProcessingResult,
    Section,
    Step,
)

log = logging.getLogger("rag.ingestion")
#: Worth another try later: nothing is wrong with the document.
TEMPORARY = (ProviderUnavailable, ProviderQuotaExhausted, DatabaseUnavailable)
#: Progress is written at most this often, in seconds.
PROGRESS_SECONDS = 0.3
#: Characters below which a text is too short to tell its language by statistics.
SHORT_TEXT = 400


class WorkInterrupted(Exception):
    """The application stops; the work goes on at its next start."""


class WorkedOnElsewhere(Exception):
    """Another worker has this document."""


class DocumentGone(Exception):
    """The document was deleted while it was worked on."""


@dataclass(frozen=True)
class Work:
    """One document with what its steps need."""

    document: Document
    collection: Collection
    profile: Profile
    prices: Mapping[str, Any]

    @property
    def key(self) -> dict[str, Any]:
        return {"document_id": self.document.id}


class Processor:
    """Takes documents through their steps. Thread-safe; one document is worked on by one worker at a time."""

    def __init__(
        self,
        database: Database,
        files: FileStore,
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
        self._stopping = threading.Event()

    def run(self, tenant_id: str, document_id: UUID) -> None:
        """Do the steps from wherever the document stands, until it is done or waits for an admin.

        What is wrong with the document is written to it. Raises `WorkedOnElsewhere`, `WorkInterrupted`, and the errors
        of `TEMPORARY`, after which it can be run again.
        """
        with self._claimed(tenant_id, document_id):
            try:
                self._read(tenant_id, document_id)
                self._process(tenant_id, document_id)
            except DocumentGone:
                log.info("Document %s was deleted while it was processed", document_id)
            except (WorkInterrupted, *TEMPORARY):
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
    ) -> ProcessingResult:
        """Take a PDF through the whole pipeline, without asking, and return when it is searchable.

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
            added_by=identity.account_id if identity else None,
            queue=None,
        )
        with self._claimed(tenant_id, document_id):
            try:
                self._read(tenant_id, document_id)
                self._database.execute(tenant_id, "confirm_document", document_id=document_id)
                self._process(tenant_id, document_id)
            except RagError as exc:
                self.mark_failed(tenant_id, document_id, exc.message)
                raise
        document = self._work(tenant_id, document_id).document
        if document.status == DocumentStatus.NEEDS_OCR:
            raise NoTextInPdf
        return ProcessingResult(
            document_id=document_id,
            chunk_count=document.chunk_count,
            processing_time=document.processing_ms,
            costs=self._ledger.document_costs(tenant_id, document_id),
        )

    def mark_failed(self, tenant_id: str, document_id: UUID, sentence: str) -> None:
        """End the work on a document with its reason."""
        self._database.execute(tenant_id, "mark_failed", document_id=document_id, message=sentence)

    def note_message(self, tenant_id: str, document_id: UUID, sentence: str) -> None:
        """Say something about a document that is still being worked on."""
        self._database.execute(tenant_id, "note_message", document_id=document_id, message=sentence)

    def interrupt(self) -> None:
        """Have all work end at its next durable point, at once where a file is being read."""
        self._stopping.set()
        self.sandbox.interrupt()

    def resume(self) -> None:
        """Work again after `interrupt`."""
        self._stopping.clear()

    def close(self) -> None:
        """End the processes that read files."""
        self.interrupt()
        self.sandbox.close()

    # Reading

    def _read(self, tenant_id: str, document_id: UUID) -> None:
        work = self._work(tenant_id, document_id)
        if work.document.status != DocumentStatus.READING:
            return
        started = time.monotonic()
        content = self._files.get(tenant_id, work.document.file_path)
        told = 0.0

        def tell(done: int, total: int) -> None:
            nonlocal told
            self._stop_if_asked()
            if time.monotonic() - told >= PROGRESS_SECONDS:
                told = time.monotonic()
                self._note_progress(work, Step.EXTRACT, done, total)

        try:
            extracted = self.sandbox.load(content, file_name=work.document.file_name, on_page=tell)
        except RagError:
            self._stop_if_asked()  # the sandbox was ended with the application, not by the file
            raise
        self._store_reading(work, extracted, started)

    def _store_reading(self, work: Work, extracted: ExtractedPdf, started: float) -> None:
        """Pages, sections, language and estimate in one transaction."""
        pages, document = extracted.pages, work.document
        text = join_pages(pages)
        language = _language_of(text, extracted.language or work.collection.language)
        title = title_from_metadata(extracted.title)
        empty = [page.number for page in pages if not page.text.strip()]
        has_text = len(empty) < len(pages)
        estimate = self._estimate(work, title or document.title, extracted) if has_text else None
        with self._database.transaction(document.tenant_id) as connection:
            _hold(connection, work)
            connection.execute(queries["remove_pages"], work.key)
            chunk_rows.add_pages(connection, document, [_with_language(page, language) for page in pages])
            connection.execute(
                queries["finish_reading"],
                {
                    **work.key,
                    "status": DocumentStatus.ESTIMATED if has_text else DocumentStatus.NEEDS_OCR,
                    "message": reading_message(pages) if has_text else no_text_message(pages),
                    "title": title or None,
                    "page_count": len(pages),
                    "empty_pages": empty,
                    "character_count": sum(len(page.text) for page in pages),
                    "language": language,
                    "estimate": Jsonb(estimate) if estimate else None,
                    "metadata": Jsonb(
                        {
                            "sections": [vars(section) for section in extracted.sections],
                            **({"author": extracted.author[:200]} if extracted.author.strip() else {}),
                            **extracted.metadata,
                        }
                    ),
                    "elapsed_ms": _ms_since(started),
                },
            )

    def _estimate(self, work: Work, title: str, extracted: ExtractedPdf) -> dict[str, Any]:
        # Where a semantic cut will fall is known only after paying for it; a smart one gives about as many chunks.
        wanted = work.document.chunking_method
        method: ChunkingMethod = "smart" if wanted == "semantic" else wanted
        chunks = chunk_document(
            extracted.pages,
            extracted.sections,
            method=method,
            file_name=work.document.file_name,
            **sizes_for(work.profile, method),
        )
        tagger = self._providers.translation_model_for(work.profile) if work.document.generate_metadata else None
        return amounts_to_json(
            estimate_costs(
                title,
                join_pages(extracted.pages),
                len(extracted.pages),
                chunks,
                method=work.document.chunking_method,
                embedder=self._providers.embedder_for(work.collection.embedding_model),
                tagger=tagger,
                prices=work.prices,
            )
        )

    # Processing

    def _process(self, tenant_id: str, document_id: UUID) -> None:
        work = self._work(tenant_id, document_id)
        if work.document.status != DocumentStatus.PROCESSING:
            return
        pages = [_page(row) for row in self._database.fetch_all(tenant_id, "find_pages", DocumentPage, **work.key)]
        with self._database.transaction(tenant_id) as connection:
            row = connection.execute(queries["document_work"], work.key).fetchone()
        if row is None:
            raise DocumentGone
        sections, spans = sections_from_json(row[0]), row[1]
        embedder = self._providers.embedder_for(work.collection.embedding_model)
        chunks = self._chunk(work, pages, sections, spans, embedder)
        self._embed(work, chunks, embedder)
        message = self._tag(work, pages, sections)
        self._publish(work, len(chunks), " ".join(filter(None, (reading_message(pages), message))))

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
        self._note_progress(work, Step.CHUNK, 0, 1)
        method = work.document.chunking_method
        paid = LedgerEmbedder(
            embedder, self._ledger, work.document, work.prices, batch_size=work.profile.embedding_batch_size,
            before_batch=self._stop_if_asked,
        )  # fmt: skip
        chunks = chunk_document(
            pages,
            sections,
            method=method,
            embedder=paid,
            file_name=work.document.file_name,
            **sizes_for(work.profile, method),
        )
        if method == "semantic" and embedder.is_paid:
            spans_json = Jsonb([(chunk.start, chunk.end) for chunk in chunks])
            self._database.execute(work.document.tenant_id, "note_chunk_spans", **work.key, spans=spans_json)
        return chunks

    def _embed(self, work: Work, chunks: Sequence[Chunk], embedder: Embedder) -> None:
        document = work.document
        with self._database.transaction(document.tenant_id) as connection:
            _hold(connection, work)
            done = chunk_rows.keep_embedded(connection, document, chunks, embedder.id)
        missing = [chunk for chunk in chunks if chunk.index not in done]
        size = work.profile.embedding_batch_size
        self._note_progress(work, Step.EMBED, len(done), len(chunks))
        for first in range(0, len(missing), size):
            if first and work.profile.embedding_delay_ms:
                self._stopping.wait(work.profile.embedding_delay_ms / 1000)
            self._stop_if_asked()
            started = time.monotonic()
            batch = missing[first : first + size]
            texts = [contextual_text(document.title, chunk.section, chunk.content) for chunk in batch]
            embeddings = generate_embeddings_batch(texts, embedder=embedder, batch_size=size)
            charges = [charge("embedding", usage, work.prices) for usage in embeddings.usages if embedder.is_paid]
            with self._database.transaction(document.tenant_id) as connection:
                is_there = connection.execute(queries["hold_document"], work.key).fetchone() is not None
                for item in charges:  # was paid for, whatever became of the document
                    self._ledger.record(document.tenant_id, item, document_id=document.id, connection=connection)
                if is_there:
                    chunk_rows.add_chunks(connection, document, batch, embeddings.vectors, embedder.id)
                    progress = _progress(work, Step.EMBED, len(done) + first + len(batch), len(chunks), started)
                    connection.execute(queries["note_progress"], progress)
            if not is_there:
                raise DocumentGone

    def _tag(self, work: Work, pages: Sequence[Page], sections: Sequence[Section]) -> str:
        """Write what the document is about; a sentence for the admin where that did not work."""
        self._stop_if_asked()
        document = work.document
        if self._database.fetch_value(document.tenant_id, "has_metadata", **work.key):
            return ""
        self._note_progress(work, Step.TAG, 0, 1)
        started = time.monotonic()
        text = join_pages(pages)
        language = document.language or work.collection.language
        questions = questions_from_sections(document.title, sections, text, language)
        metadata: dict[str, Any] = {"suggested_questions": questions}
        model = self._providers.translation_model_for(work.profile) if document.generate_metadata else None
        usage, message = None, ""
        if model is not None:
            try:
                tags, usage = tag_document(model, document.title, text)
            except ProviderError as exc:
                tags, message = {}, f"It could not be tagged: {exc.message}"
            else:
                message = "" if tags else "It could not be tagged: the model's answer was not usable."
            metadata |= tags
        with self._database.transaction(document.tenant_id) as connection:
            connection.execute(queries["note_metadata"], {**work.key, "metadata": Jsonb(metadata), "message": None})
            if usage is not None:
                item = charge("tagging", usage, work.prices)
                self._ledger.record(document.tenant_id, item, document_id=document.id, connection=connection)
            connection.execute(queries["note_progress"], _progress(work, Step.TAG, 1, 1, started))
        return message

    def _publish(self, work: Work, chunk_count: int, message: str) -> None:
        """Make the document searchable: status, counts, costs and keywords in one transaction."""
        self._stop_if_asked()
        started = time.monotonic()
        self._note_progress(work, Step.PUBLISH, 0, 1)
        document = work.document
        costs = self._ledger.document_costs(document.tenant_id, document.id)
        with self._database.transaction(document.tenant_id) as connection:
            _hold(connection, work)
            index_document(
                connection,
                tenant_id=document.tenant_id,
                collection_id=document.collection_id,
                document_id=document.id,
            )
            connection.execute(
                queries["publish_document"],
                {**work.key, "chunk_count": chunk_count, "message": message, "elapsed_ms": _ms_since(started)},
            )
            connection.execute(queries["note_costs"], {**work.key, "costs": Jsonb(amounts_to_json(costs))})

    # Shared

    @contextmanager
    def _claimed(self, tenant_id: str, document_id: UUID) -> Iterator[None]:
        """Hold the document's lock. It lasts as long as a transaction, so it ends with the process, however it ends."""
        with self._database.transaction(tenant_id) as connection:
            got = connection.execute(queries["claim_document"], {"document_id": str(document_id)}).fetchone()
            if not got or not got[0]:
                raise WorkedOnElsewhere
            yield

    def _work(self, tenant_id: str, document_id: UUID) -> Work:
        found = find_documents(self._database, tenant_id, document_id=document_id)
        if not found:
            raise DocumentGone
        collections = self._database.fetch_all(
            tenant_id,
            "find_collections",
            Collection,
            collection_id=found[0].collection_id,
            collection_name=None,
        )
        profile = with_overrides(profile_by_name(collections[0].profile), collections[0].overrides)
        settings = self._database.fetch_value(tenant_id, "tenant_settings") or {}
        return Work(found[0], collections[0], profile, settings.get("prices") or {})

    def _note_progress(self, work: Work, step: Step, done: int, total: int) -> None:
        self._database.execute(work.document.tenant_id, "note_progress", **_progress(work, step, done, total, None))

    def _stop_if_asked(self) -> None:
        if self._stopping.is_set():
            raise WorkInterrupted


def _hold(connection: Connection, work: Work) -> None:
    if connection.execute(queries["hold_document"], work.key).fetchone() is None:
        raise DocumentGone


def _progress(work: Work, step: Step, done: int, total: int, started: float | None) -> dict[str, Any]:
    elapsed_ms = _ms_since(started) if started is not None else 0
    return {
        **work.key, "step": step, "steps_done": done, "steps_total": total, "message": None, "elapsed_ms": elapsed_ms,
    }  # fmt: skip


def _language_of(text: str, claimed: str) -> str:
    """The language of the beginning and the middle: a title page alone may be in another.

    A few words are no ground for a statistical guess; there what the file or the collection says holds.
    """
    if len(text) < SHORT_TEXT:
        return detect_language_heuristic(text) or claimed
    middle = len(text) // 2
    sample = f"{text[:1500]}\n{text[middle : middle + 1500]}" if len(text) > 3000 else text
    return detect_language(sample) or claimed


def _with_language(page: Page, language: str) -> tuple[Page, str]:
    return page, detect_language_heuristic(page.text[:800]) or language if page.text.strip() else ""


def _page(row: DocumentPage) -> Page:
    return Page(number=row.number, text=row.text, label=row.label, warnings=tuple(row.warnings))


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
