"""Reference documents over HTTP, the eight routes of source 002: a PDF at once, or text, tags and vectors by steps."""

from __future__ import annotations

from uuid import UUID

from rag.api.endpoint import Call, endpoint
from rag.api.reference_shapes import Deleted, Described, Ingestion, Listed, Listing, Made, One, Registration, Text
from rag.errors import InvalidInput, PartMissing
from rag.profiles import REFERENCE_PROFILES
from rag.services import services
from rag.types import Collection, Identity

PATH = "/api/reference-documents"
TAGS = ("Reference documents",)
PROFILE = REFERENCE_PROFILES[0]
#: The collection made for the first reference document where there is none.
COLLECTION_NAME = "Legal references"
COLLECTION_LANGUAGE = "ko"
#: JSON of a whole document's text, in UTF-8.
TEXT_BYTES = 8 * 1024 * 1024


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
    return Made.of(made)


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
    return One(document=Described.of(made))


@endpoint(
    PATH, scope="documents:read", summary="List reference documents", parameters=Listing, answer=Listed, tags=TAGS
)
def list_reference_documents(call: Call[None]) -> Listed:
    """Newest first, with how many chunks each has, how many of them have vectors and tags."""
    limit, offset = call.parameters.limit, call.parameters.offset
    found, total = services().references.list(call.identity, limit=limit, offset=offset)
    return Listed(documents=[Described.of(item) for item in found], total=total, limit=limit, offset=offset)


@endpoint(
    f"{PATH}/{{id}}", scope="documents:read", summary="One reference document", answer=One, errors=(404,), tags=TAGS
)
def get_reference_document(call: Call[None]) -> One:
    """Its particulars and how far it is."""
    return One(document=Described.of(services().references.get(call.identity, call.uuid("id"))))


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
    made = services().references.chunk(call.identity, call.uuid("id"), page_texts=call.body.by_page())
    return Made.of(made)


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
    return Made.of(services().references.tag(call.identity, call.uuid("id")))


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
    return Made.of(services().references.embed(call.identity, call.uuid("id")))


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
    services().references.get(call.identity, document_id)
    services().documents.delete(call.identity, document_id)
    return Deleted(id=document_id)


def _collection(identity: Identity, collection_id: UUID | None) -> Collection:
    """The collection that is meant; without one the default of the profile, made now where there is none."""
    library = services().documents
    if collection_id is not None:
        found = library.collection(identity, collection_id)
        if found.profile not in REFERENCE_PROFILES:
            raise InvalidInput(f"“{found.name}” is no collection of legal references. Choose one, or leave it out.")
        return found
    return library.choose(identity, profile=PROFILE) or library.create_collection(
        identity, COLLECTION_NAME, PROFILE, language=COLLECTION_LANGUAGE
    )


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
