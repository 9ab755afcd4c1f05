"""The documents of a tenant, as the pages and the API use them: upload, confirm, look at, retry, delete.

Nothing here does long work: what takes time is queued in the same transaction that asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rag.database import Database, queries
from rag.errors import DocumentAlreadyStored, InvalidInput, NotAllowed, NotFound
from rag.files import FileStore
from rag.ingestion.file_removals import FileRemovals, request_file_removal
from rag.ingestion.intake import JobQueue, add_document, find_documents
from rag.ingestion.page_images import PageImages
from rag.ingestion.reembedding import Reembeddings
from rag.ingestion.sandbox import Sandbox, sandbox_for
from rag.ingestion.versions import Versions
from rag.profiles import profile_by_name
from rag.providers.registry import Providers
from rag.records.ledger import Ledger
from rag.settings import Settings
from rag.types import (
    ChunkingMethod,
    Collection,
    Document,
    DocumentChunk,
    DocumentPage,
    Identity,
    Role,
)

# The library has a method called list; within the class that name means the method.
Documents = list[Document]
Pages = list[DocumentPage]
Chunks = list[DocumentChunk]
Collections = list[Collection]
Questions = list[str]


@dataclass(frozen=True)
class QueueState:
    """Jobs of a tenant. `later` ones wait for another try, the first at `next_try_at`."""

    waiting: int
    later: int
    running: int
    next_try_at: datetime | None


class DocumentLibrary:
    """Documents and collections of all tenants. Changes need an administrator; reading is the caller's to allow."""

    def __init__(
        self,
        database: Database,
        files: FileStore,
        providers: Providers,
        ledger: Ledger,
        settings: Settings,
        queue: JobQueue,
        *,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._database = database
        self._files = files
        self._providers = providers
        self._ledger = ledger
        self._settings = settings
        self._queue = queue
        self._sandbox = sandbox or sandbox_for(settings)
        self._images = PageImages(self._sandbox)
        self._removals = FileRemovals(database, files)
        self.versions = Versions(database, providers, queue)
        self.reembeddings = Reembeddings(database, providers)

    # Adding

    def upload(
        self,
        identity: Identity,
        collection: Collection,
        file_name: str,
        content: bytes,
        *,
        password: str | None = None,
        chunking_method: ChunkingMethod = "smart",
        generate_metadata: bool = True,
    ) -> Document:
        """Store a PDF and queue its reading. The password unlocks it here and is kept nowhere.

        Other bytes under a name that is known become its next version; the bytes of an earlier version restore it.

        Raises a `DocumentError` when the file cannot be used: `PasswordNeeded` and `PasswordWrong` ask for a password,
        `DocumentAlreadyStored` carries `document_id` and `title` of the document with the same content.
        """
        _require_admin(identity)
        if collection.tenant_id != identity.tenant_id:
            raise NotFound
        try:
            document_id = add_document(
                self._database,
                self._files,
                self._sandbox,
                collection,
                file_name,
                content,
                password=password,
                chunking_method=chunking_method,
                generate_metadata=generate_metadata,
                added_by=identity.account_id,
                queue=self._queue,
            )
        except DocumentAlreadyStored as exc:
            if not exc.details.get("is_earlier_version"):
                raise
            document_id = exc.details["document_id"]
            self.versions.restore(identity, document_id)
        return self.get(identity.tenant_id, document_id)

    def confirm(self, identity: Identity, document_id: UUID) -> Document:
        """Say yes to the estimate: the document is processed. Does nothing when it was confirmed already."""
        _require_admin(identity)
        with self._database.transaction(identity.tenant_id) as connection:
            parameters = {"document_id": document_id}
            if connection.execute(queries["confirm_document"], parameters).rowcount:
                self._queue.enqueue(identity.tenant_id, document_id, connection=connection)
        return self.get(identity.tenant_id, document_id)

    def discard(self, identity: Identity, document_id: UUID) -> None:
        """Say no to the estimate: the document and its file are removed."""
        self.delete(identity, document_id)

    def retry(self, identity: Identity, document_id: UUID) -> Document:
        """Queue a failed document again; what was done and paid is kept. Raises `InvalidInput` for any other."""
        _require_admin(identity)
        with self._database.transaction(identity.tenant_id) as connection:
            parameters = {"document_id": document_id}
            if not connection.execute(queries["retry_document"], parameters).rowcount:
                raise InvalidInput("Only a document that failed or needs text recognition can be tried again.")
            self._queue.enqueue(identity.tenant_id, document_id, connection=connection)
        return self.get(identity.tenant_id, document_id)

    def delete(self, identity: Identity, document_id: UUID) -> None:
        """Remove a document with all its versions, or one version that does not answer now.

        Pages, chunks, vectors and keywords go in one transaction, which also leaves word to remove the file. Raises
        `NotFound`. When this returns, nothing of it can be found or opened.
        """
        _require_admin(identity)
        tenant_id = identity.tenant_id
        with self._database.transaction(tenant_id) as connection:
            removed = connection.execute(queries["delete_document"], {"document_id": document_id}).fetchall()
            if not removed:
                raise NotFound
            request_file_removal(connection, tenant_id, [file_path for _, file_path in removed])
        for gone, _ in removed:
            self._images.forget(gone)
        # At once where it can be; the job that was queued with the deletion finds nothing left to do then.
        self._removals.run(tenant_id)

    # Looking

    def list(self, tenant_id: str, *, collection_id: UUID | None = None) -> Documents:
        """The tenant's documents, newest first; of those with versions, the one that answers and those at work."""
        return find_documents(self._database, tenant_id, collection_id=collection_id, with_superseded=False)

    def get(self, tenant_id: str, document_id: UUID) -> Document:
        """One document. Raises `NotFound`, also for another tenant's."""
        found = find_documents(self._database, tenant_id, document_id=document_id)
        if not found:
            raise NotFound("This document does not exist, or no longer.")
        return found[0]

    def pages(self, tenant_id: str, document_id: UUID) -> Pages:
        """The pages with their text, in their order."""
        return self._database.fetch_all(tenant_id, "find_pages", DocumentPage, document_id=document_id)

    def chunks(self, tenant_id: str, document_id: UUID, *, chunk_id: UUID | None = None) -> Chunks:
        """The chunks in their order, without their vectors."""
        return self._database.fetch_all(
            tenant_id, "find_chunks", DocumentChunk, document_id=document_id, chunk_id=chunk_id
        )

    def original(self, tenant_id: str, document_id: UUID) -> bytes:
        """The PDF as it can be opened: a protected one was unlocked when it was uploaded. Raises `NotFound`."""
        return self._files.get(tenant_id, self.get(tenant_id, document_id).file_path)

    def page_image(
        self, tenant_id: str, document_id: UUID, page: int, *, highlight: str = "", scale: float = 2.0
    ) -> bytes:
        """A page as PNG, `scale` times 72 dpi, with the passage marked where it stands.

        Raises `NotFound` for a page that is not there and a `DocumentError` when the page cannot be drawn.
        """
        document = self.get(tenant_id, document_id)
        if not 1 <= page <= max(document.page_count, 1):
            raise NotFound(f"This document has no page {page}.")
        return self._images.draw(
            document_id,
            page,
            lambda: self._files.get(tenant_id, document.file_path),
            highlight=highlight,
            scale=min(max(scale, 0.2), 4.0),
        )

    def suggested_questions(self, tenant_id: str, collection_id: UUID, *, limit: int = 4) -> Questions:
        """Questions the collection's documents answer, from as many different documents as possible."""
        with self._database.transaction(tenant_id) as connection:
            parameters = {"collection_id": collection_id}
            rows = connection.execute(queries["suggestions"], parameters).fetchall()
        by_document = [[q for q in (row[0] or []) if isinstance(q, str) and q.strip()] for row in rows]
        turns = max((len(questions) for questions in by_document), default=0)
        found = (questions[turn] for turn in range(turns) for questions in by_document if turn < len(questions))
        return list(dict.fromkeys(found))[:limit]

    def queue_state(self, tenant_id: str) -> QueueState:
        """What waits and what is worked on for this tenant, by any process."""
        state = self._database.fetch_one(tenant_id, "queue_state", QueueState)
        return state or QueueState(waiting=0, later=0, running=0, next_try_at=None)

    # Collections

    def collections(self, tenant_id: str) -> Collections:
        """The tenant's collections, oldest first."""
        return self._collections(tenant_id)

    def collection(self, tenant_id: str, collection_id: UUID) -> Collection:
        """One collection. Raises `NotFound`, also for another tenant's."""
        found = self._collections(tenant_id, collection_id=collection_id)
        if not found:
            raise NotFound("This collection does not exist, or no longer.")
        return found[0]

    def ensure_collection(
        self, tenant_id: str, name: str, profile: str, embedding_model: str, language: str
    ) -> Collection:
        """The collection of that name, made now if there is none; an existing one keeps its settings."""
        profile_by_name(profile)
        self._database.execute(
            tenant_id,
            "add_collection",
            collection_name=name,
            profile=profile,
            embedding_model=embedding_model,
            language=language,
        )
        return self._collections(tenant_id, name=name)[0]

    def _collections(
        self, tenant_id: str, *, collection_id: UUID | None = None, name: str | None = None
    ) -> Collections:
        return self._database.fetch_all(
            tenant_id, "find_collections", Collection, collection_id=collection_id, collection_name=name
        )


def _require_admin(identity: Identity) -> None:
    if not identity.may(Role.ADMIN):
        raise NotAllowed
