"""Ingest reference documents (source 002 in docs/sources.md), in a single call or in steps.

The single call takes a PDF. In steps, a caller registers a document, then requests chunks, tags and vectors. Finished
steps are kept after an error, and the caller only requests the remaining steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin
from rag.errors import InvalidInput, NotAPdf, NoTextInPdf, NotFound, RagError, SettingsError, StepNotPossible
from rag.ingestion import document_rows
from rag.ingestion.chunking import chunk_document, sizes_for
from rag.ingestion.document_jobs import (
    DocumentGone,
    DocumentJob,
    JobControl,
    JobTaken,
    ModelChanged,
    hold,
)
from rag.ingestion.document_rows import find_bare_chunks, find_pages, page_from_row
from rag.ingestion.embed import EmbedStep, set_aside_message
from rag.ingestion.embedding_batches import BatchEmbedder
from rag.ingestion.pipeline import IngestionPipeline
from rag.ingestion.publish import Processed, publish
from rag.ingestion.tagging import MAXIMUM_FIELD_CHARACTERS, TagStep, tag_names
from rag.ingestion.uploads import display_name
from rag.language import N_
from rag.money.durable_calls import DurableCalls
from rag.money.ledger import Ledger
from rag.profiles import REFERENCE_PROFILES, profile_of
from rag.providers.registry import Providers
from rag.providers.retry import CallGate
from rag.retrieval.bm25.index import remove_document
from rag.storage.database import Database, queries
from rag.storage.files import Originals
from rag.text.language_detection import detect_language
from rag.text.spans import join_pages
from rag.types import (
    Chunk,
    Collection,
    DocumentStatus,
    Identity,
    Page,
    PdfType,
    UploadOptions,
    Who,
    storable,
)
from rag.types.fields import within

#: The most characters in one call, over all pages.
MAXIMUM_TEXT_CHARACTERS = 2_000_000
LONGEST_TITLE = 300
LONGEST_DESCRIPTION = 2000
LONGEST_CATEGORY = 100
PDF_MARK = b"%PDF-"
NO_MODEL = N_(
    "There is no language model, so nothing can be tagged. An administrator can paste a key of Google Gemini or OpenAI "
    "on the page Set-up."
)


@dataclass(frozen=True, kw_only=True)
class ReferenceDocument:
    """A reference document with three counts: all chunks, chunks with vectors, and tagged chunks."""

    id: UUID
    collection_id: UUID
    title: str
    source_description: str
    category: str
    file_url: str
    file_name: str
    status: str
    #: A remark, for example why a step failed.
    message: str
    page_count: int
    created_at: datetime
    chunks: int
    embedded: int
    tagged: int
    total: int


@dataclass(frozen=True, kw_only=True)
class DescribedReference:
    """An administrator's description for a reference document."""

    title: str
    source_description: str = ""
    category: str = ""

    def details(self) -> dict[str, str]:
        """Return the metadata fields `description` and `category`, without empty values. Raises `InvalidInput`."""
        details = {
            "source_description": within(self.source_description.strip(), LONGEST_DESCRIPTION),
            "category": within(self.category.strip(), LONGEST_CATEGORY),
        }
        return {name: text for name, text in details.items() if text}


