"""What a document was read and cut into: its pages as text, and its passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from pydantic import Field

from rag.api.endpoint import ApiModel, Call, endpoint
from rag.api.library import DOCUMENTS, Paging
from rag.api.parts import running

Part = Callable[..., Sequence[Any]]
Count = Callable[..., int]


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
    library = running().documents
    part = _part(call, library.chunks, library.count_chunks)
    return Chunks.model_validate({"chunks": part.pop("found"), **part}, from_attributes=True)


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
    library = running().documents
    part = _part(call, library.pages, library.count_pages)
    return Pages.model_validate({"pages": part.pop("found"), **part}, from_attributes=True)


def _part(call: Call[None], read: Part, count: Count) -> dict[str, Any]:
    """The wanted part of a document's list with how it lies in the whole. Raises `NotFound`."""
    document_id, part = call.uuid("document_id"), call.parameters
    running().documents.get(call.identity, document_id)
    return {
        "found": read(call.identity, document_id, limit=part.limit, offset=part.offset),
        "total": count(call.identity, document_id),
        "limit": part.limit,
        "offset": part.offset,
    }


ROUTES = [list_chunks, list_pages]
