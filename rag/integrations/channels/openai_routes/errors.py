"""Format errors like OpenAI, because clients then show our sentence."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse, Response

from rag.access.problems import FieldProblem
from rag.errors import RagError
from rag.monitoring.tracing import request_id

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string", "description": "A sentence that says what is wrong and what to do."},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
                "request_id": {"type": "string"},
            },
        }
    },
}
#: An error's `type` by its status; others below 500 are `invalid_request_error`.
TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def answer(error: RagError, headers: Mapping[str, str] | None = None) -> Response:
    wait = {"Retry-After": str(error.details["wait_seconds"])} if "wait_seconds" in error.details else {}
    return JSONResponse(
        {"error": fields_of(error)},
        status_code=error.status,
        headers={"Cache-Control": "no-store", **wait, **(headers or {})},
    )


def fields_of(error: RagError) -> dict[str, Any]:
    """Return OpenAI's error fields: message, type, param, code, and the request's id."""
    fields: list[FieldProblem] = list(error.details.get("fields", []))
    return {
        "message": error.message,
        "type": TYPES.get(error.status, "server_error" if error.status >= 500 else "invalid_request_error"),
        "param": fields[0].field if fields else None,
        "code": error.code,
        "request_id": request_id.get(),
    }


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe error responses for OpenAPI, by status."""
    content = {"application/json": {"schema": ERROR}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in sorted(statuses)}
