"""Originals and pictures of the pages of PDFs over HTTP, for those who are signed in to the tenant that has them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from urllib.parse import quote
from uuid import UUID

from pydantic import Field
from starlette.responses import Response

from rag.api.endpoint import ApiModel, ApiRoute, Call, endpoint
from rag.api.parts import running
from rag.ingestion.documents import DocumentLibrary
from rag.ingestion.loaders import BY_MEDIA_TYPE, LOADERS, MIME_TYPES
from rag.ingestion.loaders.text import decode

#: A picture of a page is drawn at this scale of 72 dpi unless asked otherwise.
SCALE = 2.0
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    # The reader's browser may keep it, but asks each time whether it may still show it: deleted means gone.
    "Cache-Control": "private, no-cache",
    "Cross-Origin-Resource-Policy": "same-origin",
}
BINARY = {"type": "string", "contentMediaType": "application/octet-stream"}

#: For what is not a PDF: should a browser show it after all, it may load nothing and run nothing. PDFs do without: the
#: viewers of browsers do not work in a sandbox, and have one of their own.
CONFINED = {**HEADERS, "Content-Security-Policy": "sandbox; default-src 'none'"}
PDF = MIME_TYPES["pdf"]
PLAIN_TEXT = "text/plain; charset=utf-8"
#: Everything `served_as` can say, as OpenAPI names it.
SERVED = {
    PDF: BINARY,
    "text/plain": {"type": "string"},
    **{loader.media_type: BINARY for loader in LOADERS if loader.served == "saved" and not loader.is_text},
    "application/octet-stream": BINARY,
}


class Download(ApiModel):
    """How the file is handed over."""

    download: str = Field(default="", max_length=20, description="Anything, such as 1: to be saved, never shown.")


class Picture(ApiModel):
    """How a page is drawn."""

    highlight: UUID | None = Field(default=None, description="The id of a chunk to mark on the page.")


def routes(library: Callable[[], DocumentLibrary]) -> list[ApiRoute]:
    """The routes on a library, which is asked for at the first request."""

    @endpoint(
        "/api/documents/{document_id}/file",
        scope="documents:read",
        summary="The file itself",
        tags=("Documents",),
        parameters=Download,
        media=SERVED,
        errors=(304,),
    )
    def document_file(call: Call[None]) -> Response:
        """The original. A PDF is shown, at `#page=3`; text is shown as text.

        All else is handed over to be saved, as it all is with `?download=1`: nothing that was uploaded acts as a page.
        """
        document = library().get(call.identity, call.uuid("document_id"))
        disposition, media_type = served_as(document.mime_type)
        if call.parameters.download:
            disposition = "attachment"
        headers = {
            **(HEADERS if disposition == "inline" and media_type == PDF else CONFINED),
            "ETag": f'"{document.sha256}{disposition[0]}"',
            "Content-Disposition": content_disposition(document.file_name, disposition),
        }
        if call.request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        content = library().original(call.identity, document.id)
        if disposition == "inline" and media_type == PLAIN_TEXT:
            content = decode(content)[0].encode("utf-8", "replace")  # browsers know fewer encodings than files have
        return Response(content, media_type=media_type, headers=headers)

    @endpoint(
        "/api/documents/{document_id}/pages/{page:int}.png",
        scope="documents:read",
        summary="A page as a picture",
        parameters=Picture,
        tags=("Documents",),
        media={"image/png": BINARY},
        errors=(304,),
    )
    def page_image(call: Call[None]) -> Response:
        """A page of a document as PNG, with the passage of a chunk marked where it stands."""
        document = library().get(call.identity, call.uuid("document_id"))
        highlight = ""
        if chunk_id := call.parameters.highlight:
            found = library().chunks(call.identity, document.id, chunk_id=chunk_id)
            highlight = found[0].content if found else ""
        page: int = call.request.path_params["page"]
        tag = hashlib.sha256(f"{document.sha256} {page} {highlight}".encode()).hexdigest()[:32]
        headers = {**HEADERS, "ETag": f'"{tag}"'}
        if call.request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        picture = library().page_image(call.identity, document.id, page, highlight=highlight, scale=SCALE)
        return Response(picture, media_type="image/png", headers=headers)

    return [document_file, page_image]


def served_as(mime_type: str) -> tuple[str, str]:
    """Decide how an original is served: (inline or attachment, media type). What could act as a page is never shown."""
    loader = BY_MEDIA_TYPE.get(mime_type)
    if loader is not None and loader.served == "shown":
        return "inline", mime_type
    if loader is not None and loader.served == "as text":
        return "inline", PLAIN_TEXT
    # A file of text that is not to be shown could act as a page under its own type.
    is_harmless = loader is not None and not loader.is_text
    return "attachment", mime_type if is_harmless else "application/octet-stream"


def content_disposition(file_name: str, disposition: str = "inline") -> str:
    """Shown or saved under its own name, in any script (RFC 6266, RFC 5987)."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()") else "_" for c in file_name)
    return f"{disposition}; filename=\"{plain}\"; filename*=UTF-8''{quote(file_name, safe='')}"


ROUTES = routes(lambda: running().documents)
