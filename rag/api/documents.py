"""Routes for documents: list, confirm, retry and delete them, and read their chunks, pages and files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import Field

from rag.access.problems import problems
from rag.api.routing import ApiBody, ApiModel, ApiRoute, Caller, needs
from rag.errors import NotFound
from rag.ingestion.corrections import fingerprint, of_page
from rag.ingestion.loaders.decoding import decode
from rag.ingestion.loaders.format_table import file_formats
from rag.library.documents import DocumentLibrary
from rag.services import services
from rag.types import Document, DocumentStatus, Identity

router = APIRouter(route_class=ApiRoute, tags=["Documents"])

MOST_LISTED = 500
#: Page numbers in addresses.
HIGHEST_PAGE = 1_000_000
#: A page's default picture scale, relative to 72 dpi.
SCALE = 2.0
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    # The reader's browser may cache it, but asks each time whether it may still show it: deleted means gone.
    "Cache-Control": "private, no-cache",
    "Cross-Origin-Resource-Policy": "same-origin",
}
BINARY = {"type": "string", "contentMediaType": "application/octet-stream"}

#: For files other than PDFs: if a browser shows a file after all, it may load and run nothing. PDFs are exempt, because
#: browsers' PDF viewers do not work in this sandbox and have their own.
CONFINED = {**HEADERS, "Content-Security-Policy": "sandbox; default-src 'none'"}
PDF = file_formats().by_kind["pdf"].media_type
PLAIN_TEXT = "text/plain; charset=utf-8"
#: All results of `served_as`, for OpenAPI.
SERVED = {
    PDF: {"schema": BINARY},
    "text/plain": {"schema": {"type": "string"}},
    **{
        loader.media_type: {"schema": BINARY}
        for loader in file_formats().loaders
        if loader.served == "saved" and not loader.is_text
    },
    "application/octet-stream": {"schema": BINARY},
}
UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "What you have is still right."}}


class DocumentShape(ApiModel):
    """A document: its file, processing state, counts, costs and metadata."""

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
    def of(cls, document: Document) -> DocumentShape:
        """Convert a document to the API's format."""
        return cls.model_validate(document, from_attributes=True)


class Documents(ApiModel):
    documents: list[DocumentShape]
    total: int = Field(description="Of all pages of this list.")
    limit: int
    offset: int


class Paging(ApiModel):
    """The part of a list to return: at most `limit` items, after the first `offset` items."""

    limit: int = Field(default=50, ge=1, le=MOST_LISTED)
    offset: int = Field(default=0, ge=0, le=1_000_000_000)


class DocumentFilter(Paging):
    """Filters for a list of documents, and which part to return."""

    collection_id: UUID | None = None
    status: DocumentStatus | None = None


class ChunkShape(ApiModel):
    """A document's chunk: text, pages, section and metadata."""

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
    """A document's page: the text, and how the text was read."""

    number: int
    label: str
    text: str
    method: str = Field(description="text, ocr or none.")
    language: str
    warnings: list[str]
    is_corrected: bool = Field(description="Whether a person corrected the text.")


class CorrectionShape(ApiModel):
    """An entry in a page's correction history: the person, and the text before and after."""

    id: UUID
    page: int
    text_before: str
    text_after: str | None = Field(description="null: the text as read was put back.")
    corrected_by_name: str = Field(description="Empty for programs.")
    created_at: datetime
    is_applied: bool = Field(description="Whether this version of the document has it.")


class PageText(ApiModel):
    """A page's text, the text as read from the file, and the corrections made by people."""

    page: int
    text: str
    text_as_read: str
    is_corrected: bool
    fingerprint: str = Field(description="Of `text`: send it with a change, so that nobody else's is lost.")
    corrections: list[CorrectionShape] = Field(description="Of this page, also for other readings; the latest first.")


class NewPageText(ApiBody):
    """A corrected text for a page, to save or, with `dryRun`, only to estimate."""

    text: str = Field(description="Cells of a table are separated by ` | `, rows by lines.")
    fingerprint: str = Field(max_length=64, description="Of the text that was corrected, as the route with GET has it.")
    dry_run: bool = Field(default=False, description="Only say what it would cost.")


