"""Who works on a document and what becomes of it: one worker at a time, its failure kept with it, a file that ends the
process each time set aside.
"""

from __future__ import annotations

import logging
from uuid import UUID

from rag.errors import DatabaseUnavailable, DocumentError, NoTextInPdf, RagError, WorkKeepsDying
from rag.ingestion.file_removals import FileRemovals
from rag.ingestion.intake import add_document
from rag.ingestion.meaning import MeaningWork
from rag.ingestion.messages import TAGS_WAIT
from rag.ingestion.ocr import text_recognition
from rag.ingestion.paid_calls import QUIET_SECONDS, PaidCalls, note_costs
from rag.ingestion.reembedding_work import ReembeddingWork
from rag.ingestion.sandbox import Sandbox, sandbox_for
from rag.ingestion.steps import DocumentSteps
from rag.ingestion.trials import Trials
from rag.ingestion.work import TEMPORARY, Bench, DocumentGone, WorkedOnElsewhere, WorkInterrupted
from rag.money.ledger import Ledger
from rag.providers.call_gate import CallGate
from rag.providers.registry import Providers
from rag.records.chat_logs import LONG_QUIET_SECONDS, ChatLogs
from rag.settings import Settings
from rag.storage.database import Database
from rag.storage.files import Originals
from rag.types import ChunkingMethod, Collection, DocumentStatus, Identity, PdfType, ProcessingResult

__all__ = ["TEMPORARY", "Processor", "WorkInterrupted", "WorkedOnElsewhere"]

log = logging.getLogger("rag.ingestion")
#: Each so many beginnings without any progress, a document is worked on in a process of its own. Beginnings alone are
#: no evidence against its file: whatever ends this process ends the work on every document in it.
STARTS_A_TRIAL = 6


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
        trials: Trials | None = None,
    ) -> None:
        self._database = database
        self._files = files
        self._ledger = ledger
        self.settings = settings
        self.sandbox = sandbox or sandbox_for(settings)
        self._bench = Bench(database)
        self._calls = calls = PaidCalls(database, CallGate(), ledger)
        self.recognition = text_recognition(settings, self.sandbox)
        self._steps = DocumentSteps(self._bench, files, providers, ledger, calls, self.sandbox, self.recognition)
        self._trials = trials or Trials(database, settings)
        self._removals = FileRemovals(database, files)
        self.reembedding = ReembeddingWork(self._bench, providers, ledger, calls)
        #: None where passages are compared by their words only.
        self.meaning: MeaningWork | None = None
        if providers.meaning is not None:
            self.meaning = MeaningWork(self._bench, providers.meaning, settings.data_dir)

    def run(self, tenant_id: str, document_id: UUID) -> None:
        """Do the steps from wherever the document stands, until it is done or waits for an admin.

        What is wrong with the document is written to it. Raises `WorkedOnElsewhere`, `WorkInterrupted`, and the errors
        of `TEMPORARY`, after which it can be run again.
        """
        with self._bench.claimed(tenant_id, document_id):
            starts = self._database.fetch_value(tenant_id, "note_start", document_id=document_id) or 0
            if starts and starts % STARTS_A_TRIAL == 0:
                self._try(tenant_id, document_id)
            else:
                self.run_claimed(tenant_id, document_id)

    def run_claimed(self, tenant_id: str, document_id: UUID) -> None:
        """As `run`, for a document that its caller holds."""
        try:
            self._steps.read(tenant_id, document_id)
            self._steps.process(tenant_id, document_id)
            self._steps.tag_again(tenant_id, document_id)
            self._note_orderly_end(tenant_id, document_id)
        except DocumentGone:
            log.info("Document %s was deleted while it was processed", document_id)
        except (WorkInterrupted, *TEMPORARY) as exc:
            if not isinstance(exc, DatabaseUnavailable):
                self._note_orderly_end(tenant_id, document_id)
                note_costs(self._database, self._ledger, tenant_id, document_id)
            raise
        except RagError as exc:
            self.mark_failed(tenant_id, document_id, exc.message)
        except Exception:
            log.exception("Processing document %s failed", document_id)
            self.mark_failed(tenant_id, document_id, str(RagError()))

    def _try(self, tenant_id: str, document_id: UUID) -> None:
        """Work on a document whose process has ended too often, in another one; set it aside if that ends too."""
        log.warning("Document %s is worked on in a process of its own: the last ones ended with it", document_id)
        try:
            self._trials.run(tenant_id, document_id, self._bench.stop_if_asked)
        except WorkInterrupted:
            self._note_orderly_end(tenant_id, document_id)
            raise
        except WorkKeepsDying as exc:
            self.mark_failed(tenant_id, document_id, exc.message)

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
        chunking_method: ChunkingMethod | None = None,
        generate_metadata: bool = True,
        password: str | None = None,
        pdf_type: PdfType | None = None,
    ) -> ProcessingResult:
        """Take a file through the whole pipeline, without asking, and return when it is searchable.

        Without a way to cut, or a kind of PDF, those of the collection hold.

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
                self._steps.read(tenant_id, document_id)
                self._database.execute(tenant_id, "confirm_document", document_id=document_id)
                self._steps.process(tenant_id, document_id)
            except RagError as exc:
                # Tags are written by a worker once the key or the money is there; the document is found without.
                if not exc.details.get("is_searchable"):
                    self.mark_failed(tenant_id, document_id, exc.message)
                    raise
                sentence = f"{TAGS_WAIT} {exc.message}"
                self.note_message(tenant_id, document_id, sentence, is_waiting=True)
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
            message=document.message,
        )

    def remove_files(self, tenant_id: str) -> int:
        """Remove the originals of deleted documents; how many wait for another try."""
        with self._bench.claimed(tenant_id, f"files {tenant_id}"):
            return self._removals.run(tenant_id)

    def mark_failed(self, tenant_id: str, document_id: UUID, sentence: str) -> None:
        """End the work on a document with its reason."""
        self._database.execute(tenant_id, "mark_failed", document_id=document_id, message=sentence)
        note_costs(self._database, self._ledger, tenant_id, document_id)

    def note_message(self, tenant_id: str, document_id: UUID, sentence: str, *, is_waiting: bool = False) -> None:
        """Say something about a document that is still being worked on, or waits for its provider's yes."""
        parameters = {"document_id": document_id, "message": sentence, "is_waiting": is_waiting}
        self._database.execute(tenant_id, "note_message", **parameters)

    def settle_abandoned_calls(self, tenant_id: str, *, quiet_seconds: float = QUIET_SECONDS) -> int:
        """Write into the ledger what calls of dead processes may have cost that nobody sends again.

        Those of documents; and those of questions that nobody looks at, which are closed.
        """
        ChatLogs(self._database).close_abandoned(tenant_id, quiet_seconds=LONG_QUIET_SECONDS)
        return self._calls.settle_abandoned(tenant_id, quiet_seconds=quiet_seconds)

    @property
    def bench(self) -> Bench:
        """Where work is claimed, and told to stop."""
        return self._bench

    def interrupt(self) -> None:
        """Have all work end at its next durable point, at once where a file is being read."""
        self._bench.stop()
        if self.meaning is not None:
            self.meaning.interrupt()
        self.sandbox.interrupt()
        self._trials.interrupt()

    def resume(self) -> None:
        """Work again after `interrupt`."""
        self._bench.resume()

    def close(self) -> None:
        """End the processes that read files."""
        self.interrupt()
        self.sandbox.close()
        self.recognition.close()
