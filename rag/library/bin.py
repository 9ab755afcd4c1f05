"""Keep deleted documents and collections in a bin for thirty days: hidden from search, but restorable."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import errors
from psycopg.types.json import Jsonb

from rag.access.sessions import require_admin, require_recent
from rag.errors import InvalidInput, NotFound
from rag.ingestion.document_jobs import DocumentJob, JobControl, JobQueue
from rag.ingestion.document_rows import request_file_removal
from rag.ingestion.publish import restore, restore_all
from rag.retrieval.bm25.index import remove_documents
from rag.storage.database import Database, one_act, queries
from rag.types import Identity, Who

#: How long a document stays in the bin.
BIN_DAYS = 30
#: Documents per transaction: publishing in their collections waits for it.
DOCUMENTS_AT_ONCE = 100
NO_LONGER_HERE = "This document is no longer in the bin."
#: The most rows on the bin's page.
MOST_LISTED = 20_000

#: Estimates a restored document whose vectors have to be made again.
Estimate = Callable[[DocumentJob], dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Binned:
    """An entry in the bin, and when the entry was deleted."""

    id: UUID
    binned_at: datetime

    @property
    def kept_until(self) -> datetime:
        """The time at which the entry is deleted permanently."""
        return self.binned_at + timedelta(days=BIN_DAYS)


@dataclass(frozen=True, kw_only=True)
class BinnedDocument(Binned):
    """A document in the bin, with the versions deleted together with it."""

    title: str
    file_name: str
    version: int
    page_count: int
    collection_id: UUID
    binned_by_name: str


@dataclass(frozen=True, kw_only=True)
class BinnedCollection(Binned):
    """A collection in the bin, with the documents and conversations deleted together with it."""

    name: str
    documents: int
    conversations: int


class Bin:
    """Delete documents and collections to the bin, and restore them. Changes need an administrator."""

    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        *,
        estimate: Estimate,
        forget: Callable[[str, Iterable[UUID]], None],
    ) -> None:
        self._database = database
        self._queue = queue
        self._control = JobControl(database)
        self._estimate = estimate
        self._forget = forget

    def put(self, identity: Identity, document_ids: Sequence[UUID], *, is_unconfirmed: bool = False) -> int:
        """Move documents to the bin: a published document with all versions, an unpublished version alone.

        They can no longer be found or opened. Returns how many of the given documents were moved. If `is_unconfirmed`,
        only documents waiting for confirmation are moved, and `InvalidInput` is raised if no document is waiting.
        Raises `SignInAgain`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        with one_act():
            binned = self._put(identity, document_ids, is_unconfirmed=is_unconfirmed)
        if is_unconfirmed and document_ids and not binned:
            raise InvalidInput("This document no longer needs a decision. Delete it in the library instead.")
        return len(binned.intersection(document_ids))

    def _put(self, identity: Identity, document_ids: Sequence[UUID], *, is_unconfirmed: bool) -> set[UUID]:
        binned: set[UUID] = set()
        for first in range(0, len(document_ids), DOCUMENTS_AT_ONCE):
            part = list(document_ids[first : first + DOCUMENTS_AT_ONCE])
            with self._database.transaction(identity) as connection:
                parameters = {"document_ids": part, "is_unconfirmed": is_unconfirmed}
                rows = connection.execute(queries["bin_documents"], parameters).fetchall()
                answered = [document_id for document_id, _, status in rows if status == "completed"]
                remove_documents(connection, tenant_id=identity.tenant_id, document_ids=answered)
                connection.execute(queries["enqueue_empty_bin"], {"days": BIN_DAYS})
            binned |= {row[0] for row in rows}
        return binned

    def put_collection(self, identity: Identity, collection_id: UUID) -> None:
        """Move a collection with all documents to the bin, and hide the conversations.

        The collection can no longer be chosen or searched. Raises `NotFound`, `SignInAgain`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        where = {"collection_id": collection_id}
        with one_act(), self._database.transaction(identity) as connection:
            if connection.execute(queries["bin_collection"], where).fetchone() is None:
                raise NotFound("This collection does not exist. It may have been deleted.")
            rows = connection.execute(queries["bin_documents_of"], where).fetchall()
            answered = [document_id for document_id, status in rows if status == "completed"]
            remove_documents(connection, tenant_id=identity.tenant_id, document_ids=answered)
            connection.execute(queries["enqueue_empty_bin"], {"days": BIN_DAYS})

    def collections(self, who: Who) -> builtins.list[BinnedCollection]:
        """List the collections in the bin, last deleted first."""
        return self._database.fetch_all(who, "binned_collections", BinnedCollection)

    def take_collection_back(self, identity: Identity, collection_id: UUID) -> builtins.list[str]:
        """Restore a collection and the documents deleted with it. Raises `NotFound`.

        Returns the reasons why some documents stayed in the bin. If a different collection uses the name by now, the
        day of deletion is added to the restored collection's name.
        """
        require_admin(identity)
        where = {"collection_id": collection_id}
        with one_act():
            with self._database.transaction(identity) as connection:
                document_ids = [row[0] for row in connection.execute(queries["documents_binned_with"], where)]
                parameters = {**where, "document_ids": []}
                if connection.execute(queries["take_collections_back"], parameters).fetchone() is None:
                    raise NotFound("This collection is no longer in the bin.")
                connection.execute(queries["enqueue_schedule"], where)
            return self.take_back_all(identity, document_ids)

    def list(self, who: Who) -> list[BinnedDocument]:
        """List the documents in the bin, last deleted first."""
        return self._database.fetch_all(who, "binned_documents", BinnedDocument, limit=MOST_LISTED)

    def count(self, who: Who) -> int:
        return int(self._database.fetch_value(who, "count_binned"))

    def take_back_all(self, identity: Identity, document_ids: Iterable[UUID]) -> builtins.list[str]:
        """Restore several documents. Return the distinct reasons why some stayed in the bin."""
        require_admin(identity)
        distinct_ids, problems = [*dict.fromkeys(document_ids)], dict[str, None]()
        with one_act():
            for first in range(0, len(distinct_ids), DOCUMENTS_AT_ONCE):
                part = distinct_ids[first : first + DOCUMENTS_AT_ONCE]
                try:
                    missing = self._take_back(identity, part)
                except errors.UniqueViolation:
                    # A document stays if its content was added again meanwhile; the others are restored.
                    for document_id in part:
                        try:
                            self.take_back(identity, document_id)
                        except (InvalidInput, NotFound) as error:
                            problems.setdefault(error.message)
                else:
                    if missing:
                        problems.setdefault(NO_LONGER_HERE)
        return [*problems]

    def take_back(self, identity: Identity, document_id: UUID) -> None:
        """Restore a document with its versions. A published document is searchable again immediately.

        If the collection's embedding model has changed, the document gets a new estimate and waits for confirmation.
        Raises `NotFound`, and `InvalidInput` if a document with the same content was added meanwhile.
        """
        require_admin(identity)
        try:
            with one_act():
                missing = self._take_back(identity, [document_id])
        except errors.UniqueViolation as exc:
            raise InvalidInput(
                "The library already has another document with the same content. Delete the other document "
                "first, or leave this document in the bin."
            ) from exc
        if missing:
            raise NotFound(NO_LONGER_HERE)

    def _take_back(self, identity: Identity, document_ids: Sequence[UUID]) -> set[UUID]:
        with self._database.transaction(identity) as connection:
            parameters = {"document_ids": [*document_ids]}
            connection.execute(queries["take_collections_back"], {**parameters, "collection_id": None})
            rows = connection.execute(queries["take_from_bin"], parameters).fetchall()
            for document_id, status in rows:
                if status in ("reading", "processing"):
                    self._queue.enqueue(identity.tenant_id, document_id, connection=connection)
            answered = [document_id for document_id, status in rows if status == "completed"]
            restored = restore_all(connection, identity.tenant_id, answered)
        for document_id in answered:
            if document_id not in restored:
                self._restore(identity, document_id)
        return {*document_ids}.difference(document_id for document_id, _ in rows)

    def _restore(self, identity: Identity, document_id: UUID) -> None:
        job = self._control.job(identity.tenant_id, document_id)
        with self._database.transaction(identity) as connection:
            connection.execute(queries["lock_versions"], {"original_id": job.document.original_id})
            if not restore(connection, job.document, job.collection.embedding_model):
                parameters = {"document_id": document_id, "estimate": Jsonb(self._estimate(job))}
                connection.execute(queries["await_confirmation"], parameters)

    def delete_for_good(self, identity: Identity, document_ids: Sequence[UUID]) -> int:
        """Delete documents in the bin permanently, with their files.

        Returns the number of deleted versions. Raises `SignInAgain`.
        """
        require_admin(identity)
        require_recent(self._database, identity)
        return self._delete(identity, document_ids)

    def empty(self, tenant_id: str) -> int:
        """Delete entries permanently after thirty days in the bin. Returns the number of deleted versions.

        Also queues the next run.
        """
        return self._delete(tenant_id, ())

    def _delete(self, who: Identity | str, document_ids: Sequence[UUID]) -> int:
        tenant_id = who if isinstance(who, str) else who.tenant_id
        with self._database.transaction(who) as connection:
            parameters = {"document_ids": list(document_ids), "days": BIN_DAYS}
            removed = dict(connection.execute(queries["take_out_of_bin_for_good"], parameters).fetchall())
            if removed:
                request_file_removal(connection, tenant_id, [*removed.values()])
            if not document_ids:
                connection.execute(queries["take_collections_out_for_good"], {"days": BIN_DAYS})
            connection.execute(queries["enqueue_empty_bin"], {"days": BIN_DAYS})
        self._forget(tenant_id, removed)
        return len(removed)
