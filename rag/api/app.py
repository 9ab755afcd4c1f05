"""Combine the routes into a FastAPI application, described at `/api/openapi.json` and `/api/docs`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import fastapi_offline
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, JSONResponse
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from rag.access.problems import Problem, invalid, refusal, unexpected
from rag.api import collections, documents, prices, questions, references, service
from rag.api.routing import ANYBODY, ApiRoute, needs
from rag.errors import MethodNotAllowed, NotFound, RagError, RouteUnknown

TITLE = "HR Assistant"
VERSION = "1"
DESCRIPTION = """
Answers from your organisation's documents, and the documents themselves. Send an API key, made by an administrator on
the page People, as `Authorization: Bearer`. Anybody who is signed in can call the API from their own browser too.

- Every error is `application/problem+json` with a sentence, a code and the id of the request, which is also in the
  header `X-Request-Id` and in the log. Send your own `X-Request-Id` and it is kept.
- A key may send so many requests a minute; `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` count them.
  Past the limit the answer is 429 with `Retry-After` in seconds.
- Bodies are JSON of at most 1 MB, files as large as the documents page takes them. A field that nobody knows is
  refused by name.
- Times are UTC in ISO 8601, money is US dollars; null means that a price is not known.
- Pages of other sites may call only where `RAG_CORS_ORIGINS` names them, and only with a key.
""".strip()
SECURITY_SCHEMES = {
    "key": {"type": "http", "scheme": "bearer", "description": "An API key."},
    "keyHeader": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "session": {"type": "apiKey", "in": "cookie", "name": "hr_session", "description": "Who is signed in."},
}
#: Swagger UI, from a package which serves it without a network.
ASSETS = Path(fastapi_offline.__file__).parent / "static"
ASSET_NAMES = frozenset({"swagger-ui-bundle.js", "swagger-ui.css", "favicon.png"})
SWAGGER = {"validatorUrl": None, "docExpansion": "list", "defaultModelsExpandDepth": 0, "tryItOutEnabled": True}
NO_TELEMETRY = TelemetryConfig(tracing=False, metrics=False, logs=False, auto_configure=False)

router = APIRouter(route_class=ApiRoute, tags=["Service"])


@router.get(
    "/api/openapi.json",
    summary="This description, for programs",
    dependencies=[needs(ANYBODY)],
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
)
async def openapi_file(request: Request) -> Response:
    """Return the API's description in OpenAPI 3.1."""
    return JSONResponse(request.app.openapi(), headers={"Cache-Control": "no-cache"})


