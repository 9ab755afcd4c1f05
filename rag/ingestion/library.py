"""The documents of a tenant, as the pages and the API use them: upload, confirm, look at, retry, delete.

Nothing here does long work: what takes time is queued in the same transaction that asks for it.
"""

from __future__ import annotations

from collections.abc import Collection as Several
from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.access.recent import require_recent
from rag.errors import DocumentAlreadyStored, InvalidInput, NotFound
from rag.ingestion import collections as collecting
from rag.ingestion.collection_shelf import require_admin
from rag.ingestion.document_shelf import DocumentShelf
from rag.ingestion.file_removals import FileRemovals, request_file_removal
from rag.ingestion.intake import JobQueue, add_document
from rag.ingestion.loaders.sandbox import Sandbox, sandbox_for
from rag.ingestion.reembedding import Reembeddings
from rag.ingestion.versions import Versions
from rag.profiles import profile_of
from rag.providers.registry import Providers
from rag.settings import Settings
from rag.storage.database import Database, queries
from rag.storage.files import Originals
from rag.types import ChunkingMethod, Collection, Document, DocumentStatus, Identity, PdfType


class DocumentLibrary(DocumentShelf):
    """Documents and collections of all tenants. Changes need an administrator; reading is the caller's to allow."""

    def __init__(
        self,
        database: Database,
        files: Originals,
        providers: Providers,
        settings: Settings,
        queue: JobQueue,
        *,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._sandbox = sandbox or sandbox_for(settings)
        super().__init__(database, files, providers, settings, self._sandbox)
        self._queue = queue
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
        chunking_method: ChunkingMethod | None = None,
        generate_metadata: bool = True,
        pdf_type: PdfType | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Document:
        """Store a file and queue its reading. The password unlocks it here and is kept nowhere.

        Without a way to cut, or a kind of PDF, those of the collection hold. Other bytes under a name that is known
        become its next version; the bytes of an earlier version restore it. `metadata` says what searches may be
        narrowed by, in the fields that the collection has for that; `InvalidInput` for others.

        Raises a `DocumentError` when the file cannot be used: `PasswordNeeded` and `PasswordWrong` ask for a password,
        `DocumentAlreadyStored` carries `document_id` and `title` of the document with the same content.
        """
        require_admin(identity)
        if collection.tenant_id != identity.tenant_id:
            raise NotFound
        profile = profile_of(collection)
        narrowing = collecting.narrowing_metadata(profile, metadata or {})
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
                pdf_type=pdf_type,
                added_by=identity,
                queue=self._queue,
            )
        except DocumentAlreadyStored as exc:
            if not exc.details.get("is_earlier_version"):
                raise
            document_id = exc.details["document_id"]
            self.versions.restore(identity, document_id)
        if narrowing:
            parameters = {"document_id": document_id, "metadata": Jsonb(narrowing), "message": None}
            self._database.execute(identity, "note_metadata", **parameters)
        return self.get(identity, document_id)

    def confirm(self, identity: Identity, document_id: UUID) -> Document:
        """Say yes to the estimate: the document is processed. Does nothing when it was confirmed already."""
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            parameters = {"document_id": document_id}
            if connection.execute(queries["confirm_document"], parameters).rowcount:
                self._queue.enqueue(identity.tenant_id, document_id, connection=connection)
        return self.get(identity, document_id)

    def confirm_all(self, identity: Identity, *, until: datetime) -> int:
        """Say yes to every estimate made by `until`, as their total was shown then; how many documents that were."""
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            found = connection.execute(queries["confirmable_documents"], {"until": until}).fetchall()
        for (document_id,) in found:
            self.confirm(identity, document_id)
        return len(found)

    def discard(self, identity: Identity, document_id: UUID) -> None:
        """Say no to the estimate: the document and its file are removed.

        Raises `InvalidInput` when it is processed already, for another administrator said yes meanwhile.
        """
        if not self._remove(identity, document_id, (DocumentStatus.ESTIMATED, DocumentStatus.READING)):
            self.get(identity, document_id)
            raise InvalidInput("This document is no longer waiting for a decision. Delete it in the library instead.")

    def retry(self, identity: Identity, document_id: UUID) -> Document:
        """Queue a failed document again; what was done and paid is kept. Raises `InvalidInput` for any other."""
        require_admin(identity)
        with self._database.transaction(identity) as connection:
            parameters = {"document_id": document_id}
            if not connection.execute(queries["retry_document"], parameters).rowcount:
                raise InvalidInput("Only a document that failed or needs text recognition can be tried again.")
            self._queue.enqueue(identity.tenant_id, document_id, connection=connection)
        return self.get(identity, document_id)

    def delete(self, identity: Identity, document_id: UUID) -> None:
        """Remove a document with all its versions, or one version that does not answer now.

        Pages, chunks, vectors and keywords go in one transaction, which also leaves word to remove the file. Raises
        `NotFound`, `SignInAgain`. When this returns, nothing of it can be found or opened.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        if not self._remove(identity, document_id, None):
            raise NotFound

    def _remove(self, identity: Identity, document_id: UUID, statuses: Sequence[DocumentStatus] | None) -> bool:
        """Delete a document in one of these states, or in any; whether there was one."""
        require_admin(identity)
        tenant_id = identity.tenant_id
        with self._database.transaction(identity) as connection:
            parameters = {"document_id": document_id, "statuses": None if statuses is None else [*statuses]}
            removed = dict(connection.execute(queries["delete_document"], parameters).fetchall())
            if removed:
                request_file_removal(connection, tenant_id, [*removed.values()])
        self._forget(tenant_id, removed)
        return bool(removed)

    def _forget(self, tenant_id: str, removed: Several[UUID]) -> None:
        """Remove the pictures of deleted documents, and the files that wait to be removed."""
        for document_id in removed:
            self._images.forget(document_id)
        if removed:
            # At once where it can be; the job that was queued with the deletion finds nothing left to do then.
            self._removals.run(tenant_id)

    def delete_collection(self, identity: Identity, collection_id: UUID, *, confirmed_name: str) -> None:
        """Delete a collection with its documents and conversations, once its name was given as a confirmation.

        What was asked and what it cost stays in the analytics. Raises `InvalidInput` for another name, `NotFound`,
        `SignInAgain`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        tenant_id = identity.tenant_id
        with self._database.transaction(identity) as connection:
            found = self._locked(connection, collection_id)
            if " ".join(confirmed_name.split()) != found:
                raise InvalidInput(f"Type the collection's name, {found}, to delete it.")
            parameters = {"collection_id": collection_id}
            removed = dict(connection.execute(queries["files_of_collection"], parameters).fetchall())
            connection.execute(queries["delete_collection"], parameters)
            if removed:
                request_file_removal(connection, tenant_id, [*removed.values()])
        self._forget(tenant_id, removed)

    def _locked(self, connection: Connection, collection_id: UUID) -> str:
        """The name of a collection that nobody else changes until the transaction ends."""
        row = connection.execute(queries["lock_collection"], {"collection_id": collection_id}).fetchone()
        if row is None:
            raise NotFound("This collection does not exist, or no longer.")
        return str(row[2])
