"""Collections over HTTP: which there are, what is in them, and a file put into one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import from_json

from rag.api.bodies import FileField
from rag.api.endpoint import ApiBody, ApiModel, Call, endpoint
from rag.api.library import DOCUMENTS, DocumentShape
from rag.api.parts import running
from rag.errors import InvalidInput
from rag.types import ChunkingMethod, Collection, CollectionContents, PdfType

COLLECTIONS = ("Collections",)
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
    return DocumentShape.of(added)


def _collection(found: Collection, contents: CollectionContents | None) -> CollectionShape:
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


ROUTES = [list_collections, get_collection, add_document]
