"""The documents of every collection as plain REST: looked at, confirmed, tried again, removed."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from rag.api.endpoint import ApiModel, Call, endpoint
from rag.api.parts import running
from rag.types import Document, DocumentStatus

MOST_LISTED = 500
DOCUMENTS = ("Documents",)


class DocumentShape(ApiModel):
    """A document and where it stands."""

    id: UUID
    collection_id: UUID
    title: str
    file_name: str
    file_size: int
    mime_type: str
    sha256: str
    status: DocumentStatus = Field(description="Only completed documents are searched.")
    step: str = Field(description="The step under way, or the one that failed.")
    steps_done: int
    steps_total: int
    message: str = Field(description="One sentence on why it failed, or what to know about it.")
    page_count: int
    chunk_count: int
    character_count: int
    language: str
    chunking_method: str
    version: int
    estimate: dict[str, Any] | None = Field(description="What processing would cost, in US dollars.")
    costs: dict[str, Any] = Field(description="What it did cost, in US dollars, by step.")
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, found: Document) -> DocumentShape:
        """A document as callers are told of it."""
        return cls.model_validate(found, from_attributes=True)


class Documents(ApiModel):
    documents: list[DocumentShape]
    total: int = Field(description="Of all pages of this list.")
    limit: int
    offset: int


class Paging(ApiModel):
    """Which part of a list."""

    limit: int = Field(default=50, ge=1, le=MOST_LISTED)
    offset: int = Field(default=0, ge=0, le=1_000_000_000)


class DocumentFilter(Paging):
    """Which documents, newest first."""

    collection_id: UUID | None = None
    status: DocumentStatus | None = None


@endpoint(
    "/api/documents",
    scope="documents:read",
    summary="List documents",
    parameters=DocumentFilter,
    answer=Documents,
    tags=DOCUMENTS,
)
def list_documents(call: Call[None]) -> Documents:
    """The documents of all collections or one, newest first; of those with versions, the one that answers."""
    wanted: DocumentFilter = call.parameters
    library, collection_id, status = running().documents, wanted.collection_id, wanted.status
    shown = library.list(
        call.identity, collection_id=collection_id, status=status, limit=wanted.limit, offset=wanted.offset
    )
    return Documents(
        documents=[DocumentShape.of(document) for document in shown],
        total=library.count(call.identity, collection_id=collection_id, status=status),
        limit=wanted.limit,
        offset=wanted.offset,
    )


@endpoint(
    "/api/documents/{document_id}",
    scope="documents:read",
    summary="One document",
    answer=DocumentShape,
    tags=DOCUMENTS,
)
def get_document(call: Call[None]) -> DocumentShape:
    """A document and where it stands; ask again until its status is completed."""
    return DocumentShape.of(running().documents.get(call.identity, call.uuid("document_id")))


@endpoint(
    "/api/documents/{document_id}",
    method="DELETE",
    scope="documents:write",
    summary="Delete a document",
    status=204,
    tags=DOCUMENTS,
)
def delete_document(call: Call[None]) -> None:
    """Remove a document with all its versions. When this answers, nothing of it can be found or opened."""
    running().documents.delete(call.identity, call.uuid("document_id"))


@endpoint(
    "/api/documents/{document_id}/versions",
    scope="documents:read",
    summary="Its versions",
    answer=Documents,
    tags=DOCUMENTS,
)
def list_versions(call: Call[None]) -> Documents:
    """All versions of a document, the latest first."""
    library = running().documents
    found = library.versions.of(call.identity, library.get(call.identity, call.uuid("document_id")))
    return Documents(documents=[DocumentShape.of(d) for d in found], total=len(found), limit=len(found), offset=0)


@endpoint(
    "/api/documents/{document_id}/confirm",
    method="POST",
    scope="documents:write",
    summary="Confirm the estimated cost",
    answer=DocumentShape,
    tags=DOCUMENTS,
)
def confirm_document(call: Call[None]) -> DocumentShape:
    """Say yes to the estimate: the document is processed. Confirming twice does nothing."""
    return DocumentShape.of(running().documents.confirm(call.identity, call.uuid("document_id")))


@endpoint(
    "/api/documents/{document_id}/discard",
    method="POST",
    scope="documents:write",
    summary="Discard instead of confirming",
    status=204,
    errors=(422,),
    tags=DOCUMENTS,
)
def discard_document(call: Call[None]) -> None:
    """Say no to the estimate: the document and its file are removed."""
    running().documents.discard(call.identity, call.uuid("document_id"))


@endpoint(
    "/api/documents/{document_id}/retry",
    method="POST",
    scope="documents:write",
    summary="Try a failed document again",
    answer=DocumentShape,
    errors=(422,),
    tags=DOCUMENTS,
)
def retry_document(call: Call[None]) -> DocumentShape:
    """Queue a document that failed; what was done and paid is kept."""
    library, document_id = running().documents, call.uuid("document_id")
    library.get(call.identity, document_id)
    return DocumentShape.of(library.retry(call.identity, document_id))


ROUTES = [
    list_documents,
    get_document,
    delete_document,
    list_versions,
    confirm_document,
    discard_document,
    retry_document,
]
