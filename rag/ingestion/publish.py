"""Publish a document's version and supersede the previous version, in a single transaction."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from rag.ingestion.document_jobs import DocumentJob, JobControl, ModelChanged, hold
from rag.money.ledger import Ledger, amounts_to_json
from rag.monitoring.tracing import ms_since
from rag.retrieval.bm25.index import index_document, index_documents, remove_document
from rag.storage.database import queries
from rag.types import Document, Step

#: Documents in one transaction.
DOCUMENTS_INDEXED = 50


@dataclass(frozen=True, kw_only=True)
class Processed:
    """A processed document's counts and remarks, needed for publication."""

    chunk_count: int
    #: Remarks for the admin, or "".
    message: str
    #: The model of the stored vectors.
    embedding_model: str
    #: A step left for later, while the document is already searchable.
    waits_for: Step | None = None


def publish(control: JobControl, ledger: Ledger, job: DocumentJob, processed: Processed) -> None:
    """Make a processed version searchable in place of the published version: state, counts, costs and keyword index.

    If a later version is already published, this version is marked superseded instead. Raises `ModelChanged` if the
    collection's embedding model has changed.
    """
    control.stop_if_asked()
    started = time.perf_counter()
    control.note_progress(job, Step.PUBLISH, 0, 1)
    document = job.document
    costs = ledger.document_costs(document.tenant_id, document.id)
    with control.database.transaction(document.tenant_id) as connection:
        hold(connection, job)
        is_current = take_place(connection, document, processed.embedding_model)
        parameters = {
            **job.key,
            "chunk_count": processed.chunk_count,
            "message": processed.message,
            "status": "completed" if is_current else "superseded",
            "elapsed_ms": round(ms_since(started)),
            "waits_for": processed.waits_for,
        }
        connection.execute(queries["publish_document"], parameters)
        if is_current:
            _index(connection, document)
        connection.execute(queries["note_costs"], {**job.key, "costs": Jsonb(amounts_to_json(costs))})


def take_place(connection: Connection, document: Document, embedding_model: str) -> bool:
    """Supersede the published version and return `True`. If the published version is later, only return `False`.

    Raises `ModelChanged` if `embedding_model` is no longer the collection's model.
    """
    parameters: dict[str, Any] = {
        "document_id": document.id,
        "original_id": document.original_id,
        "collection_id": document.collection_id,
    }
    connection.execute(queries["lock_versions"], parameters)
    model = connection.execute(queries["hold_embedding_model"], parameters).fetchone()
    if model is None or model[0] != embedding_model:
        raise ModelChanged
    if connection.execute(queries["later_version_answers"], parameters).fetchone():
        return False
    for (replaced,) in connection.execute(queries["supersede_versions"], parameters).fetchall():
        remove_document(
            connection,
            tenant_id=document.tenant_id,
            collection_id=document.collection_id,
            document_id=replaced,
        )
    return True


def restore(connection: Connection, document: Document, embedding_model: str) -> bool:
    """Publish an earlier version again, in the caller's transaction.

    Returns `False` if the vectors are from a different embedding model: the version must then be embedded first.
    """
    key = {"document_id": document.id}
    connection.execute(queries["ask_again"], key)
    models: Sequence[tuple[str]] = connection.execute(queries["models_of_document"], key).fetchall()
    if {model for (model,) in models} != {embedding_model}:
        return False
    take_place(connection, document, embedding_model)
    connection.execute(queries["restore_version"], key)
    _index(connection, document)
    return True


def restore_all(connection: Connection, tenant_id: str, document_ids: Sequence[UUID]) -> set[UUID]:
    """Publish several earlier versions again, in the caller's transaction. Returns the ids of the published versions.

    The statement count does not depend on the version count. A version is not published if the vectors are from a
    different model, or if a different version has been published.
    """
    if not document_ids:
        return set()
    versions = {"document_ids": [*document_ids]}
    for name in ("lock_versions_of_all", "hold_embedding_models"):
        connection.execute(queries[name], versions)
    restored: dict[UUID, list[UUID]] = {}
    for document_id, collection_id in connection.execute(queries["restore_versions"], versions).fetchall():
        restored.setdefault(collection_id, []).append(document_id)
    for collection_id, ids in sorted(restored.items()):
        index_documents(connection, tenant_id=tenant_id, collection_id=collection_id, document_ids=ids)
        parameters = {"tenant_id": tenant_id, "collection_id": collection_id, "wait_seconds": 0.0}
        connection.execute(queries["enqueue_meaning"], parameters)
    return {document_id for ids in restored.values() for document_id in ids}


def index_folders(control: JobControl, tenant_id: str, collection_id: UUID) -> None:
    """Index documents in folders again, because earlier releases left the folder out."""
    where: dict[str, Any] = {"tenant_id": tenant_id, "collection_id": collection_id}
    after: UUID | None = None
    with control.claimed(tenant_id, f"folders {collection_id}"):
        while True:
            control.stop_if_asked()
            with control.database.transaction(tenant_id) as connection:
                parameters = {**where, "after": after, "limit": DOCUMENTS_INDEXED}
                ids = [row[0] for row in connection.execute(queries["documents_in_folders"], parameters).fetchall()]
                if not ids:
                    return
                index_documents(connection, **where, document_ids=ids)
            after = ids[-1]


def _index(connection: Connection, document: Document) -> None:
    index_document(
        connection,
        tenant_id=document.tenant_id,
        collection_id=document.collection_id,
        document_id=document.id,
    )
    # Also without a model of meaning: the job then waits until a model is installed.
    parameters = {"tenant_id": document.tenant_id, "collection_id": document.collection_id, "wait_seconds": 0.0}
    connection.execute(queries["enqueue_meaning"], parameters)