class CorrectionMade(ApiModel):
    """A correction's cost, and the document's new version, which is searchable when the status is completed."""

    passages: int = Field(description="How many are embedded again.")
    estimate: dict[str, Any] = Field(description="In US dollars.")
    document: DocumentShape | None = Field(description="null for a dry run.")


class Pages(ApiModel):
    pages: list[PageShape]
    total: int
    limit: int
    offset: int


class Download(ApiModel):
    """Whether the browser saves the file or shows the file."""

    download: str = Field(default="", max_length=20, description="Anything, such as 1: to be saved, never shown.")


class Picture(ApiModel):
    """The text to mark in a page's picture: a chunk and, more strongly, a sentence within the chunk."""

    highlight: UUID | None = Field(default=None, description="The id of a chunk to mark on the page.")
    sentence_start: int = Field(default=0, ge=0, le=1_000_000, description="Where in its text a sentence begins ...")
    sentence_end: int = Field(default=0, ge=0, le=1_000_000, description="... and ends that is marked more strongly.")


async def library() -> DocumentLibrary:
    """Return the running product's document library."""
    return services().documents


Library = Annotated[DocumentLibrary, Depends(library)]
PageNumber = Annotated[int, Path(ge=1, le=HIGHEST_PAGE)]
READ, WRITE = needs("documents:read"), needs("documents:write")


@router.get("/api/documents", summary="List documents", dependencies=[READ])
def list_documents(caller: Caller, library: Library, query: Annotated[DocumentFilter, Query()]) -> Documents:
    """List documents in all collections or in one, newest first, without superseded versions."""
    collection_id, status = query.collection_id, query.status
    documents = library.list(caller, collection_id=collection_id, status=status, limit=query.limit, offset=query.offset)
    return Documents(
        documents=[DocumentShape.of(document) for document in documents],
        total=library.count(caller, collection_id=collection_id, status=status),
        limit=query.limit,
        offset=query.offset,
    )


@router.get("/api/documents/{document_id}", summary="One document", dependencies=[READ])
def get_document(caller: Caller, library: Library, document_id: UUID) -> DocumentShape:
    """Return a document with its state. Poll until the status is completed."""
    return DocumentShape.of(library.get(caller, document_id))


@router.delete(
    "/api/documents/{document_id}",
    summary="Delete a document",
    dependencies=[WRITE],
    status_code=204,
    response_class=Response,
)
def delete_document(
    caller: Caller,
    library: Library,
    document_id: UUID,
    for_good: Annotated[
        bool, Query(alias="forGood", description="At once, also out of the bin. It cannot be brought back.")
    ] = False,
) -> None:
    """Move a document with all versions to the bin for 30 days, or delete the document permanently.

    After the response, nobody can find or open the document.
    """
    if for_good:
        library.delete(caller, document_id)
    elif not library.bin.put(caller, [document_id]):
        raise NotFound


@router.post("/api/documents/{document_id}/restore", summary="Take a document back", dependencies=[WRITE])
def restore_document(caller: Caller, library: Library, document_id: UUID) -> DocumentShape:
    """Restore a document and its versions from the bin. A previously searchable document is searchable again."""
    library.bin.take_back(caller, document_id)
    return DocumentShape.of(library.get(caller, document_id))


@router.get("/api/documents/{document_id}/versions", summary="Its versions", dependencies=[READ])
def list_versions(caller: Caller, library: Library, document_id: UUID) -> Documents:
    """List a document's versions, latest first."""
    versions = library.versions.of(caller, library.get(caller, document_id))
    return Documents(
        documents=[DocumentShape.of(d) for d in versions], total=len(versions), limit=len(versions), offset=0
    )


@router.post("/api/documents/{document_id}/confirm", summary="Confirm the estimated cost", dependencies=[WRITE])
def confirm_document(caller: Caller, library: Library, document_id: UUID) -> DocumentShape:
    """Accept the estimate, and process the document. A second call has no effect."""
    return DocumentShape.of(library.confirm(caller, document_id))


