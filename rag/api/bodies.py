"""What a caller sends, read within its limit and checked against its model, field by field.

Size is looked at before anything is read, and again while reading: a header can lie.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, PlainValidator, ValidationError, WithJsonSchema
from pydantic_core import PydanticCustomError, from_json, to_json
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message

from rag.api.problems import invalid
from rag.errors import BodyTooLarge, BodyUnreadable, MediaTypeUnsupported

Model = TypeVar("Model", bound=BaseModel)

#: `fetch` sends a string as text/plain when nobody says otherwise, as the notice board's own examples do.
JSON_TYPES = frozenset({"application/json", "text/json", "text/plain", ""})
FORM_TYPE = "multipart/form-data"
#: What a form may have beside its file: boundaries, headers, other fields.
FORM_OVERHEAD_BYTES = 256 * 1024


@dataclass(frozen=True, kw_only=True)
class UploadedFile:
    """A file of a form."""

    name: str
    content: bytes
    media_type: str = ""


def _file(value: object) -> UploadedFile:
    if not isinstance(value, UploadedFile):
        raise PydanticCustomError("file", "This has to be a file")
    return value


#: In a model of a form: `file: FileField`.
FileField = Annotated[
    UploadedFile,
    PlainValidator(_file),
    WithJsonSchema({"type": "string", "contentMediaType": "application/octet-stream"}),
]


async def read_json(request: Request, model: type[Model], *, maximum_bytes: int) -> Model:
    """The body as JSON. Raises `MediaTypeUnsupported`, `BodyTooLarge`, `BodyUnreadable`, `RequestInvalid`."""
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
    # Postgres keeps no NUL in a text, and none means anything in one.
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError as exc:
        raise BodyUnreadable from exc
    if b"\\u0000" in raw:
        raw = to_json(without_nul(value))
    try:
        return model.model_validate_json(raw, strict=True)
    except ValidationError as exc:
        raise invalid(exc) from None


async def read_form(request: Request, model: type[Model], *, maximum_bytes: int) -> Model:
    """The body as a form whose files come as `UploadedFile`; raises as `read_json`."""
    if _media_type(request) != FORM_TYPE:
        raise MediaTypeUnsupported("Send this as a form with a file (multipart/form-data).")
    limit = maximum_bytes + FORM_OVERHEAD_BYTES
    _check_length(request, maximum_bytes, beside=FORM_OVERHEAD_BYTES)
    received, receive = 0, request.receive

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise _too_large(maximum_bytes)
        return message

    request = Request(request.scope, counted)
    values: dict[str, Any] = {}
    try:
        async with request.form(max_files=4, max_fields=50, max_part_size=FORM_OVERHEAD_BYTES) as form:
            for name, value in form.multi_items():
                read = await _uploaded(value) if isinstance(value, UploadFile) else value.replace("\x00", "")
                if name in values and isinstance(read, str):
                    earlier = values[name]
                    values[name] = [*earlier, read] if isinstance(earlier, list) else [earlier, read]
                else:
                    values[name] = read
    except (MultiPartException, HTTPException, ValueError, KeyError) as exc:
        raise BodyUnreadable("The form of this request cannot be read: its parts are damaged or too many.") from exc
    try:
        return model.model_validate(values)
    except ValidationError as exc:
        raise invalid(exc) from None


def read_parameters(request: Request, model: type[Model]) -> Model:
    """The query string; a name given several times becomes a list. Raises `RequestInvalid`."""
    values: dict[str, Any] = {}
    for name in request.query_params:
        given = [value.replace("\x00", "") for value in request.query_params.getlist(name)]
        values[name] = given if len(given) > 1 or _is_list(model, name) else given[0]
    try:
        return model.model_validate(values)
    except ValidationError as exc:
        raise invalid(exc) from None


def without_nul(value: Any) -> Any:
    """A value of JSON with every NUL character left out of its texts."""
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, list):
        return [without_nul(item) for item in value]
    if isinstance(value, dict):
        return {without_nul(name): without_nul(item) for name, item in value.items()}
    return value


async def _uploaded(file: UploadFile) -> UploadedFile:
    return UploadedFile(
        name=(file.filename or "").replace("\x00", ""), content=await file.read(), media_type=file.content_type or ""
    )


def _is_list(model: type[BaseModel], name: str) -> bool:
    return any(
        name in (field_name, field.alias) and getattr(field.annotation, "__origin__", None) is list
        for field_name, field in model.model_fields.items()
    )


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _check_length(request: Request, maximum_bytes: int, *, beside: int = 0) -> None:
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > maximum_bytes + beside:
        raise _too_large(maximum_bytes)


def _too_large(maximum_bytes: int) -> BodyTooLarge:
    size = f"{maximum_bytes / 1024 / 1024:g} MB" if maximum_bytes >= 1024 * 1024 else f"{maximum_bytes / 1024:g} KB"
    return BodyTooLarge(f"The body of this request is larger than the limit of {size}.", maximum_bytes=maximum_bytes)