@router.get(
    "/api/docs",
    summary="This description, for people",
    dependencies=[needs(ANYBODY)],
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
async def docs() -> Response:
    """Return the HTML page with the API's documentation, and a form to try each call."""
    page = get_swagger_ui_html(
        openapi_url="/api/openapi.json",
        title=f"{TITLE}: API",
        swagger_js_url="/api/docs/swagger-ui-bundle.js",
        swagger_css_url="/api/docs/swagger-ui.css",
        swagger_favicon_url="/api/docs/favicon.png",
        swagger_ui_parameters=SWAGGER,
    )
    # Screen readers need the page's language and its main part.
    html = bytes(page.body).decode().replace("<html>", '<html lang="en">', 1)
    html = html.replace('<div id="swagger-ui">', '<main id="swagger-ui">', 1).replace("</div>", "</main>", 1)
    return HTMLResponse(html, headers={"Cache-Control": "no-cache"})


@router.get("/api/docs/{name}", dependencies=[needs(ANYBODY)], summary="A file of the page", include_in_schema=False)
async def docs_asset(name: str) -> Response:
    """Return a script or style sheet for the documentation page."""
    if name not in ASSET_NAMES:
        raise NotFound
    return FileResponse(ASSETS / name, headers={"Cache-Control": "private, max-age=86400"})


class Api(FastAPI):
    """A FastAPI application with our OpenAPI description and error format. HEAD works on every GET route."""

    def __init__(self, routers: Sequence[APIRouter]) -> None:
        super().__init__(
            title=TITLE,
            version=VERSION,
            redirect_slashes=False,
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            telemetry=NO_TELEMETRY,
            exception_handlers=dict.fromkeys((RagError, RequestValidationError, HTTPException), self._on_error),
        )
        self.described = cache(self._describe)
        self.api_routes = [r for router in routers for r in router.routes if isinstance(r, ApiRoute)]
        for router in routers:
            self.include_router(router)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # Servers drop the body in a response to HEAD. Postgres cannot store NUL in text.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            scope = {**scope, "method": method, "query_string": scope["query_string"].replace(b"%00", b"")}
        await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        return self.described()

    def _describe(self) -> dict[str, Any]:
        described = get_openapi(
            title=TITLE,
            version=VERSION,
            description=DESCRIPTION,
            routes=self.routes,
            servers=[{"url": "/"}],
            tags=[{"name": tag} for tag in dict.fromkeys(str(tag) for route in self.api_routes for tag in route.tags)],
        )
        # FastAPI's format for refusals, which is never sent.
        schemas = described["components"]["schemas"]
        del schemas["HTTPValidationError"], schemas["ValidationError"]
        for operation in (operation for methods in described["paths"].values() for operation in methods.values()):
            if "HTTPValidationError" in str(operation["responses"].get("422")):
                del operation["responses"]["422"]
        problem_schema = Problem.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
        schemas |= {**problem_schema.pop("$defs"), "Problem": problem_schema}
        bodies = [
            operation.get("requestBody") for methods in described["paths"].values() for operation in methods.values()
        ]
        _describe_defaults(schemas, bodies)
        described["components"]["securitySchemes"] = SECURITY_SCHEMES
        described["security"] = [{name: []} for name in SECURITY_SCHEMES]
        return described

    async def _on_error(self, request: Request, exc: Exception) -> Response:
        if isinstance(exc, RequestValidationError):
            errors = exc.errors()
            # A malformed id in the path is not found. Errors in other fields name the field.
            is_path_valid = all(item["loc"][0] != "path" for item in errors)
            exc = invalid({**item, "loc": item["loc"][1:]} for item in errors) if is_path_valid else NotFound()
        elif isinstance(exc, HTTPException) and exc.status_code == 405:
            allowed = ", ".join(sorted(self._methods_at(request.scope)))
            return refusal(request.scope, MethodNotAllowed(), headers={"Allow": allowed})
        elif isinstance(exc, HTTPException):
            exc = RouteUnknown()
        if isinstance(exc, RagError) and exc.status != 500:
            return refusal(request.scope, exc)
        return unexpected(request.scope, exc)

    def _methods_at(self, scope: Scope) -> set[str]:
        probe = {**scope, "method": "", "path_params": {}}
        methods = {route.method for route in self.api_routes if route.matches(probe)[0] is Match.PARTIAL}
        return methods | {"HEAD"} if "GET" in methods else methods


def _describe_defaults(schemas: dict[str, Any], bodies: Any) -> None:
    """Move the default values in request bodies into the descriptions.

    With defaults in the schema, clients made with openapi-typescript would send every default.
    """
    waiting, visited = _referenced_schemas(bodies), set[str]()
    while waiting:
        name = waiting.pop()
        if name in visited:
            continue
        visited.add(name)
        waiting += _referenced_schemas(schemas[name])
        for field in schemas[name].get("properties", {}).values():
            if (default := field.pop("default", None)) not in (None, "") and "Default" not in field.get(
                "description", ""
            ):
                sentence = f"Default: {json.dumps(default)}."
                field["description"] = f"{field['description']} {sentence}" if "description" in field else sentence


def _referenced_schemas(described: Any) -> list[str]:
    return re.findall(r"'\$ref': '#/components/schemas/([^']+)'", str(described))


ROUTERS = (
    questions.router,
    collections.boards,
    collections.router,
    collections.uploads,
    documents.router,
    references.router,
    references.opinions,
    prices.router,
)


def make_api(integration_routers: Sequence[APIRouter] = ()) -> Api:
    """Build the API from our routers and the integrations' routers."""
    return Api((*ROUTERS, *integration_routers, service.router, router))


def routes_to(api: Api) -> list[BaseRoute]:
    """Return the server routes which lead to the API: `/api/` and the integrations' prefixes."""
    prefixes = sorted({f"/{route.path.split('/')[1]}/" for route in api.api_routes})
    return [
        Route(f"{prefix}{{path:path}}", api, name=prefix.strip("/"), include_in_schema=False) for prefix in prefixes
    ]