@router.post(
    "/api/documents/{document_id}/discard",
    summary="Discard instead of confirming",
    dependencies=[WRITE],
    status_code=204,
    response_class=Response,
    responses=problems(422),
)
def discard_document(caller: Caller, library: Library, document_id: UUID) -> None:
    """Decline the estimate, and remove the document with its file."""
    library.discard(caller, document_id)


@router.post(
    "/api/documents/{document_id}/retry",
    summary="Try a failed document again",
    dependencies=[WRITE],
    responses=problems(422),
)
def retry_document(caller: Caller, library: Library, document_id: UUID) -> DocumentShape:
    """Queue a failed document again. Finished and paid steps are kept."""
    library.get(caller, document_id)
    return DocumentShape.of(library.retry(caller, document_id))


@router.get("/api/documents/{document_id}/chunks", summary="Its chunks", dependencies=[READ])
def list_chunks(caller: Caller, library: Library, document_id: UUID, part: Annotated[Paging, Query()]) -> Chunks:
    """List a document's chunks in order."""
    listing = _list_part(caller, library, document_id, part, library.chunks, library.count_chunks)
    return Chunks.model_validate({"chunks": listing.pop("items"), **listing}, from_attributes=True)


@router.get("/api/documents/{document_id}/pages", summary="Its pages as text", dependencies=[READ])
def list_pages(caller: Caller, library: Library, document_id: UUID, part: Annotated[Paging, Query()]) -> Pages:
    """List the pages with text, warnings, and how the text was read."""
    listing = _list_part(caller, library, document_id, part, library.pages, library.count_pages)
    return Pages.model_validate({"pages": listing.pop("items"), **listing}, from_attributes=True)


@router.get(
    "/api/documents/{document_id}/pages/{page}/correction", summary="Corrections of a page", dependencies=[WRITE]
)
def get_correction(caller: Caller, library: Library, document_id: UUID, page: PageNumber) -> PageText:
    """Return a page's text, the text as read from the file, and the history of corrections."""
    document = library.get(caller, document_id)
    pages = library.pages(caller, document_id)
    stored_page = next((each for each in pages if each.number == page), None)
    if stored_page is None:
        raise NotFound(f"This document has no page {page}.")
    history = library.corrections.of(caller, document)
    corrections, holding = of_page(page, pages, history)
    return PageText(
        page=page,
        text=stored_page.text,
        text_as_read=stored_page.as_read,
        is_corrected=stored_page.is_corrected,
        fingerprint=fingerprint(stored_page.text),
        corrections=[
            CorrectionShape.model_validate(
                {
                    **vars(each),
                    "is_applied": stored_page.is_corrected and each == holding and each.text_after == stored_page.text,
                }
            )
            for each in corrections
        ],
    )


@router.put(
    "/api/documents/{document_id}/pages/{page}/correction",
    summary="Correct the text of a page",
    dependencies=[WRITE],
    responses=problems(409, 422),
)
def put_correction(
    caller: Caller, library: Library, document_id: UUID, page: PageNumber, body: NewPageText
) -> CorrectionMade:
    """Correct a page's text. The correction is kept when the document is read again, if the page's original text is the
    same.

    Only changed chunks are embedded again. Until the new version is ready, the previous version is searched. If the
    page has changed since `fingerprint`, nothing is saved, and the problem's `details` have the current text.
    """
    plan = library.corrections.plan(caller, document_id, page, body.text)
    document = None
    if not body.dry_run:
        document = DocumentShape.of(
            library.corrections.save(caller, document_id, page, body.text, seen=body.fingerprint)
        )
    return CorrectionMade(passages=plan.passages, estimate=plan.estimate, document=document)


@router.delete(
    "/api/documents/{document_id}/pages/{page}/correction",
    summary="Return to the text read from the file",
    dependencies=[WRITE],
    responses=problems(409, 422),
)
def delete_correction(
    caller: Caller,
    library: Library,
    document_id: UUID,
    page: PageNumber,
    expected_fingerprint: Annotated[
        str, Query(alias="fingerprint", max_length=64, description="Of the corrected text.")
    ],
) -> DocumentShape:
    """Restore the text as read from the file. The history keeps the corrections."""
    return DocumentShape.of(library.corrections.save(caller, document_id, page, None, seen=expected_fingerprint))


