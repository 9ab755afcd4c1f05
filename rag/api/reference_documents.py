"""Reference documents over HTTP, the eight routes of source 002: a PDF at once, or text, tags and vectors by steps."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from rag.api.bodies import FileField
from rag.api.endpoint import ApiBody, ApiModel, Call, endpoint
from rag.errors import InvalidInput, PartMissing
from rag.ingestion.references import LONGEST_DESCRIPTION, LONGEST_TITLE, ReferenceDocument
from rag.services import services
from rag.types import Collection, Identity

PATH = "/api/reference-documents"
TAGS = ("Reference documents",)
PROFILE = "legal"
#: The collection made for the first reference document where there is none.
COLLECTION_NAME = "Legal references"
COLLECTION_LANGUAGE = "ko"
PAGE_SIZE = 20
#: JSON of a whole document's text, in UTF-8.
TEXT_BYTES = 8 * 1024 * 1024
LONGEST_URL = 2000
LONGEST_FILE_NAME = 300
HIGHEST_PAGE = 1_000_000

Title = Annotated[str, Field(max_length=LONGEST_TITLE, description="What it is called in lists and references.")]
Description = Annotated[str | None, Field(alias="source_description", max_length=LONGEST_DESCRIPTION)]
CollectionId = Annotated[UUID | None, Field(description="A collection with the profile legal; the first if not given.")]


class Listing(ApiModel):
    """Which part of the list."""

    limit: int = Field(PAGE_SIZE, ge=1, le=100)
    offset: int = Field(0, ge=0, le=1_000_000)


class Registration(ApiBody):
    """The particulars of a document whose text comes later."""

    title: Title
    source_description: Description = None
    file_url: Annotated[str | None, Field(alias="file_url", max_length=LONGEST_URL)] = None
    file_name: Annotated[str | None, Field(alias="file_name", max_length=LONGEST_FILE_NAME)] = None
    collection_id: CollectionId = Field(None, strict=False)


class Ingestion(ApiBody):
    """A PDF with what to call it."""

    document: FileField | None = Field(None, description="The PDF.")
    title: Title | None = None
    source_description: Description = None
    pdf_type: Literal["scanned", "digital"] | None = Field(
        None, description="Scanned pages go through text recognition, digital ones are read as they are."
    )
    collection_id: CollectionId = None


class Text(ApiBody):
    """A document's text, whole or by page; neither cuts the pages it has anew."""

    full_text: str | None = None
    page_texts: dict[str, str] | None = Field(None, description='Text by page number: {"1": "…", "2": "…"}.')


class Made(ApiModel):
    """What a step did."""

    success: Literal[True] = True
    id: UUID
    title: str
    chunks_count: int
    embedded: int = Field(description="Chunks that have their vector.")
    tagged: int = Field(description="Chunks that have their tags.")
    message: str = Field("", description="What to know about it, such as why chunks are not tagged.")


class Described(ApiModel):
    """A reference document; names of its table's columns as they are, counts beside."""

    id: UUID
    collection_id: UUID
    title: str
    source_description: str | None = Field(alias="source_description")
    file_url: str | None = Field(alias="file_url")
    file_name: str = Field(alias="file_name")
    created_at: datetime = Field(alias="created_at")
    status: str
    message: str
    page_count: int
    chunks_count: int
    embedded: int
    tagged: int


class One(ApiModel):
    success: Literal[True] = True
    document: Described


class Listed(ApiModel):
    success: Literal[True] = True
    documents: list[Described]
    total: int
    limit: int
    offset: int


class Deleted(ApiModel):
    success: Literal[True] = True
    id: UUID


@endpoint(
    f"{PATH}/ingest",
    method="POST",
    scope="documents:write",
    summary="Add a PDF and process it at once",
    body=Ingestion,
    answer=Made,
    errors=(400, 404, 409, 413, 422, 502, 503),
    tags=TAGS,
    multipart=True,
    maximum_bytes=lambda: services().settings.maximum_upload_bytes,
)
def ingest_reference_document(call: Call[Ingestion]) -> Made:
    """Reads, chunks, embeds and tags; answers when it is searchable.

    When a step fails, the document stays: the problem's `details.document_id` names it, and its `/embed` and `/tag`
    go on from there.
    """
    body = call.body
    if body.document is None or not body.document.content:
        raise PartMissing("The file is missing. Send the PDF as the field document.")
    if not (body.title or "").strip():
        raise PartMissing("The title is missing. Send it as the field title.")
    made = services().references.ingest(
        call.identity,
        _collection(call.identity, body.collection_id),
        file_name=body.document.name,
        content=body.document.content,
        title=body.title or "",
        source_description=body.source_description or "",
        pdf_type=body.pdf_type,
    )
    return _made(made)


@endpoint(
    PATH,
    method="POST",
    scope="documents:write",
    summary="Register a document without its text",
    body=Registration,
    answer=One,
    status=201,
    errors=(400, 404, 422),
    tags=TAGS,
)
def register_reference_document(call: Call[Registration]) -> One:
    """Its text comes with `/chunk`; then `/tag` and `/embed`, in either order."""
    body = call.body
    if not body.title.strip():
        raise PartMissing("The title is missing. Send it as the field title.")
    made = services().references.register(
        call.identity,
        _collection(call.identity, body.collection_id),
        title=body.title,
        source_description=body.source_description or "",
        file_url=body.file_url or "",
        file_name=body.file_name or "",
    )
    return One(document=_described(made))


