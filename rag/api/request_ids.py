"""Every request has an id: the caller's own or a new one, in the answer, in the log, in what is said of an error."""

from __future__ import annotations

import logging
import re
import time
from contextvars import ContextVar
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("rag.api.requests")

HEADER = "X-Request-Id"
#: What may come in; anything else could break a line of the log.
ACCEPTED = re.compile(r"[A-Za-z0-9._:-]{1,128}")
current: ContextVar[str] = ContextVar("request_id", default="")


class RequestIds:
    """Gives each request its id. The calls of API keys leave a line in the log, and so does what failed here."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if ACCEPTED.fullmatch(given) else uuid4().hex
        token = current.set(request_id)
        started = time.perf_counter()

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers[HEADER] = request_id
                if "RateLimit-Limit" in headers or message["status"] >= 500:
                    ms = (time.perf_counter() - started) * 1000
                    log.info("%s %s %d in %.0f ms", scope["method"], _one_line(scope["path"]), message["status"], ms)
            await send(message)

        try:
            await self._app({**scope, "request_id": request_id}, receive, named)
        finally:
            current.reset(token)


def name_request(record: logging.LogRecord) -> bool:
    """A filter for handlers: `%(request)s` is the id of the request that a line belongs to, if it belongs to one."""
    request_id = current.get()
    record.request = f" [request {request_id}]" if request_id else ""
    return True


def _one_line(path: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in path)[:200]
