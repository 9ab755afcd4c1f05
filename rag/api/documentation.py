"""`/api/openapi.json` for programs and `/api/docs` for people, both made from the endpoints themselves."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute

from rag.api.docs_page import docs_page
from rag.api.endpoint import ANYBODY, ApiRoute, Call, endpoint
from rag.api.openapi import openapi
from rag.api.parts import running


def routes(documented: Sequence[BaseRoute]) -> list[ApiRoute]:
    """Both routes, about `documented` and themselves."""

    @endpoint(
        "/api/openapi.json",
        scope=ANYBODY,
        summary="This description, for programs",
        media={"application/json": {"type": "object"}},
        tags=("Service",),
    )
    def openapi_file(call: Call[None]) -> Response:
        """OpenAPI 3.1."""
        return JSONResponse(described(), headers={"Cache-Control": "no-cache"})

    @endpoint(
        "/api/docs",
        scope=ANYBODY,
        summary="This description, for people",
        media={"text/html": {"type": "string"}},
        tags=("Service",),
    )
    def docs(call: Call[None]) -> Response:
        """A page to read, with examples to copy."""
        address = running().settings.public_url.rstrip("/") or str(call.request.base_url).rstrip("/")
        return HTMLResponse(docs_page(described(), address), headers={"Cache-Control": "no-cache"})

    own = [openapi_file, docs]

    @cache
    def described() -> dict[str, Any]:
        return openapi([*documented, *own])

    return own
