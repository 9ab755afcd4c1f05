"""Give every request an id and a log line, choose the language, and allow cross-origin calls from configured sites.

A site may call the API if the settings name its exact origin, and only with a key. Cookies are never accepted from
other sites, which therefore cannot use a person's session.

A connection is closed if the request does not arrive completely in time. Uvicorn would wait without limit for a slow
head or body, and each open connection uses a file descriptor.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from rag import language
from rag.access.guard import CONNECTING, SECURITY_HEADERS, is_for_programs, route_path
from rag.access.problems import SCIM
from rag.monitoring import metrics
from rag.monitoring.tracing import request_id, request_span
from rag.settings import Settings

log = logging.getLogger("rag.api.requests")

HEADER = "X-Request-Id"
#: Accepted ids; other ids could break a log line.
ACCEPTED = re.compile(r"[A-Za-z0-9._:-]{1,128}")
ALLOWED_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ALLOWED_HEADERS = (
    "Authorization", "Content-Type", "X-Api-Key", HEADER, "Mcp-Protocol-Version", "Mcp-Session-Id", "Mcp-Method",
    "Mcp-Name", "Last-Event-ID",
)  # fmt: skip
EXPOSED_HEADERS = (
    HEADER, "X-Conversation-Id", "Retry-After", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining",
    "RateLimit-Reset", "Mcp-Session-Id", "WWW-Authenticate",
)  # fmt: skip
PREFLIGHT_SECONDS = 600
#: Parts of the product by path prefix, for the metrics.
AREAS = (
    ("/api/rag/chat", "chat"),
    ("/api/rag/search", "search"),
    ("/api/", "api"),
    ("/v1/", "openai"),
    ("/mcp", "mcp"),
    ("/scim/", "scim"),
    ("/answers/", "answer text"),
    ("/_stcore/", "streamlit"),
    ("/static/", "streamlit"),
    ("/metrics", "metrics"),
)


class RequestIds:
    """Give each request an id, and send the id in the response. An id sent by the caller is kept."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        header = Headers(scope=scope).get(HEADER, "")
        chosen = header if ACCEPTED.fullmatch(header) else uuid4().hex
        request_id.set(chosen)

        async def identified(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = chosen
            await send(message)

        await self._app(scope, receive, identified)


class RequestLog:
    """Trace each request, and log calls with an API key and responses with status 500 or above."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()

        async def logged(message: Message) -> None:
            if message["type"] == "http.response.start":
                status: int = message["status"]
                metrics.requests.labels(area_of(scope), str(status)).observe(time.perf_counter() - started)
                if status >= 500 or "RateLimit-Limit" in MutableHeaders(scope=message):
                    ms = (time.perf_counter() - started) * 1000
                    log.info("%s %s %d in %.0f ms", scope["method"], _one_line(scope["path"]), status, ms)
                begun.set_attribute("http.response.status_code", status)
            await send(message)

        attributes = {
            "http.request.method": scope["method"],
            "http.route": area_of(scope),
            "rag.request_id": request_id.get(),
        }
        with request_span(f"{scope['method']} {area_of(scope)}", Headers(scope=scope), attributes) as begun:
            await self._app(scope, receive, logged)


#: The language chosen in a browser, with and without https.
LANGUAGE_COOKIES = ("__Host-hr_language", "hr_language")


class Languages:
    """Set each request's language: the language chosen in this browser, else the first accepted language we support."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = HTTPConnection(scope)
            chosen = [request.cookies.get(name, "") for name in LANGUAGE_COOKIES]
            requested = request.query_params.get("language", "") if scope["method"] == "GET" else ""
            if requested in language.LANGUAGES and not is_for_programs(route_path(scope)):
                # A language chosen below a form just now counts before an earlier choice.
                scope = {**scope, "language": requested}
                chosen.insert(0, requested)
            language.speak(language.choose(chosen, language.accepted(request.headers.get("accept-language", ""))))
        await self._app(scope, receive, send)


class Cors(CORSMiddleware):
    """Apply Starlette's CORS middleware to the API only, for the origins in the settings. The guard refuses other
    origins.
    """

    def __init__(self, app: ASGIApp, settings: Callable[[], Settings]) -> None:
        super().__init__(
            app,
            allow_methods=ALLOWED_METHODS,
            allow_headers=ALLOWED_HEADERS,
            expose_headers=EXPOSED_HEADERS,
            max_age=PREFLIGHT_SECONDS,
        )
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_api = scope["type"] == "http" and is_open_to_sites(route_path(scope))
        if is_api and self.is_allowed_origin(Headers(scope=scope).get("origin", "")):
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def is_allowed_origin(self, origin: str) -> bool:
        return bool(origin) and origin in self._settings().allowed_origins

    def preflight_response(self, request_headers: Headers) -> Response:
        answer = super().preflight_response(request_headers)
        headers = {name: value for name, value in answer.headers.items() if not name.startswith("content-")}
        # The guard, which adds the security headers, comes after.
        return Response(status_code=204 if answer.status_code == 200 else 400, headers={**headers, **SECURITY_HEADERS})


def is_open_to_sites(path: str) -> bool:
    """Whether sites named in the settings may call this path.

    They may call the API, and the OAuth paths for connecting a program.
    """
    return (
        (is_for_programs(path) and not path.startswith(SCIM))
        or path in CONNECTING
        or path.startswith("/.well-known/oauth-")
    )


def area_of(scope: Scope) -> str:
    """Return the product's area for a path, for metrics. The areas are a few fixed names."""
    path = route_path(scope)
    return next((area for prefix, area in AREAS if path.startswith(prefix)), "pages")


def _one_line(path: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in path)[:200]


#: From the connection, or from a further request's first byte, to the end of the request's head.
HEAD_SECONDS = 30.0
#: A body brings this many bytes in this time, or ends. The slowest lines are faster.
BODY_SECONDS, BODY_BYTES = 30.0, 64 * 1024


class HttpConnection(H11Protocol):
    """A uvicorn connection with a time limit for requests. Websockets are exempt.

    The limit is paused while the server processes the received part of the body.
    """

    head_seconds, body_seconds, body_bytes = HEAD_SECONDS, BODY_SECONDS, BODY_BYTES

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._timer: asyncio.TimerHandle | None = None
        self._is_in_body = False
        #: Bytes since the timer began.
        self._received = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        super().data_received(data)
        state = self.conn.their_state
        if self.transport.get_protocol() is not self:
            self._calm()
        elif state is h11.IDLE:
            # Between requests uvicorn's timer ends the connection, until the next head's first byte.
            if self._timer is None:
                self._wait(self.head_seconds)
        elif state is h11.SEND_BODY:
            if not self._is_in_body:
                self._wait(self.body_seconds)
            self._is_in_body = True
        else:
            self._calm()
            self._is_in_body = False

    def connection_lost(self, exc: Exception | None) -> None:
        self._calm()
        super().connection_lost(exc)

    def _wait(self, seconds: float) -> None:
        self._calm()
        self._received = 0
        self._timer = self.loop.call_later(seconds, self._judge)

    def _calm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _judge(self) -> None:
        self._timer = None
        if self._is_in_body and (self._received >= self.body_bytes or self.flow.read_paused):
            self._wait(self.body_seconds)
        else:
            self.transport.abort()