@router.get(
    "/api/documents/{document_id}/file",
    summary="The file itself",
    dependencies=[READ],
    response_class=Response,
    responses={200: {"content": SERVED}, **UNCHANGED},
)
def document_file(
    request: Request, caller: Caller, library: Library, document_id: UUID, query: Annotated[Download, Query()]
) -> Response:
    """Return the original. A PDF is shown in the browser, for example at `#page=3`; text is shown as plain text.

    The browser saves other files, because no uploaded file may act as a web page. With `?download=1`, every file is
    saved.
    """
    document = library.get(caller, document_id)
    disposition, media_type = served_as(document.mime_type)
    if query.download:
        disposition = "attachment"
    headers = {
        **(HEADERS if disposition == "inline" and media_type == PDF else CONFINED),
        "ETag": f'"{document.sha256}{disposition[0]}"',
        "Content-Disposition": content_disposition(document.file_name, disposition),
    }
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    content = library.original(caller, document.id)
    if disposition == "inline" and media_type == PLAIN_TEXT:
        content = decode(content)[0].encode("utf-8", "replace")  # Browsers support fewer encodings than files use.
    return Response(content, media_type=media_type, headers=headers)


@router.get(
    "/api/documents/{document_id}/pages/{page:int}.png",
    summary="A page as a picture",
    dependencies=[READ],
    response_class=Response,
    responses={200: {"content": {"image/png": {"schema": BINARY}}}, **UNCHANGED},
)
def page_image(
    request: Request,
    caller: Caller,
    library: Library,
    document_id: UUID,
    page: Annotated[int, Path(ge=0, le=HIGHEST_PAGE)],
    query: Annotated[Picture, Query()],
) -> Response:
    """Return a page as a PNG picture, with a chunk marked, and a sentence within the chunk marked more strongly."""
    document = library.get(caller, document_id)
    highlight = sentence = ""
    if query.highlight:
        chunks = library.chunks(caller, document.id, chunk_id=query.highlight)
        highlight = chunks[0].content if chunks else ""
        sentence = highlight[query.sentence_start : query.sentence_end]
    tag = hashlib.sha256(f"{document.sha256} {page} {highlight}\0{sentence}".encode()).hexdigest()[:32]
    headers = {**HEADERS, "ETag": f'"{tag}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    picture = library.page_image(caller, document.id, page, highlight=highlight, sentence=sentence, scale=SCALE)
    return Response(picture, media_type="image/png", headers=headers)


def _list_part(
    caller: Identity,
    library: DocumentLibrary,
    document_id: UUID,
    part: Paging,
    read: Callable[..., Sequence[Any]],
    count: Callable[..., int],
) -> dict[str, Any]:
    library.get(caller, document_id)
    return {
        "items": read(caller, document_id, limit=part.limit, offset=part.offset),
        "total": count(caller, document_id),
        "limit": part.limit,
        "offset": part.offset,
    }


def served_as(mime_type: str) -> tuple[str, str]:
    """Return how to serve an original file: "inline" or "attachment", and the media type.

    Types which could act like a web page are always attachments.
    """
    loader = file_formats().by_media_type.get(mime_type)
    if loader is not None and loader.served == "shown":
        return "inline", mime_type
    if loader is not None and loader.served == "as text":
        return "inline", PLAIN_TEXT
    # Under its media type, a text file which must not be shown could act as a page.
    is_harmless = loader is not None and not loader.is_text
    return "attachment", mime_type if is_harmless else "application/octet-stream"


def content_disposition(file_name: str, disposition: str = "inline") -> str:
    """Return the Content-Disposition header for a file name in any script (RFC 6266, RFC 5987)."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()") else "_" for c in file_name)
    return f"{disposition}; filename=\"{plain}\"; filename*=UTF-8''{quote(file_name, safe='')}"
