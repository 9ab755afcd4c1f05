"""Process documents from file to search index.

The steps are read → recognise → correct → chunk → embed → tag → publish → suggest. Each step is stored before the next
begins. Each batch of vectors is stored with the ledger rows: after a kill, work continues at the next batch, and no
chunk is paid for twice. Workers never share a document. Errors are stored with the document. If a file kills every
process, the document is marked failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from pkgutil import resolve_name
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.errors import (
    DatabaseUnavailable,
    DocumentAlreadyStored,
    DocumentError,
    NoTextInPdf,
    ProviderError,
    RagError,
    WorkKeepsDying,
)
from rag.ingestion.chunk import ChunkStep
from rag.ingestion.corrections import CorrectStep, with_corrected_pages
from rag.ingestion.document_jobs import (
    TEMPORARY,
    WAITED_FOR,
    DocumentGone,
    DocumentJob,
    JobControl,
    JobInterrupted,
    ModelChanged,
)
from rag.ingestion.document_rows import FileRemovals, find_bare_chunks, find_text
from rag.ingestion.embed import EmbedStep, SharedRequests, set_aside_message
from rag.ingestion.embedding_batches import BatchEmbedder
from rag.ingestion.isolated_run import IsolatedRuns
from rag.ingestion.loaders.ocr import TextRecognition, has_rapidocr, tesseract_program
from rag.ingestion.loaders.sandbox import Sandbox, recognition_sandbox_of, sandbox_for
from rag.ingestion.loaders.values import ExtractionLimits
from rag.ingestion.meaning import MeaningJob
from rag.ingestion.publish import Processed, publish
from rag.ingestion.reading import ReadStep, RecogniseStep
from rag.ingestion.reembedding import ReembeddingJob
from rag.ingestion.suggestions import SuggestStep
from rag.ingestion.tagging import TagStep
from rag.ingestion.uploads import CAN_BE_TRIED_AGAIN, DEFAULT_OPTIONS, TAGS_WAIT, Uploads, reading_message
from rag.money.durable_calls import QUIET_SECONDS, DurableCalls
from rag.money.ledger import Ledger, amounts_to_json
from rag.monitoring.tracing import span
from rag.profiles import PROFILES
from rag.providers.registry import Providers
from rag.providers.retry import CallGate
from rag.records.chat_logs import LONG_QUIET_SECONDS, ChatLogs
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import Originals
from rag.types import (
    Collection,
    DocumentStatus,
    Identity,
    Page,
    ProcessingResult,
    Section,
    Step,
    UploadOptions,
)

log = logging.getLogger("rag.ingestion")
#: After this many starts without progress, a document gets a separate process. Starts alone prove nothing against its
#: file, because an event which ends this process ends the work on all its documents.
STARTS_BEFORE_ISOLATION = 6


class IngestionPipeline:
    """Processes documents step by step. Thread-safe. Only one worker at a time works on a document."""

    def __init__(
        self,
        database: Database,
        files: Originals,
        providers: Providers,
        ledger: Ledger,
        settings: Settings,
        *,
        sandbox: Sandbox | None = None,
        isolated_runs: IsolatedRuns | None = None,
    ) -> None:
        self._database = database
        self._files = files
        self._providers = providers
        self._ledger = ledger
        self.settings = settings
        self.sandbox = sandbox or sandbox_for(settings)
        #: Without a queue: `process_document` does the work.
        self.uploads = Uploads(database, files, self.sandbox)
        self.recognition = TextRecognition(
            self.sandbox,
            provider=providers.recogniser,
            tesseract=tesseract_program(settings),
            rapidocr=recognition_sandbox_of(ExtractionLimits.of(settings)) if has_rapidocr(settings) else None,
        )
        #: Claims jobs and asks them to stop.
        self.control = JobControl(database)
        self._calls = calls = DurableCalls(database, ledger, CallGate(), self.control.wait)
        batch_embedder = BatchEmbedder(self.control, calls)
        readers = {
            media_type: resolve_name(name)(self.control, providers, calls, self.sandbox, self.recognition)
            for profile in PROFILES.values()
            for media_type, name in profile.readers.items()
        }
        self._read_step = ReadStep(self.control, files, providers, self.sandbox, self.recognition, readers)
        self._recognise_step = RecogniseStep(self.control, files, self.recognition, calls)
        self._correct_step = CorrectStep(self.control)
        self._chunk_step = ChunkStep(self.control, files, batch_embedder)
        self._embed_step = EmbedStep(self.control, batch_embedder)
        self._shared_requests = SharedRequests(
            self.control, providers, batch_embedder, self._embed_step, self.mark_failed
        )
        self._tag_step = TagStep(self.control, providers, calls)
        self._suggest_step = SuggestStep(database, settings)
        self._isolated_runs = isolated_runs or IsolatedRuns(database, settings)
        self._removals = FileRemovals(database, files)
        self.reembedding = ReembeddingJob(self.control, providers, ledger, batch_embedder)
        #: Returns why somebody must confirm a document's cost, or "".
        self.why_to_ask: Callable[[str, Decimal | None], str] = lambda tenant_id, cost: ""
        #: `None` if passages are compared only by words.
        self.meaning: MeaningJob | None = None
        if providers.meaning is not None:
            self.meaning = MeaningJob(self.control, providers.meaning, settings.data_dir)

    # The steps, in their order

    def _read(self, tenant_id: str, document_id: UUID) -> None:
        """Read a document's file and estimate the cost, which an administrator must then confirm.

        Two kinds of documents continue without confirmation, within the budget: documents added by a source, and
        documents with a cost below a confirmed limit.
        """
        job = self.control.job(tenant_id, document_id)
        if job.document.status == DocumentStatus.READING:
            self._read_step.read(job)
        needs_none = job.document.is_synced or job.document.confirmed_up_to is not None
        if needs_none and (reason := self._why_to_ask(tenant_id, document_id)):
            self._database.execute(tenant_id, "hold_estimate", document_id=document_id, message=reason)
        elif job.document.is_synced:
            self._database.execute(tenant_id, "confirm_document", document_id=document_id)
        elif job.document.confirmed_up_to is not None:
            self._database.execute(tenant_id, "confirm_within_limit", document_id=document_id)

    def _why_to_ask(self, tenant_id: str, document_id: UUID) -> str:
        estimate = self.control.job(tenant_id, document_id).document.estimate or {}
        total = estimate.get("total", 0)
        return self.why_to_ask(tenant_id, None if total is None else Decimal(str(total)))

    def _process(self, tenant_id: str, document_id: UUID) -> None:
        """Process a confirmed document until users can search the text. A document in any other state is not changed.

        If the provider refuses tagging because of the key or the credit, the document is published without tags, and
        the error is raised.
        """
        job = self.control.job(tenant_id, document_id)
        if job.document.status != DocumentStatus.PROCESSING:
            return
        pages, sections = self._stored_text(job)
        pages, _ = self._recognise_step.run(job, pages, sections)
        corrected = self._correct_step.run(job, pages)
        pages, sections = corrected.pages, corrected.sections
        embedder = self._providers.embedder_for(job.collection.embedding_model)
        chunks = with_corrected_pages(self._chunk_step.run(job, pages, sections, embedder), corrected.numbers)
        # A corrected document embeds only its few changed passages.
        is_shared = job.profile.embedding.share_requests and job.document.is_synced and not corrected.numbers
        embed = self._embed_step.run_together if is_shared and embedder.is_paid else self._embed_step.run
        set_aside = embed(job, chunks, embedder)
        if set_aside is None:
            return
        set_aside_sentence = set_aside_message(set_aside, len(chunks), embedder.id)
        read = _sentences(corrected.message, reading_message(pages), set_aside_sentence)
        tags, refused = self._tag(job, pages)
        try:
            processed = Processed(
                chunk_count=len(chunks),
                message=_sentences(read, tags),
                embedding_model=embedder.id,
                waits_for=Step.TAG if refused else None,
            )
            publish(self.control, self._ledger, job, processed)
        except ModelChanged:
            log.info("Document %s is embedded again: its collection changed its model", document_id)
            self._process(tenant_id, document_id)
        else:
            self._suggest(tenant_id, document_id, pages, sections)
            if refused is not None:
                raise refused

    def _tag_again(self, tenant_id: str, document_id: UUID) -> None:
        job = self.control.job(tenant_id, document_id)
        if Step.TAG not in job.document.pending_steps:
            return
        pages, sections = self._stored_text(job)
        tags, refused = self._tag(job, pages)
        if refused is not None:
            raise refused
        self._database.execute(
            tenant_id,
            "finish_step",
            **job.key,
            step=Step.TAG,
            message=_sentences(
                self._correct_step.message(job), reading_message(pages), self._set_aside_before(job), tags
            ),
            costs=Jsonb(amounts_to_json(self._ledger.document_costs(tenant_id, document_id))),
        )
        self._suggest(tenant_id, document_id, pages, sections)

    def _set_aside_before(self, job: DocumentJob) -> str:
        """Return a sentence about a published document's chunks which have no vector, or "" if all have vectors."""
        model = job.collection.embedding_model
        rows = find_bare_chunks(self._database, job.document, model)
        return set_aside_message(rows, job.document.chunk_count, model)

    def suggest(self, tenant_id: str, document_id: UUID) -> None:
        """Choose suggested questions for a document which was published step by step."""
        pages, sections = self._stored_text(self.control.job(tenant_id, document_id))
        self._suggest(tenant_id, document_id, pages, sections)

    def _suggest_if_missing(self, tenant_id: str, document_id: UUID) -> None:
        job = self.control.job(tenant_id, document_id)
        if job.document.status is DocumentStatus.COMPLETED and "suggested_questions" not in job.document.metadata:
            pages, sections = self._stored_text(job)
            self._suggest(tenant_id, document_id, pages, sections)

    def _suggest(self, tenant_id: str, document_id: UUID, pages: Sequence[Page], sections: Sequence[Section]) -> None:
        job = self.control.job(tenant_id, document_id)
        if job.document.status is DocumentStatus.COMPLETED:
            self._suggest_step.run(job, pages, sections)

    # Their parts

    def _stored_text(self, job: DocumentJob) -> tuple[Sequence[Page], tuple[Section, ...]]:
        pages, sections = find_text(self._database, job.document.tenant_id, job.document.id)
        if not pages:  # a document which was read has pages
            raise DocumentGone
        return pages, sections

    def _tag(self, job: DocumentJob, pages: Sequence[Page]) -> tuple[str, ProviderError | None]:
        """Tag the document and its chunks.

        Returns a sentence for administrators, and the error if key or credit was refused.
        """
        try:
            return self._tag_step.run(job, pages), None
        except WAITED_FOR as exc:
            exc.details["is_searchable"] = True
            return TAGS_WAIT, exc

    # For the runners

    def run(self, tenant_id: str, document_id: UUID) -> None:
        """Process a document until it is published or waits for an administrator.

        Permanent errors are stored with the document. Raises `JobTaken`, `JobInterrupted`, and the errors in
        `TEMPORARY`, after which the document can be run again.
        """
        with self.control.claimed(tenant_id, document_id):
            starts = self._database.fetch_value(tenant_id, "note_start", document_id=document_id) or 0
            if starts and starts % STARTS_BEFORE_ISOLATION == 0:
                self._run_isolated(tenant_id, document_id)
            else:
                self.run_claimed(tenant_id, document_id)
        self._shared_requests.run_if_due(tenant_id, document_id)

    def run_claimed(self, tenant_id: str, document_id: UUID) -> None:
        """Process a document like `run`. The caller must have claimed the document."""
        try:
            with span("process_document", {"rag.document.id": str(document_id)}):
                self._read(tenant_id, document_id)
                self._process(tenant_id, document_id)
                self._tag_again(tenant_id, document_id)
                self._suggest_if_missing(tenant_id, document_id)
                self._note_orderly_end(tenant_id, document_id)
        except DocumentGone:
            log.info("Document %s was deleted while it was processed", document_id)
        except (JobInterrupted, *TEMPORARY) as exc:
            if not isinstance(exc, DatabaseUnavailable):
                self._note_orderly_end(tenant_id, document_id)
                self._ledger.note_document_costs(tenant_id, document_id)
            raise
        except RagError as exc:
            self.mark_failed(tenant_id, document_id, str(exc))
        except Exception:
            log.exception("Processing document %s failed", document_id)
            self.mark_failed(tenant_id, document_id, str(RagError()))

    def _run_isolated(self, tenant_id: str, document_id: UUID) -> None:
        """Process a document in a separate process, because earlier processes died on this document.

        If the separate processes die too, the document is marked failed.
        """
        log.warning("Document %s is worked on in a process of its own: the last ones ended with it", document_id)
        try:
            self._isolated_runs.run(tenant_id, document_id, self.control.stop_if_asked)
        except JobInterrupted:
            self._note_orderly_end(tenant_id, document_id)
            raise
        except WorkKeepsDying as exc:
            self.mark_failed(tenant_id, document_id, str(exc))

    def _note_orderly_end(self, tenant_id: str, document_id: UUID) -> None:
        self._database.execute(tenant_id, "note_orderly_end", document_id=document_id)

    def process_document(
        self,
        *,
        file: bytes,
        file_name: str,
        tenant_id: str,
        collection: Collection,
        identity: Identity | None = None,
        options: UploadOptions = DEFAULT_OPTIONS,
    ) -> ProcessingResult:
        """Process a file completely without confirmation, and return when it is searchable.

        Files attached to an email or PDF become documents too; the result is the main document's. Raises
        `DocumentError` and `ProviderError`. A failed document stays in the list. A further call with the same file
        tries again.
        """
        try:
            document_id, *attached = self.uploads.add(collection, file_name, file, options, added_by=identity)
        except DocumentAlreadyStored as stored:
            # A failed document does not block its file.
            stored_id: UUID | None = stored.details.get("document_id")
            if stored_id is None or self.control.job(tenant_id, stored_id).document.status not in CAN_BE_TRIED_AGAIN:
                raise
            self._database.execute(tenant_id, "retry_document", document_id=stored_id)
            document_id, attached = stored_id, []
        result = self.process_stored(tenant_id, document_id)
        for each in attached:
            with suppress(DocumentError, ProviderError):  # the document stays listed as failed
                self.process_stored(tenant_id, each)
        return result

    def process_stored(self, tenant_id: str, document_id: UUID) -> ProcessingResult:
        """Process a stored document completely without confirmation. Raises the errors from `process_document`."""
        with self.control.claimed(tenant_id, document_id):
            try:
                self._read(tenant_id, document_id)
                self._database.execute(tenant_id, "confirm_document", document_id=document_id)
                self._process(tenant_id, document_id)
            except RagError as exc:
                # A worker adds the tags when the key or credit is there; the document is searchable without them.
                if not exc.details.get("is_searchable"):
                    self.mark_failed(tenant_id, document_id, str(exc))
                    raise
                sentence = f"{TAGS_WAIT} {exc}"
                self.note_message(tenant_id, document_id, sentence, is_waiting=True)
        document = self.control.job(tenant_id, document_id).document
        if document.status == DocumentStatus.NEEDS_OCR:
            raise NoTextInPdf(document.message)
        if document.status == DocumentStatus.FAILED:
            raise DocumentError(document.message)
        return ProcessingResult(
            document_id=document_id,
            chunk_count=document.chunk_count,
            processing_time=document.processing_ms,
            costs=self._ledger.document_costs(tenant_id, document_id),
            message=document.message,
        )

    def remove_files(self, tenant_id: str) -> int:
        """Remove the files of deleted documents. Returns how many could not be removed and stay queued."""
        with self.control.claimed(tenant_id, f"files {tenant_id}"):
            return self._removals.run(tenant_id)

    def mark_failed(self, tenant_id: str, document_id: UUID, sentence: str) -> None:
        """Mark a document failed, and store the reason, a sentence."""
        self._database.execute(tenant_id, "mark_failed", document_id=document_id, message=sentence)
        self._ledger.note_document_costs(tenant_id, document_id)

    def note_message(self, tenant_id: str, document_id: UUID, sentence: str, *, is_waiting: bool = False) -> None:
        """Store a sentence about a document in progress. With `is_waiting`, the document waits for a provider."""
        parameters = {"document_id": document_id, "message": sentence, "is_waiting": is_waiting}
        self._database.execute(tenant_id, "note_message", **parameters)

    def settle_abandoned_calls(self, tenant_id: str, *, quiet_seconds: float = QUIET_SECONDS) -> int:
        """Record the expected cost of calls abandoned by dead processes, and close abandoned questions."""
        ChatLogs(self._database).close_abandoned(tenant_id, quiet_seconds=LONG_QUIET_SECONDS)
        return self._calls.settle_abandoned(tenant_id, quiet_seconds=quiet_seconds)

    def interrupt(self) -> None:
        """Stop all work after storing the results. Processes which read files are ended immediately."""
        self.control.stop()
        if self.meaning is not None:
            self.meaning.interrupt()
        self.sandbox.interrupt()
        self.recognition.interrupt()
        self._isolated_runs.interrupt()

    def resume(self) -> None:
        """Allow work again after `interrupt`."""
        self.control.resume()

    def close(self) -> None:
        """Stop all work and end the sandbox."""
        self.interrupt()
        self.sandbox.close()


def _sentences(*parts: str) -> str:
    return " ".join(filter(None, parts))
