"""Restore a document's earlier versions, and run single ingestion steps again.

While a new version is made, the published version stays searchable.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin
from rag.errors import InvalidInput, NotFound
from rag.ingestion.document_jobs import DocumentJob, JobControl, JobQueue
from rag.ingestion.document_rows import find_document, find_text, find_versions
from rag.ingestion.loaders.values import ExtractedDocument
from rag.ingestion.passages import EXPORT_TYPE
from rag.ingestion.publish import restore
from rag.ingestion.reading import estimate_document
from rag.ingestion.tagging import tag_names
from rag.providers.registry import Providers
from rag.storage.database import Database, queries
from rag.types import ChunkingMethod, Document, DocumentStatus, Identity, PdfType, Step, Who

#: The steps that can be run again by hand.
BY_HAND = (Step.CHUNK, Step.EMBED, Step.TAG)


class Versions:
    """List, restore and create versions. Changes need an administrator."""

    def __init__(self, database: Database, providers: Providers, queue: JobQueue) -> None:
        self._database = database
        self._providers = providers
        self._queue = queue
        self._control = JobControl(database)

    def of(self, who: Who, document: Document) -> list[Document]:
        """List a document's versions, latest first."""
        versions = find_versions(self._database, who, document.original_id)
        return sorted(versions, key=lambda version: -version.version)

    def restore(self, identity: Identity, document_id: UUID) -> Document:
        """Publish an earlier version again, immediately and without cost.

        If the collection's embedding model has changed, the version gets a new estimate and waits for confirmation.
        Raises `NotFound`, and `InvalidInput` unless the version was superseded.
        """
        job = self._job(identity, document_id)
        document = job.document
        if document.status is not DocumentStatus.SUPERSEDED:
            raise InvalidInput("Only an earlier version can be restored.")
        with self._database.transaction(identity) as connection:
            connection.execute(queries["lock_versions"], {"original_id": document.original_id})
            if not restore(connection, document, job.collection.embedding_model):
                estimate = self.estimate(job)
                parameters = {"document_id": document_id, "estimate": Jsonb(estimate)}
                connection.execute(queries["await_confirmation"], parameters)
        return self._job(identity, document_id).document

    def run_again(
        self,
        identity: Identity,
        document_id: UUID,
        step: Step,
        *,
        only_missing: bool = True,
        chunking_method: ChunkingMethod | None = None,
    ) -> Document:
        """Run a processing step again for a searchable document, and return the document being processed.

        Chunking and embedding create a new version from the same file, which is estimated and waits for confirmation.
        Tagging changes the published version: all tags or, with `only_missing`, only missing tags. Raises
        `InvalidInput` if the step is not needed.
        """
        job = self._job(identity, document_id)
        document = job.document
        if step not in BY_HAND:
            raise InvalidInput("Only splitting, preparing for search and tagging can be run again on their own.")
        if document.status is not DocumentStatus.COMPLETED:
            raise InvalidInput(
                "A single step can be run again only in a document that is ready. Try again with the whole document."
            )
        if step is Step.TAG:
            return self._tag_again(identity, job, only_missing=only_missing)
        if only_missing and chunking_method in (None, document.chunking_method):
            # Publishing needs a vector for every chunk.
            raise InvalidInput("Nothing is missing: every passage of this document can be searched by meaning.")
        if document.mime_type == EXPORT_TYPE and chunking_method not in (None, document.chunking_method):
            raise InvalidInput("Imported passages cannot be split again. Upload the document itself instead.")
        self._require_idle(identity, document)
        with self._database.transaction(identity) as connection:
            connection.execute(queries["lock_versions"], {"original_id": document.original_id})
            parameters = {
                "document_id": document_id,
                "chunking_method": chunking_method or document.chunking_method,
            }
            for (new_id,) in connection.execute(queries["add_version"], parameters).fetchall():
                connection.execute(queries["copy_pages"], {"document_id": document_id, "new_id": new_id})
        new = self._job(identity, new_id)
        with self._database.transaction(identity) as connection:
            estimate = Jsonb(self.estimate(new))
            connection.execute(queries["note_estimate"], {"document_id": new_id, "estimate": estimate})
        return self._job(identity, new_id).document

    def read_again(
        self,
        identity: Identity,
        document_id: UUID,
        *,
        pdf_type: PdfType = "auto",
        confirmed_up_to: Decimal | None = None,
    ) -> Document:
        """Read a document's file again, with text recognition if needed, and return the document being read.

        A published document stays searchable, and the file is read into a new version. This version waits for
        confirmation if its estimate is above `confirmed_up_to`, in US dollars. For a failed document, or a document
        awaiting recognition, no new version is created. Raises `InvalidInput` while the document is being processed.
        """
        job = self._job(identity, document_id)
        document = job.document
        parameters: dict[str, Any] = {"document_id": document_id, "pdf_type": pdf_type}
        with self._database.transaction(identity) as connection:
            connection.execute(queries["lock_versions"], {"original_id": document.original_id})
            if document.status is DocumentStatus.COMPLETED:
                self._require_idle(identity, document)
                added = {**parameters, "confirmed_up_to": confirmed_up_to}
                for (new_id,) in connection.execute(queries["add_version_to_read"], added).fetchall():
                    document_id = new_id
            elif not connection.execute(queries["read_again"], parameters).rowcount:
                raise InvalidInput("This document is being worked on. Wait until that is done.")
            self._queue.enqueue(identity.tenant_id, document_id, connection=connection)
        return self._job(identity, document_id).document

    def _require_idle(self, identity: Identity, document: Document) -> None:
        at_work = {DocumentStatus.READING, DocumentStatus.ESTIMATED, DocumentStatus.PROCESSING}
        if any(version.status in at_work for version in self.of(identity.tenant_id, document)):
            raise InvalidInput("Another version of this document is being made. Confirm or discard that version first.")

    def _tag_again(self, identity: Identity, job: DocumentJob, *, only_missing: bool) -> Document:
        document = job.document
        key: dict[str, Any] = {"document_id": document.id}
        if not document.generate_metadata:
            raise InvalidInput("This document was added without metadata. Upload it again with metadata to have tags.")
        if self._providers.translation_model_for(job.profile) is None:
            raise InvalidInput("Tags are written by a language model, but no language model is set up.")
        has_tags = bool(document.metadata.get("summary"))
        if only_missing and has_tags and not document.metadata.get("untagged_chunks"):
            raise InvalidInput("Nothing is missing: the tags of this document are complete.")
        with self._database.transaction(identity) as connection:
            if not only_missing or not has_tags:
                connection.execute(queries["forget_tags"], key)
            if not only_missing:
                fields = tag_names(job.profile.reading.chunk_tags)
                connection.execute(queries["forget_chunk_tags"], {**key, "fields": fields})
            connection.execute(queries["ask_for_step"], {**key, "step": Step.TAG})
            self._queue.enqueue(identity.tenant_id, document.id, connection=connection)
        return self._job(identity, document.id).document

    def estimate(self, job: DocumentJob) -> dict[str, Any]:
        """Estimate a document's processing cost from the stored pages."""
        pages, sections = find_text(self._database, job.document.tenant_id, job.document.id)
        return estimate_document(
            self._control, job, ExtractedDocument(pages=tuple(pages), sections=sections), self._providers
        )

    def _job(self, identity: Identity, document_id: UUID) -> DocumentJob:
        require_admin(identity)
        if find_document(self._database, identity, document_id) is None:
            raise NotFound("This document does not exist. It may have been deleted.")
        return self._control.job(identity.tenant_id, document_id)
