"""Every error the API answers, in one form: `application/problem+json` (RFC 9457) with a sentence, a code and an id.

The sentence is for a person, the code for a program, the id finds the request in the log. A traceback never leaves.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from rag.errors import RagError, RequestInvalid

log = logging.getLogger("rag.api")

MEDIA_TYPE = "application/problem+json"
#: What a call sent is said back only so far; nobody needs a megabyte of it.
MAXIMUM_FIELDS = 20


class FieldProblem(BaseModel):
    """One field of a request that cannot be used."""

    field: str = Field(description="Where it stands, such as options.topK.")
    message: str


class Problem(BaseModel):
    """What went wrong, for a person and for a program (RFC 9457)."""

    model_config = ConfigDict(title="Problem")

    type: str = "about:blank"
    title: str = Field(description="The name of the status.")
    status: int
    detail: str = Field(description="A sentence that says what is wrong and what to do.")
    code: str = Field(description="Stable, for programs.")
    request_id: str = Field(description="Also in the header X-Request-Id and in the log.")
    errors: list[FieldProblem] = Field(default_factory=list, description="The fields, when the request is invalid.")
    details: dict[str, Any] = Field(default_factory=dict, description="What a program needs to act on it.")


def problem(scope: Scope, error: RagError, *, headers: Mapping[str, str] | None = None) -> Response:
    """The answer to a request that ended with an error of ours."""
    details = dict(error.details)
    found = Problem(
        title=_phrase(error.status),
        status=error.status,
        detail=error.message,
        code=error.code,
        request_id=request_id_of(scope),
        errors=details.pop("fields", []),
        details={name: value if isinstance(value, (int, bool)) else str(value) for name, value in details.items()},
    )
    extra = {"Retry-After": str(details["wait_seconds"])} if "wait_seconds" in details else {}
    return JSONResponse(
        found.model_dump(mode="json"),
        status_code=error.status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **extra, **(headers or {})},
    )


def unexpected(scope: Scope, error: BaseException) -> Response:
    """The answer to what should not have happened: logged with its traceback, answered without."""
    log.error("request %s to %s failed", request_id_of(scope), scope.get("path", ""), exc_info=error)
    return problem(scope, RagError())


def request_id_of(scope: Scope) -> str:
    """The id this request was given when it came in."""
    return str(scope.get("request_id", ""))


def invalid(error: ValidationError) -> RequestInvalid:
    """What pydantic says of a request, as our error with the fields by name and a sentence about the first."""
    fields = [
        FieldProblem(field=".".join(map(str, item["loc"])) or "body", message=_sentence(item["msg"]))
        for item in error.errors(include_url=False, include_context=False, include_input=False)[:MAXIMUM_FIELDS]
    ]
    first = fields[0]
    return RequestInvalid(f"{first.field}: {first.message}", fields=fields)


def statuses(numbers: Iterable[int]) -> dict[str, dict[str, Any]]:
    """The answers of OpenAPI for these statuses."""
    return {
        str(number): {
            "description": _phrase(number),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for number in sorted(set(numbers))
    }


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase


def _sentence(message: str) -> str:
    return message[:1].upper() + message[1:] + ("" if message.endswith(".") else ".")