@endpoint(
    PATH, scope="documents:read", summary="List reference documents", parameters=Listing, answer=Listed, tags=TAGS
)
def list_reference_documents(call: Call[None]) -> Listed:
    """Newest first, with how many chunks each has, how many of them have vectors and tags."""
    limit, offset = call.parameters.limit, call.parameters.offset
    found, total = services().references.list(call.tenant_id, limit=limit, offset=offset)
    return Listed(documents=[_described(item) for item in found], total=total, limit=limit, offset=offset)


@endpoint(
    f"{PATH}/{{id}}", scope="documents:read", summary="One reference document", answer=One, errors=(404,), tags=TAGS
)
def get_reference_document(call: Call[None]) -> One:
    """Its particulars and how far it is."""
    return One(document=_described(services().references.get(call.tenant_id, call.uuid("id"))))


@endpoint(
    f"{PATH}/{{id}}/chunk",
    method="POST",
    scope="documents:write",
    summary="Cut a document's text into chunks",
    body=Text,
    answer=Made,
    errors=(400, 404, 409, 413, 422),
    tags=TAGS,
    maximum_bytes=TEXT_BYTES,
)
def chunk_reference_document(call: Call[Text]) -> Made:
    """Takes the place of what was cut before; the document is searched again once it is embedded."""
    made = services().references.chunk(call.identity, call.uuid("id"), page_texts=_page_texts(call.body))
    return _made(made)


@endpoint(
    f"{PATH}/{{id}}/tag",
    method="POST",
    scope="documents:write",
    summary="Tag the chunks that have no tags",
    answer=Made,
    errors=(404, 409, 503),
    tags=TAGS,
)
def tag_reference_document(call: Call[None]) -> Made:
    """A model notes topic, offence, summary and keywords. What fails stays without; call again for it."""
    return _made(services().references.tag(call.identity, call.uuid("id")))


@endpoint(
    f"{PATH}/{{id}}/embed",
    method="POST",
    scope="documents:write",
    summary="Embed the chunks that have no vector",
    answer=Made,
    errors=(404, 409, 422, 502, 503),
    tags=TAGS,
)
def embed_reference_document(call: Call[None]) -> Made:
    """Makes the document searchable when every chunk has its vector; goes on with an ingest that failed."""
    return _made(services().references.embed(call.identity, call.uuid("id")))


@endpoint(
    f"{PATH}/{{id}}",
    method="DELETE",
    scope="documents:write",
    summary="Delete a document with its chunks",
    answer=Deleted,
    errors=(404,),
    tags=TAGS,
)
def delete_reference_document(call: Call[None]) -> Deleted:
    """When this answers, nothing of it can be found any more."""
    document_id = call.uuid("id")
    services().references.get(call.tenant_id, document_id)
    services().documents.delete(call.identity, document_id)
    return Deleted(id=document_id)


def _collection(identity: Identity, collection_id: UUID | None) -> Collection:
    """The collection that is meant; the first with the profile, made now where there is none."""
    library = services().documents
    if collection_id is not None:
        found = library.collection(identity.tenant_id, collection_id)
        if found.profile != PROFILE:
            raise InvalidInput(f"“{found.name}” is no collection of legal references. Choose one, or leave it out.")
        return found
    known = [c for c in library.collections(identity.tenant_id) if c.profile == PROFILE]
    return (
        known[0]
        if known
        else library.create_collection(identity, COLLECTION_NAME, PROFILE, language=COLLECTION_LANGUAGE)
    )


def _page_texts(body: Text) -> dict[int, str] | None:
    if body.page_texts is not None and body.full_text is not None:
        raise InvalidInput("Send either fullText or pageTexts, not both.")
    if body.full_text is not None:
        return {1: body.full_text}
    if body.page_texts is None:
        return None
    numbered: dict[int, str] = {}
    for name, text in body.page_texts.items():
        if not (name.isascii() and name.isdigit() and 0 < int(name[:9]) <= HIGHEST_PAGE) or int(name) in numbered:
            raise InvalidInput(f"pageTexts has a page {name[:20]!r}: pages are numbers from 1, each once.")
        numbered[int(name)] = text
    return numbered


def _made(document: ReferenceDocument) -> Made:
    return Made(
        id=document.id,
        title=document.title,
        chunks_count=document.chunks,
        embedded=document.embedded,
        tagged=document.tagged,
        message=document.message,
    )


def _described(document: ReferenceDocument) -> Described:
    values: dict[str, Any] = {
        "id": document.id,
        "collection_id": document.collection_id,
        "title": document.title,
        "source_description": document.source_description or None,
        "file_url": document.file_url or None,
        "file_name": document.file_name,
        "created_at": document.created_at,
        "status": document.status,
        "message": document.message,
        "page_count": document.page_count,
        "chunks_count": document.chunks,
        "embedded": document.embedded,
        "tagged": document.tagged,
    }
    return Described(**values)


ROUTES = [
    ingest_reference_document,
    register_reference_document,
    list_reference_documents,
    get_reference_document,
    chunk_reference_document,
    tag_reference_document,
    embed_reference_document,
    delete_reference_document,
]