class ReferenceDocuments:
    """Register, chunk, tag and embed reference documents.

    Methods return when the work is done; changes need an administrator.
    """

    def __init__(
        self, database: Database, files: Originals, providers: Providers, ledger: Ledger, pipeline: IngestionPipeline
    ) -> None:
        self._database = database
        self._files = files
        self._providers = providers
        self._ledger = ledger
        self._pipeline = pipeline
        self._control = JobControl(database)
        calls = DurableCalls(database, ledger, CallGate(), self._control.wait)
        self._embed_step = EmbedStep(self._control, BatchEmbedder(self._control, calls))
        self._tag_step = TagStep(self._control, providers, calls)

    def list(self, who: Who, *, limit: int = 20, offset: int = 0) -> tuple[Sequence[ReferenceDocument], int]:
        """Return at most `limit` documents after the first `offset`, newest first, and the total number."""
        documents = self._find(who, limit=limit, offset=offset)
        return documents, int(
            self._database.fetch_value(who, "count_references", profiles=list(REFERENCE_PROFILES)) or 0
        )

    def get(self, who: Who, document_id: UUID) -> ReferenceDocument:
        """Return a document. Raises `NotFound`, also for a document in a collection with a different profile."""
        documents = self._find(who, document_id=document_id)
        if not documents:
            raise NotFound("This reference document does not exist. It may have been deleted.")
        return documents[0]

    def register(
        self,
        identity: Identity,
        collection: Collection,
        described: DescribedReference,
        *,
        file_url: str = "",
        file_name: str = "",
    ) -> ReferenceDocument:
        """Store a document's title and description, and return the document. `chunk` adds the text later."""
        require_admin(identity)
        details = described.details() | ({"file_url": file_url} if file_url else {})
        document_id = self._database.fetch_value(
            identity,
            "register_document",
            collection_id=collection.id,
            title=_title(described.title),
            file_name=display_name(file_name) if file_name else _title(described.title),
            chunking_method=_chunking_method(collection),
            metadata=Jsonb({"is_named": True, **details}),
            added_by=identity.account_id,
        )
        return self.get(identity, document_id)

    def ingest(
        self,
        identity: Identity,
        collection: Collection,
        described: DescribedReference,
        *,
        file_name: str,
        content: bytes,
        pdf_type: PdfType | None = None,
    ) -> ReferenceDocument:
        """Read, chunk, embed and tag a PDF. Raises `DocumentError` and `ProviderError`.

        If the document was already stored, the error's details have a `document_id`. Call `embed` with this id to
        continue.
        """
        require_admin(identity)
        if PDF_MARK not in content[:1024]:
            raise NotAPdf
        named = {
            "title": _title(described.title),
            "metadata": Jsonb({"is_named": True, **described.details()}),
        }
        options = UploadOptions(pdf_type=pdf_type, is_version=False)
        document_id = self._pipeline.uploads.add_alone(collection, file_name, content, options, added_by=identity)
        self._database.execute(identity, "name_document", document_id=document_id, **named)
        self._process(identity.tenant_id, document_id)
        return self.get(identity, document_id)

    def change(
        self,
        identity: Identity,
        document_id: UUID,
        *,
        title: str | None = None,
        source_description: str | None = None,
        category: str | None = None,
    ) -> ReferenceDocument:
        """Change a document's title or description. `None` keeps a value. Raises `InvalidInput`, `NotFound`."""
        require_admin(identity)
        document = self.get(identity, document_id)
        changes = (
            ("source_description", source_description, LONGEST_DESCRIPTION),
            ("category", category, LONGEST_CATEGORY),
        )
        details = {name: within(text.strip(), longest) for name, text, longest in changes if text is not None}
        self._database.execute(
            identity,
            "name_document",
            document_id=document_id,
            title=document.title if title is None else _title(title),
            metadata=Jsonb({"is_named": True, **details}),
        )
        return self.get(identity, document_id)

    def set_tags(
        self, identity: Identity, document_id: UUID, chunk_index: int, tags: Mapping[str, str | Sequence[str] | None]
    ) -> None:
        """Set a chunk's tags by hand. `None` or "" removes a tag. Tags which are not given stay unchanged.

        Raises `InvalidInput` for a tag unknown to the collection, `NotFound` for an unknown chunk.
        """
        require_admin(identity)
        self.get(identity, document_id)
        allowed = tag_names(self._control.job(identity.tenant_id, document_id).profile.reading.chunk_tags)
        new_tags: dict[str, str | list[str] | None] = {}
        for name, value in tags.items():
            if name not in allowed:
                raise InvalidInput(f"The tag {name[:60]!r} is not available here. Choose one of: {', '.join(allowed)}.")
            words = [value] if isinstance(value, str) else list(value or ())
            clean = [storable(word).strip()[:MAXIMUM_FIELD_CHARACTERS] for word in words if word.strip()]
            new_tags[name] = clean if name == "keywords" else " ".join(clean)[:500] or None
        values = {"document_id": document_id, "chunk_index": chunk_index, "tags": Jsonb(new_tags)}
        if not self._database.execute(identity, "set_chunk_tags", **values):
            raise NotFound("This document has no such passage.")

    def chunk(
        self, identity: Identity, document_id: UUID, *, page_texts: Mapping[int, str] | None = None
    ) -> ReferenceDocument:
        """Split a document into chunks. Chunks, tags and vectors from an earlier text are deleted.

        `page_texts` maps page numbers to texts; by default the stored pages are used. Raises `InvalidInput` and
        `StepNotPossible`.
        """
        job = self._job(identity, document_id)
        with self._claimed(job):
            pages = self._pages(job) if page_texts is None else _pages_from(page_texts)
            text = join_pages(pages)
            if not text.strip():
                raise InvalidInput("There is no text to split. Send it as fullText, or by page as pageTexts.")
            method = job.document.chunking_method
            chunks = chunk_document(pages, [], method=method, **sizes_for(job.profile, method))
            self._store(job, pages, chunks, detect_language(text[:3000]) or job.collection.language)
        replaced = {"action": "document text replaced", "target": job.document.title, "changes": Jsonb({})}
        self._database.execute(identity, "add_audit_entry", **replaced)
        return self.get(identity, document_id)

    def tag(self, identity: Identity, document_id: UUID) -> ReferenceDocument:
        """Tag the chunks which have no tags. If tagging fails for a chunk, the chunk can be tagged later.

        Raises `StepNotPossible` if the document has no chunks, `SettingsError` without a chat model.
        """
        job = self._job(identity, document_id)
        self._require_chunks(identity.tenant_id, document_id)
        if self._providers.translation_model_for(job.profile) is None:
            raise SettingsError(NO_MODEL)
        # This request counts, not the choice made when the document was added.
        job = replace(job, document=replace(job.document, generate_metadata=True))
        with self._claimed(job):
            message = self._tag_step.run(job, self._pages(job))
            metadata = Jsonb({})
            self._database.execute(
                identity, "note_metadata", document_id=document_id, metadata=metadata, message=message
            )
        return self.get(identity, document_id)

    def embed(self, identity: Identity, document_id: UUID) -> ReferenceDocument:
        """Embed the chunks which have no vector, and make the document searchable.

        If the document's ingestion has failed, ingestion is continued instead. Vectors already paid for are kept after
        an error. Raises `StepNotPossible` if the document has no chunks, and `ProviderError`.
        """
        job = self._job(identity, document_id)
        status = job.document.status
        if status is DocumentStatus.NEEDS_OCR:
            raise NoTextInPdf
        if status in (DocumentStatus.FAILED, DocumentStatus.ESTIMATED, DocumentStatus.PROCESSING):
            self._database.execute(identity, "retry_document", document_id=document_id)
            self._process(identity.tenant_id, document_id)
            return self.get(identity, document_id)
        self._require_chunks(identity.tenant_id, document_id)
        with self._claimed(job):
            embedder = self._providers.embedder_for(job.collection.embedding_model)
            rows = find_bare_chunks(self._database, job.document, embedder.id)
            if rows or status is not DocumentStatus.COMPLETED:
                set_aside = self._embed_step.run_on_stored(job, rows, embedder)
                count = self.get(identity, document_id).chunks
                message = set_aside_message(set_aside, len(rows), embedder.id) or job.document.message
                processed = Processed(chunk_count=count, message=message, embedding_model=embedder.id)
                publish(self._control, self._ledger, job, processed)
                self._pipeline.suggest(identity.tenant_id, document_id)
        return self.get(identity, document_id)

    def _find(
        self, who: Who, *, document_id: UUID | None = None, limit: int = 1, offset: int = 0
    ) -> Sequence[ReferenceDocument]:
        return self._database.fetch_all(
            who,
            "find_references",
            ReferenceDocument,
            profiles=list(REFERENCE_PROFILES),
            document_id=document_id,
            limit=limit,
            offset=offset,
        )

    def _process(self, tenant_id: str, document_id: UUID) -> None:
        try:
            self._pipeline.process_stored(tenant_id, document_id)
        except JobTaken:
            raise StepNotPossible("This document is being processed. Try again when that is done.") from None
        except RagError as exc:
            exc.details.setdefault("document_id", document_id)
            raise

    def _job(self, identity: Identity, document_id: UUID) -> DocumentJob:
        require_admin(identity)
        self.get(identity, document_id)
        return self._control.job(identity.tenant_id, document_id)

    @contextmanager
    def _claimed(self, job: DocumentJob) -> Iterator[None]:
        """Lock the document against other processing inside the `with` block. Raises `StepNotPossible`, `NotFound`."""
        try:
            with self._control.claimed(job.document.tenant_id, job.document.id):
                yield
        except JobTaken:
            raise StepNotPossible("This document is being processed. Try again when that is done.") from None
        except ModelChanged:
            raise StepNotPossible(
                "The search model of the collection has changed. Prepare the document for the search again."
            ) from None
        except DocumentGone:
            raise NotFound("This reference document does not exist. It may have been deleted.") from None

    def _require_chunks(self, tenant_id: str, document_id: UUID) -> None:
        if not self.get(tenant_id, document_id).chunks:
            raise StepNotPossible("This document has no passages yet. Split its text into passages first.")

    def _pages(self, job: DocumentJob) -> Sequence[Page]:
        rows = find_pages(self._database, job.document.tenant_id, job.document.id)
        return [page_from_row(row) for row in rows]

    def _store(self, job: DocumentJob, pages: Sequence[Page], chunks: Sequence[Chunk], language: str) -> None:
        document = job.document
        with self._database.transaction(document.tenant_id) as connection:
            hold(connection, job)
            remove_document(
                connection,
                tenant_id=document.tenant_id,
                collection_id=document.collection_id,
                document_id=document.id,
            )
            for statement in ("remove_chunks", "remove_pages"):
                connection.execute(queries[statement], job.key)
            document_rows.add_pages(connection, document, [(page, language) for page in pages])
            document_rows.add_bare_chunks(connection, document, chunks)
            counts = {
                "page_count": len(pages),
                "character_count": sum(len(page.text) for page in pages),
                "chunk_count": len(chunks),
                "language": language,
            }
            connection.execute(queries["await_steps"], {**job.key, **counts})


def _pages_from(page_texts: Mapping[int, str]) -> Sequence[Page]:
    if sum(map(len, page_texts.values())) > MAXIMUM_TEXT_CHARACTERS:
        raise InvalidInput(f"This text is longer than {MAXIMUM_TEXT_CHARACTERS:,} characters. Send it in parts.")
    return [Page(number=number, text=page_texts[number]) for number in sorted(page_texts)]


def _chunking_method(collection: Collection) -> str:
    """Return the collection's chunking method. For "semantic", which needs paid calls, returns "paged"."""
    method = profile_of(collection).chunking.chunking_method
    return "paged" if method == "semantic" else method


def _title(title: str) -> str:
    one_line = " ".join(title.split())
    if not one_line:
        raise InvalidInput("A reference document needs a title.")
    return within(one_line, LONGEST_TITLE)
