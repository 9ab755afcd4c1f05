"""Convert every API error to `application/problem+json` (RFC 9457).

The response has a sentence for people, a code for programs, and a request id to find in the log. Tracebacks are never
sent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from rag.errors import DocumentError, ProviderError, RagError, RequestInvalid
from rag.monitoring.tracing import request_id

log = logging.getLogger("rag.api")

MEDIA_TYPE = "application/problem+json"
#: Path prefixes for source 002's routes; errors there also have `success` and `error`.
REFERENCE_ROUTES = ("/api/reference-documents", "/api/opinion")
#: Routes for adding documents (002, 7.1.1): invalid requests get the status 400.
ADDING_ROUTES = ("/api/reference-documents", "/api/reference-documents/ingest")
NOT_USABLE = (HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
#: Providers that recognise scans.
RECOGNISERS = frozenset({"upstage"})
#: A directory syncs people and groups here.
SCIM = "/scim/v2/"
#: Writes an error in a protocol's form, with additional headers.
Refusal = Callable[[RagError, Mapping[str, str] | None], Response]
#: Path prefixes for other protocols, with their error format. The server adds the prefixes of integrations.
FORMS: dict[str, Refusal] = {}
#: The most fields named in a problem.
MAXIMUM_FIELDS = 20


class FieldProblem(BaseModel):
    """An invalid field in a request."""

    field: str = Field(description="Where it is, such as options.topK.")
    message: str


class Problem(BaseModel):
    """An API error in the format of RFC 9457."""

    model_config = ConfigDict(title="Problem")

    type: str = "about:blank"
    title: str = Field(description="The name of the status.")
    status: int
    detail: str = Field(description="A sentence that says what is wrong and what to do.")
    code: str = Field(description="Stable, for programs.")
    request_id: str = Field(description="Also in the header X-Request-Id and in the log.")
    errors: list[FieldProblem] = Field(default_factory=list, description="The fields, when the request is invalid.")
    details: dict[str, Any] = Field(default_factory=dict, description="What a program needs to act on it.")


def problem(
    error: RagError,
    *,
    headers: Mapping[str, str] | None = None,
    is_reference: bool = False,
    status: HTTPStatus | None = None,
) -> Response:
    """Convert an error to a response. If `is_reference`, use the format of the routes for reference documents."""
    details = dict(error.details)
    status = status or HTTPStatus(_reference_status(error) if is_reference else error.status)
    body = Problem(
        title=_phrase(status),
        status=status,
        detail=error.message,
        code=error.code,
        request_id=request_id.get(),
        errors=details.pop("fields", []),
        details={name: value if isinstance(value, (int, bool)) else str(value) for name, value in details.items()},
    )
    extra = {"Retry-After": str(details["wait_seconds"])} if "wait_seconds" in details else {}
    return JSONResponse(
        {**body.model_dump(mode="json"), **({"success": False, "error": body.detail} if is_reference else {})},
        status_code=status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **extra, **(headers or {})},
    )


def refusal(scope: Scope, error: RagError, *, headers: Mapping[str, str] | None = None) -> Response:
    """Convert an error to a response, in the format of the requested path.

    Some protocols have their own formats. The routes for reference documents and opinions add fields and statuses. All
    other paths get a `Problem`.
    """
    path = _path(scope)
    for prefix, write in FORMS.items():
        if path.startswith(prefix):
            return write(error, headers)
    is_unusable = isinstance(error, RequestInvalid) and error.status in NOT_USABLE
    if path in ADDING_ROUTES and scope.get("method") == "POST" and is_unusable:
        return problem(error, headers=headers, is_reference=True, status=HTTPStatus.BAD_REQUEST)
    return problem(error, headers=headers, is_reference=path.startswith(REFERENCE_ROUTES))


def _reference_status(error: RagError) -> int:
    """Return 400 for an unreadable file or page, 500 for a failed model call, else the error's own status."""
    is_file = isinstance(error, DocumentError) and error.status != HTTPStatus.CONFLICT
    is_recognition = isinstance(error, ProviderError) and error.details.get("provider") in RECOGNISERS
    if is_file or is_recognition:
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.INTERNAL_SERVER_ERROR if isinstance(error, ProviderError) else error.status


def unexpected(scope: Scope, error: BaseException) -> Response:
    """Log an unexpected error with its traceback, and return a response without the traceback."""
    log.error("request %s to %s failed", request_id.get(), scope.get("path", ""), exc_info=error)
    return refusal(scope, RagError())


def invalid(errors: Iterable[Mapping[str, Any]]) -> RequestInvalid:
    """Convert pydantic errors to `RequestInvalid`, with a message per field.

    The error's sentence names the first field.
    """
    fields = [
        FieldProblem(field=".".join(map(str, item["loc"])) or "body", message=_sentence(item["msg"])) for item in errors
    ][:MAXIMUM_FIELDS]
    first = fields[0]
    return RequestInvalid(f"{first.field}: {first.message}", fields=fields)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe error responses by status, for a route's parameter `responses` (OpenAPI)."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _phrase(status), "content": content} for status in sorted(statuses)}


def reference_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the error responses of the routes for reference documents, by status, for OpenAPI.

    Their format is required by source 002 in docs/sources.md. 500 is always included.
    """
    more = {"success": {"const": False}, "error": {"type": "string", "description": "The same as detail."}}
    schema = {
        "allOf": [
            {"$ref": "#/components/schemas/Problem"},
            {"type": "object", "required": ["success", "error"], "properties": more},
        ]
    }
    content = {MEDIA_TYPE: {"schema": schema}}
    return {status: {"description": _phrase(status), "content": content} for status in sorted({*statuses, 500})}


def _path(scope: Scope) -> str:
    return str(scope.get("path", "")).removeprefix(str(scope.get("root_path", "")).rstrip("/"))


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def _sentence(message: str) -> str:
    return message[:1].upper() + message[1:] + ("" if message.endswith(".") else ".")
