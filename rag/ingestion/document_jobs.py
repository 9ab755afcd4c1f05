"""Claim documents for jobs, store the jobs' progress, and stop them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from psycopg import Connection

from rag.errors import (
    DatabaseUnavailable,
    ProviderAnswerInvalid,
    ProviderKeyRejected,
    ProviderQuotaExhausted,
    ProviderUnavailable,
    TenantSuspended,
)
from rag.ingestion.document_rows import find_document
from rag.money.durable_calls import Payer
from rag.monitoring.tracing import ms_since
from rag.profiles import profile_of
from rag.profiles.profile import Profile
from rag.storage.collections import find_collections
from rag.storage.database import Database, queries
from rag.types import Collection, Document, Step

#: Errors an administrator must solve outside the product; jobs wait as long as needed.
WAITED_FOR = (ProviderKeyRejected, ProviderQuotaExhausted)
#: Errors worth a later retry: the document itself is fine.
TEMPORARY = (
    ProviderUnavailable,
    ProviderQuotaExhausted,
    ProviderKeyRejected,
    ProviderAnswerInvalid,
    DatabaseUnavailable,
    TenantSuspended,
)


class JobInterrupted(Exception):
    """The application is stopping; the job continues at its next start."""


class JobTaken(Exception):
    """A different worker has claimed this job."""


class DocumentGone(Exception):
    """The document was deleted during processing."""


class ModelChanged(Exception):
    """The collection's embedding model changed during processing. The document is embedded again."""


class JobQueue(Protocol):
    """A queue for jobs on documents."""

    def enqueue(self, tenant_id: str, document_id: UUID, *, connection: Connection | None = None) -> None: ...


@dataclass(frozen=True)
class DocumentJob:
    """A document with collection and profile, for the ingestion steps."""

    document: Document
    collection: Collection
    profile: Profile

    @property
    def key(self) -> dict[str, Any]:
        return {"document_id": self.document.id}

    @property
    def payer(self) -> Payer:
        """The payer for this job's calls: the document."""
        return Payer(self.document.tenant_id, self.document.id, document_id=self.document.id)


class JobControl:
    """Claim and stop jobs in this process. Thread-safe."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._stopping = threading.Event()
        self._held: set[str] = set()
        self._holding = threading.Lock()

    def stop(self) -> None:
        self._stopping.set()

    def resume(self) -> None:
        self._stopping.clear()

    def stop_if_asked(self) -> None:
        """Raise `JobInterrupted` if the application is stopping."""
        if self._stopping.is_set():
            raise JobInterrupted

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`. Raises `JobInterrupted` if the application stops during this time."""
        if self._stopping.wait(seconds):
            raise JobInterrupted

    @contextmanager
    def claimed(self, tenant_id: str, worked_on: UUID | str) -> Iterator[None]:
        """Claim a document, or a job by name, inside the `with` block. No other worker can then claim this document or
        job.

        The claim is a database lock held by a transaction, and ends with the process. A database restart also ends the
        lock, unnoticed by a worker which waits for a provider. Therefore each process also remembers claims. Raises
        `JobTaken` if a different worker holds the claim, and `TenantSuspended`.
        """
        key = str(worked_on)
        with self._holding:
            if key in self._held:
                raise JobTaken
            self._held.add(key)
        try:
            with self.database.transaction(tenant_id) as connection:
                got = connection.execute(queries["claim_document"], {"document_id": key}).fetchone()
                if not got or not got[0]:
                    raise JobTaken
                require_active(connection)
                yield
        finally:
            with self._holding:
                self._held.discard(key)

    def stop_if_suspended(self, tenant_id: str) -> None:
        """Raise `TenantSuspended` if this tenant is suspended."""
        with self.database.transaction(tenant_id) as connection:
            require_active(connection)

    def job(self, tenant_id: str, document_id: UUID) -> DocumentJob:
        """Load a document with collection and profile. Raises `DocumentGone`."""
        document = find_document(self.database, tenant_id, document_id)
        if document is None:
            raise DocumentGone
        collection = find_collection(self.database, tenant_id, document.collection_id)
        return DocumentJob(document, collection, profile_of(collection))

    def note_progress(self, job: DocumentJob, step: Step, done: int, total: int) -> None:
        """Store a step's progress, as finished and total units, for the documents page."""
        self.database.execute(job.document.tenant_id, "note_progress", **progress(job, step, done, total, None))


def find_collection(database: Database, tenant_id: str, collection_id: UUID) -> Collection:
    """Return a collection. Raises `DocumentGone` if it was deleted meanwhile."""
    collections = find_collections(database, tenant_id, collection_id=collection_id)
    if not collections:
        raise DocumentGone
    return collections[0]


def require_active(connection: Connection) -> None:
    """Raise `TenantSuspended` if the transaction's tenant is suspended."""
    row = connection.execute(queries["is_suspended"]).fetchone()
    if row and row[0]:
        raise TenantSuspended


def hold(connection: Connection, job: DocumentJob) -> None:
    """Lock a document's row: the document cannot be deleted before this transaction ends.

    Raises `DocumentGone`, `TenantSuspended`.
    """
    require_active(connection)
    if connection.execute(queries["hold_document"], job.key).fetchone() is None:
        raise DocumentGone


def progress(job: DocumentJob, step: Step, done: int, total: int, started: float | None) -> dict[str, Any]:
    """Return the parameters for the query `note_progress`.

    `started` is the step's start. The milliseconds since then are added to the processing time.
    """
    elapsed_ms = round(ms_since(started)) if started is not None else 0
    return {
        **job.key, "step": step, "steps_done": done, "steps_total": total, "message": None, "elapsed_ms": elapsed_ms,
    }  # fmt: skip
