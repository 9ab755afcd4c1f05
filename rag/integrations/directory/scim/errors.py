"""Format errors for SCIM (RFC 7644, 3.12); the company's directory shows the message."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse, Response

from rag.errors import RagError

SCHEMA = "urn:ietf:params:scim:api:messages:2.0:Error"


def answer(error: RagError, headers: Mapping[str, str] | None = None) -> Response:
    status = 400 if error.status == HTTPStatus.UNPROCESSABLE_ENTITY else error.status
    kind = {400: "invalidValue", 409: "uniqueness"}.get(status)
    fields = {"schemas": [SCHEMA], "status": str(status), "detail": error.message}
    wait = {"Retry-After": str(error.details["wait_seconds"])} if "wait_seconds" in error.details else {}
    return JSONResponse(
        {**fields, **({"scimType": kind} if kind else {})},
        status_code=status,
        media_type="application/scim+json",
        headers={"Cache-Control": "no-store", **wait, **(headers or {})},
    )
