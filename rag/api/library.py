"""The documents of every collection as plain REST: put in, looked at, confirmed, tried again, removed."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import from_json

from rag.api.bodies import FileField
from rag.api.endpoint import ApiBody, ApiModel, Call, endpoint
from rag.api.parts import running
from rag.errors import InvalidInput
from rag.types import (
    ChunkingMethod,
    CollectionContents,
    Document,
    DocumentChunk,
    DocumentPage,
    DocumentStatus,
    PdfType,
)
from rag.types import Collection as StoredCollection

MOST_LISTED = 500
COLLECTIONS, DOCUMENTS = ("Collections",), ("Documents",)
#: What a form sends for a field that was left empty.
EMPTY_IS_NONE = BeforeValidator(lambda value: value or None)
Method = Annotated[ChunkingMethod | None, EMPTY_IS_NONE]
KindOfPdf = Annotated[PdfType | None, EMPTY_IS_NONE]
#: A form has no objects, so this one comes as a text of JSON.
Narrowing = Annotated[
    dict[str, str],
    BeforeValidator(lambda value: from_json(value or "{}") if isinstance(value, str) else value),
    WithJsonSchema({"type": "string", "contentMediaType": "application/json", "examples": ['{"department": "HR"}']}),
]


class CollectionShape(ApiModel):
    """A collection: documents that are read, searched and answered by one profile."""

    id: UUID
    name: str
    profile: str
    language: str
    embedding_model: str
    documents: int
    ready: int = Field(description="Documents that can be searched.")
    pages: int
    chunks: int
    created_at: datetime


class Collections(ApiModel):
    collections: list[CollectionShape]
    total: int


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


class Documents(ApiModel):
    documents: list[DocumentShape]
    total: int = Field(description="Of all pages of this list.")
    limit: int
    offset: int


class ChunkShape(ApiModel):
    """A passage of a document."""

    id: UUID
    chunk_index: int
    content: str
    first_page: int
    last_page: int
    section: str
    tokens: int
    has_embedding: bool
    metadata: dict[str, Any]


class Chunks(ApiModel):
    chunks: list[ChunkShape]
    total: int
    limit: int
    offset: int


class PageShape(ApiModel):
    """The text of a page."""

    number: int
    label: str
    text: str
    method: str = Field(description="text, ocr or none.")
    language: str
    warnings: list[str]


class Pages(ApiModel):
    pages: list[PageShape]
    total: int
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


class UploadForm(ApiBody):
    """A file with how it is to be read."""

    file: FileField
    password: str = Field(default="", max_length=1000, description="Opens a protected PDF; used once, never stored.")
    chunking_method: Method = Field(default=None, description="Default: the collection's.")
    generate_metadata: bool = Field(default=True, description="Have a model sum it up and tag it.")
    pdf_type: KindOfPdf = Field(
        default=None,
        description="scanned recognises the text of every page, digital of none, auto of pages without text. "
        "Default: the collection's.",
    )
    metadata: Narrowing = Field(
        default_factory=dict,
        description="What searches may be narrowed by, such as the department, in the fields that the collection has "
        "for that: an object of texts as JSON.",
    )


@endpoint("/api/collections", scope="documents:read", summary="List collections", answer=Collections, tags=COLLECTIONS)
def list_collections(call: Call[None]) -> Collections:
    """The collections you may read, the oldest first."""
    library = running().documents
    contents = library.contents(call.identity)
    found = [_collection(c, contents.get(c.id)) for c in library.collections(call.identity)]
    return Collections(collections=found, total=len(found))


@endpoint(
    "/api/collections/{collection_id}",
    scope="documents:read",
    summary="One collection",
    answer=CollectionShape,
    tags=COLLECTIONS,
)
def get_collection(call: Call[None]) -> CollectionShape:
    """A collection with how much is in it."""
    library = running().documents
    found = library.collection(call.identity, call.uuid("collection_id"))
    return _collection(found, library.contents(call.identity).get(found.id))


@endpoint(
    "/api/collections/{collection_id}/documents",
    method="POST",
    scope="documents:write",
    summary="Add a document",
    body=UploadForm,
    multipart=True,
    maximum_bytes=lambda: running().settings.maximum_upload_bytes,
    answer=DocumentShape,
    status=201,
    errors=(409,),
    tags=DOCUMENTS,
)
def add_document(call: Call[UploadForm]) -> DocumentShape:
    """Upload a file. It is read at once, then waits with its estimated cost until it is confirmed or discarded.

    Other bytes under a known name become that document's next version; the same bytes answer 409 with the id of the
    document that has them.
    """
    parts, form = running(), call.body
    collection = parts.documents.collection(call.identity, call.uuid("collection_id"))
    if not form.file.name.strip():
        raise InvalidInput("The file needs a name.")
    added = parts.documents.upload(
        call.identity,
        collection,
        form.file.name,
        form.file.content,
        password=form.password or None,
        chunking_method=form.chunking_method,
        generate_metadata=form.generate_metadata,
        pdf_type=form.pdf_type,
        metadata=form.metadata,
    )
    return _document(added)


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
        documents=[_document(document) for document in shown],
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
    return _document(running().documents.get(call.identity, call.uuid("document_id")))


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
    "/api/documents/{document_id}/chunks",
    scope="documents:read",
    summary="Its passages",
    parameters=Paging,
    answer=Chunks,
    tags=DOCUMENTS,
)
def list_chunks(call: Call[None]) -> Chunks:
    """The passages a document was cut into, in their order."""
    library, document_id = running().documents, call.uuid("document_id")
    library.get(call.identity, document_id)
    part: Paging = call.parameters
    found = library.chunks(call.identity, document_id, limit=part.limit, offset=part.offset)
    total = library.count_chunks(call.identity, document_id)
    return Chunks(chunks=[_chunk(chunk) for chunk in found], total=total, limit=part.limit, offset=part.offset)


@endpoint(
    "/api/documents/{document_id}/pages",
    scope="documents:read",
    summary="Its pages as text",
    parameters=Paging,
    answer=Pages,
    tags=DOCUMENTS,
)
def list_pages(call: Call[None]) -> Pages:
    """The text read from each page, how it was read, and what is doubtful about it."""
    library, document_id = running().documents, call.uuid("document_id")
    library.get(call.identity, document_id)
    part: Paging = call.parameters
    found = library.pages(call.identity, document_id, limit=part.limit, offset=part.offset)
    total = library.count_pages(call.identity, document_id)
    return Pages(pages=[_page(page) for page in found], total=total, limit=part.limit, offset=part.offset)


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
    return Documents(documents=[_document(d) for d in found], total=len(found), limit=len(found), offset=0)


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
    return _document(running().documents.confirm(call.identity, call.uuid("document_id")))


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
    return _document(library.retry(call.identity, document_id))


def _collection(found: StoredCollection, contents: CollectionContents | None) -> CollectionShape:
    return CollectionShape(
        id=found.id,
        name=found.name,
        profile=found.profile,
        language=found.language,
        embedding_model=found.embedding_model,
        documents=contents.documents if contents else 0,
        ready=contents.ready if contents else 0,
        pages=contents.pages if contents else 0,
        chunks=contents.chunks if contents else 0,
        created_at=found.created_at,
    )


def _document(found: Document) -> DocumentShape:
    return DocumentShape.model_validate(found, from_attributes=True)


def _chunk(found: DocumentChunk) -> ChunkShape:
    return ChunkShape.model_validate(found, from_attributes=True)


def _page(found: DocumentPage) -> PageShape:
    return PageShape.model_validate(found, from_attributes=True)


ROUTES = [
    list_collections,
    get_collection,
    add_document,
    list_documents,
    get_document,
    delete_document,
    list_chunks,
    list_pages,
    list_versions,
    confirm_document,
    discard_document,
    retry_document,
]
