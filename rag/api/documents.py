"""Files and pictures of their pages over HTTP, for those of the tenant that has them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from urllib.parse import quote
from uuid import UUID

from pydantic import Field
from starlette.responses import Response

from rag.api.endpoint import ApiModel, ApiRoute, Call, endpoint
from rag.api.parts import running
from rag.ingestion.library import DocumentLibrary

#: A picture of a page is drawn at this scale of 72 dpi unless asked otherwise.
SCALE = 2.0
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    # The reader's browser may keep it, but asks each time whether it may still show it: deleted means gone.
    "Cache-Control": "private, no-cache",
    "Cross-Origin-Resource-Policy": "same-origin",
}
BINARY = {"type": "string", "contentMediaType": "application/octet-stream"}


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
        media={"application/pdf": BINARY, "application/octet-stream": BINARY},
        errors=(304,),
    )
    def document_file(call: Call[None]) -> Response:
        """The file as it can be opened, shown in the browser; of a PDF, `#page=3` opens that page."""
        document = library().get(call.tenant_id, call.uuid("document_id"))
        headers = {
            **HEADERS,
            "ETag": f'"{document.sha256}"',
            "Content-Disposition": content_disposition(document.file_name),
        }
        if call.request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        content = library().original(call.tenant_id, document.id)
        return Response(content, media_type="application/pdf", headers=headers)

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
        document = library().get(call.tenant_id, call.uuid("document_id"))
        highlight = ""
        if chunk_id := call.parameters.highlight:
            found = library().chunks(call.tenant_id, document.id, chunk_id=chunk_id)
            highlight = found[0].content if found else ""
        page: int = call.request.path_params["page"]
        tag = hashlib.sha256(f"{document.sha256} {page} {highlight}".encode()).hexdigest()[:32]
        headers = {**HEADERS, "ETag": f'"{tag}"'}
        if call.request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        picture = library().page_image(call.tenant_id, document.id, page, highlight=highlight, scale=SCALE)
        return Response(picture, media_type="image/png", headers=headers)

    return [document_file, page_image]


def content_disposition(file_name: str) -> str:
    """Shown inline under its own name, in any script (RFC 6266, RFC 5987)."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in " ._-()") else "_" for c in file_name)
    return f"inline; filename=\"{plain}\"; filename*=UTF-8''{quote(file_name, safe='')}"


ROUTES = routes(lambda: running().documents)
