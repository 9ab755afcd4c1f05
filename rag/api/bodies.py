"""Read request bodies up to a size limit: JSON validated strictly by a model, and forms with files.

The size is checked before reading, and again while reading, because the header may be wrong.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import UploadFile
from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import PydanticCustomError, from_json, to_json
from starlette.datastructures import FormData
from starlette.datastructures import UploadFile as ReceivedFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message

from rag.access.problems import invalid
from rag.errors import BodyTooLarge, BodyUnreadable, MediaTypeUnsupported

JSON = b"application/json"
#: `fetch` sends a string as text/plain by default, and so do the notice board's examples.
JSON_TYPES = frozenset({"application/json", "text/json", "text/plain", ""})
FORM_TYPE = "multipart/form-data"
#: Room in a form beside its file: boundaries, headers, other fields.
FORM_OVERHEAD_BYTES = 256 * 1024
FORM_DAMAGED = "The form of this request cannot be read: its parts are damaged or too many."


def _file(value: object) -> object:
    if not isinstance(value, ReceivedFile):
        raise PydanticCustomError("file", "This has to be a file")
    return value


#: In a form's model: `file: FileField`.
FileField = Annotated[UploadFile, BeforeValidator(_file)]


class ReadRequest(Request):
    """A request for FastAPI with a body which was already read and checked."""

    def __init__(self, request: Request, content: BaseModel | FormData) -> None:
        headers = [(name, value) for name, value in request.scope["headers"] if name != b"content-type"]
        super().__init__({**request.scope, "headers": [*headers, (b"content-type", JSON)]}, request.receive)
        self._content = content

    async def body(self) -> bytes:
        return b"read"  # FastAPI only asks whether there is any

    async def json(self) -> Any:
        return self._content

    async def form(self, **limits: int | float) -> FormData:  # type: ignore[override]
        assert isinstance(self._content, FormData)  # noqa: S101
        return self._content


async def read_json(request: Request, model: Any, *, maximum_bytes: int) -> BaseModel:
    """Return the body's JSON, validated against a model.

    Raises `MediaTypeUnsupported`, `BodyTooLarge`, `BodyUnreadable` or `RequestInvalid`.
    """
    kind = _media_type(request)
    if kind not in JSON_TYPES and not kind.endswith("+json"):
        raise MediaTypeUnsupported
    _check_length(request, maximum_bytes)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > maximum_bytes:
            raise _too_large(maximum_bytes)
        parts.append(part)
    raw = b"".join(parts)
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError as exc:
        raise BodyUnreadable from exc
    # Postgres cannot store NUL in text, and NUL has no meaning there.
    if b"\\u0000" in raw:
        raw = to_json(without_nul(value))
    try:
        read: BaseModel = model.model_validate_json(raw, strict=True)
    except ValidationError as exc:
        raise invalid(exc.errors(include_url=False, include_context=False, include_input=False)) from None
    return read


async def read_form(request: Request, *, maximum_bytes: int) -> FormData:
    """Return the body's form; large files are on disk. Raises the errors raised by `read_json`."""
    if _media_type(request) != FORM_TYPE:
        raise MediaTypeUnsupported("Send this as a form with a file (multipart/form-data).")
    limit = maximum_bytes + FORM_OVERHEAD_BYTES
    _check_length(request, maximum_bytes, overhead_bytes=FORM_OVERHEAD_BYTES)
    received, receive = 0, request.receive

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise _too_large(maximum_bytes)
        return message

    try:
        form = await Request(request.scope, counted).form(max_files=4, max_fields=50, max_part_size=FORM_OVERHEAD_BYTES)
    except (MultiPartException, HTTPException, ValueError, KeyError) as exc:
        raise BodyUnreadable(FORM_DAMAGED) from exc
    return FormData([(name, _clean(value)) for name, value in form.multi_items()])


def without_nul(value: Any) -> Any:
    """Remove NUL characters from all texts in a JSON value."""
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, list):
        return [without_nul(item) for item in value]
    if isinstance(value, dict):
        return {without_nul(name): without_nul(item) for name, item in value.items()}
    return value


def _clean(value: ReceivedFile | str) -> ReceivedFile | str:
    if isinstance(value, str):
        return value.replace("\x00", "")
    value.filename = (value.filename or "").replace("\x00", "")
    return value


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _check_length(request: Request, maximum_bytes: int, *, overhead_bytes: int = 0) -> None:
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > maximum_bytes + overhead_bytes:
        raise _too_large(maximum_bytes)


def _too_large(maximum_bytes: int) -> BodyTooLarge:
    size = f"{maximum_bytes / 1024 / 1024:g} MB" if maximum_bytes >= 1024 * 1024 else f"{maximum_bytes / 1024:g} KB"
    return BodyTooLarge(f"The body of this request is larger than the limit of {size}.", maximum_bytes=maximum_bytes)
