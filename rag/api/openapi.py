"""The OpenAPI 3.1 file, made from the endpoints: what checks a request also describes it, so the two cannot differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from rag.api.endpoint import ANYBODY, PUBLIC, ApiRoute, Spec
from rag.api.problems import Problem, statuses

VERSION = "1"
TEMPLATE = "#/components/schemas/{model}"
PARAMETER = re.compile(r"\{([a-z_]+)(?::([a-z]+))?\}")
RATE_HEADERS = {
    "RateLimit-Limit": ("integer", "Requests this key may send a minute."),
    "RateLimit-Remaining": ("integer", "How many are left of them."),
    "RateLimit-Reset": ("integer", "Seconds until the next minute begins."),
    "X-Request-Id": ("string", "Names this request, also in the log."),
}
DESCRIPTION = (
    "Answers from your organisation's documents, and the documents themselves. Send an API key, made by an "
    "administrator on the page People, as `Authorization: Bearer`. Times are UTC in ISO 8601, money is US dollars. "
    "Every error is `application/problem+json` with a sentence, a code and the id of the request."
)
Schema = dict[str, Any]


def openapi(routes: Iterable[object]) -> Schema:
    """The whole file for those of the routes that are endpoints."""
    specs = [route.spec for route in routes if isinstance(route, ApiRoute)]
    schemas, definitions = _schemas(specs)
    paths: dict[str, Schema] = {}
    for spec in specs:
        paths.setdefault(open_path(spec.path), {})[spec.method.lower()] = _operation(spec, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "HR Assistant", "version": VERSION, "description": DESCRIPTION},
        "servers": [{"url": "/"}],
        "security": [{"key": []}, {"keyHeader": []}, {"session": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(tag for spec in specs for tag in spec.tags)],
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key."},
                "keyHeader": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "session": {"type": "apiKey", "in": "cookie", "name": "hr_session", "description": "Who is signed in."},
            },
        },
    }


def open_path(path: str) -> str:
    """A path as OpenAPI writes it."""
    return PARAMETER.sub(r"{\1}", path)


def _schemas(specs: Sequence[Spec]) -> tuple[dict[tuple[type[BaseModel], str], Schema], Schema]:
    """The schema of each body, answer and query, and the definitions they refer to."""
    wanted: dict[tuple[type[BaseModel], Any], None] = {(Problem, "serialization"): None}
    for spec in specs:
        for model, mode in ((spec.body, "validation"), (spec.parameters, "validation"), (spec.answer, "serialization")):
            if model is not None:
                wanted[(model, mode)] = None
    found, definitions = models_json_schema(list(wanted), ref_template=TEMPLATE)
    return {
        (model, mode): schema for (model, mode), schema in found.items() if issubclass(model, BaseModel)
    }, definitions.get("$defs", {})


def _operation(spec: Spec, schemas: dict[tuple[type[BaseModel], str], Schema]) -> Schema:
    operation: Schema = {
        "operationId": spec.name,
        "summary": spec.summary,
        "description": _described(spec),
        "tags": list(spec.tags),
        "parameters": [*_path_parameters(spec.path), *_query_parameters(spec)],
        "responses": {str(spec.status): _answer(spec, schemas), **statuses(expected_errors(spec))},
    }
    if 304 in spec.errors:
        operation["responses"]["304"] = {"description": "What you have is still right."}
    if spec.scope == PUBLIC:
        operation["security"] = [{}]
    if spec.body is not None:
        media: Schema = {"schema": schemas[(spec.body, "validation")]}
        if spec.examples:
            media["examples"] = {name: {"value": value} for name, value in spec.examples.items()}
        kind = "multipart/form-data" if spec.multipart else "application/json"
        operation["requestBody"] = {"required": True, "content": {kind: media}}
    return operation


def expected_errors(spec: Spec) -> set[int]:
    """Every status with which a call of this endpoint may be refused."""
    expected = {status for status in spec.errors if status >= 400} | {503}
    if spec.scope != PUBLIC:
        expected |= {401, 403, 429}
    if spec.body is not None:
        expected |= {400, 413, 415, 422}
    if spec.parameters is not None:
        expected.add(422)
    if PARAMETER.search(spec.path):
        expected.add(404)
    return expected


def _described(spec: Spec) -> str:
    needs = {PUBLIC: "Open to everybody.", ANYBODY: "Needs a key or a session."}
    return f"{spec.description}\n\n{needs.get(spec.scope, f'Needs the scope `{spec.scope}`.')}"


def _answer(spec: Spec, schemas: dict[tuple[type[BaseModel], str], Schema]) -> Schema:
    content: Schema = {}
    if spec.answer is not None:
        content["application/json"] = {"schema": schemas[(spec.answer, "serialization")]}
    for kind, schema in spec.media.items():
        content[kind] = {"schema": schema}
    headers = {name: {"description": text, "schema": {"type": kind}} for name, (kind, text) in RATE_HEADERS.items()}
    answer: Schema = {"description": spec.summary, "headers": headers}
    if content:
        answer["content"] = content
    return answer


def _path_parameters(path: str) -> list[Schema]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(name, kind)}
        for name, kind in PARAMETER.findall(path)
    ]


def _path_schema(name: str, kind: str) -> Schema:
    if kind == "int":
        return {"type": "integer", "minimum": 0, "maximum": 1_000_000}
    return {"type": "string", "format": "uuid"} if name.endswith("_id") else {"type": "string", "minLength": 1}


def _query_parameters(spec: Spec) -> list[Schema]:
    if spec.parameters is None:
        return []
    schema = spec.parameters.model_json_schema(ref_template=TEMPLATE)
    needed = schema.get("required", [])
    return [
        {
            "name": name,
            "in": "query",
            "required": name in needed,
            "description": field.pop("description", ""),
            "schema": {key: value for key, value in field.items() if key != "title"},
        }
        for name, field in schema.get("properties", {}).items()
    ]
