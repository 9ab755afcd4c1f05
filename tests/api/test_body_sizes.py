"""A body that is too large is refused before it is read, whether it says how large it is or not: on every route."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Message

from rag.api.bodies import FORM_OVERHEAD_BYTES
from rag.api.form_pages import MAXIMUM_FORM_BYTES
from rag.server import API_ROUTES, ERROR_HANDLERS, MIDDLEWARE, ROUTES
from tests.api.callers import Api
from tests.integration_rows import unserved_paths

PIECE = 64 * 1024
HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
WITH_BODY = [route for route in API_ROUTES if route.body_field is not None]
FORMS = [
    route
    for route in ROUTES
    if isinstance(route, Route) and "POST" in (route.methods or ()) and route.path not in unserved_paths()
]


def send(path: str, method: str, kind: str, key: str, *, declared: int | None) -> tuple[int, int]:
    """The status and how many bytes of a body that never ends were taken."""
    app = Starlette(routes=ROUTES, middleware=MIDDLEWARE, exception_handlers=ERROR_HANDLERS)
    headers = [(b"host", b"testserver"), (b"content-type", kind.encode())]
    headers += [(b"authorization", f"Bearer {key}".encode())] if key else []
    headers += [(b"content-length", str(declared).encode())] if declared is not None else []
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers, "root_path": "",
        "server": ("testserver", 80), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    taken, status = 0, 0
    pieces = itertools.chain([HEAD if kind.startswith("multipart") else b'{"query": "'], itertools.repeat(b"x" * PIECE))

    async def receive() -> Message:
        nonlocal taken
        piece = next(pieces)
        taken += len(piece)
        assert taken < 100 * 1024 * 1024, "it reads without end"
        return {"type": "http.request", "body": piece, "more_body": True}

    async def answer(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]

    asyncio.run(app(scope, receive, answer))
    return status, taken


def addressed(route: Route, api: Api) -> str:
    ids = {"collection_id": api.collection.id}
    return "/".join(
        str(ids.get(part[1:-1], api.admin.account_id)) if part.startswith("{") else part
        for part in route.path.split("/")
    )


def test_there_are_such_routes() -> None:
    assert len(WITH_BODY) > 8
    assert {"/login", "/forgot-password", "/new-password", "/sso/logout"} <= {route.path for route in FORMS}


def test_on_every_route_of_the_api(api: Api) -> None:
    key, wrong = api.key(), []
    for route in WITH_BODY:
        kind = "multipart/form-data; boundary=b" if route.has_form else "application/json"
        limit = route.maximum_bytes() + (FORM_OVERHEAD_BYTES if route.has_form else 0)
        for declared, allowed in ((limit + 1, 0), (None, limit + 2 * PIECE)):
            status, taken = send(addressed(route, api), route.method, kind, key, declared=declared)
            if status != 413 or taken > allowed:
                wrong.append((route.path, declared, status, taken))
    assert wrong == []


@pytest.mark.parametrize("declared", [pytest.param(10**9, id="declared"), pytest.param(None, id="not_declared")])
def test_on_every_form_of_ours(api: Api, declared: int | None) -> None:
    wrong = []
    for route in FORMS:
        status, taken = send(route.path, "POST", "application/x-www-form-urlencoded", "", declared=declared)
        if not 300 <= status < 500 or taken > MAXIMUM_FORM_BYTES + 2 * PIECE:
            wrong.append((route.path, status, taken))
    assert wrong == []
